import { formatUnits, parseDecimal, powerOfTen } from '../../../core/amounts.js';
import type { Book, BookLevel } from '../../../core/book.js';
import { aggregate, type Aggregation } from '../../../core/market-data/aggregate.js';
import { lotsToSize, ticksToPrice } from '../../../core/market.js';
import type { Market, Side } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { WireError } from '../../../core/wire/errors.js';
import { asText, type JsonObject } from '../../../core/wire/shape.js';
import type { Gateway } from '../engine.js';
import { MAX_BOOK_LEVELS } from '../limits.js';
import { coinOf } from './markets.js';
import type { InfoHandler } from './types.js';

/** Up to 20 levels per side, best first, bids before asks, aggregated by significant figures on request; null for an unknown coin. */
export const l2Book: InfoHandler = (request, { gateway, clock }) => {
  const by = readAggregation(request);
  const coin = asText(request.coin, 'coin');
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return null;
  return bookOf(market, gateway, clock(), { by });
};

/** The aggregation that a request asks for; null for none. Throws WireError for unsupported figures. */
export function readAggregation({ nSigFigs, mantissa }: JsonObject): Aggregation | null {
  const figures = nSigFigs ?? null;
  const widened = mantissa ?? null;
  if (figures !== null && ![2, 3, 4, 5].includes(figures as number)) throw new WireError('nSigFigs', 'must be 2 to 5');
  if (widened !== null && (figures !== 5 || ![1, 2, 5].includes(widened as number)))
    throw new WireError('mantissa', 'must be 1, 2 or 5, with 5 figures');
  return figures === null ? null : { nSigFigs: figures as number, mantissa: widened as number | null };
}

/** Levels of each side that a fast subscription gets. */
const FAST_LEVELS = 5;

/** A market's book as clients see it. */
export function bookOf(
  market: Market,
  gateway: Pick<Gateway, 'book'>,
  timeMs: number,
  { by, isFast = false }: { by: Aggregation | null; isFast?: boolean },
): object {
  const book = gateway.book();
  const sideOf = (side: Side): object[] =>
    book.levels(market.index, side, MAX_BOOK_LEVELS).map((level) => levelOf(market, level));
  const levels = by === null ? [sideOf('bid'), sideOf('ask')] : gatheredBook(market, book, by);
  const whole = { coin: coinOf(market), time: timeMs, levels };
  return isFast ? { ...whole, levels: levels.map((side) => side.slice(0, FAST_LEVELS)), fast: true } : whole;
}

/** The best level of each side, null for an empty one: bid, then ask. */
export function bboOf(market: Market, gateway: Pick<Gateway, 'book'>, timeMs: number) {
  const bestOf = (side: Side): object | null => {
    const [best] = gateway.book().levels(market.index, side, 1);
    return best === undefined ? null : levelOf(market, best);
  };
  return { coin: coinOf(market), time: timeMs, bbo: [bestOf('bid'), bestOf('ask')] };
}

/** Decimals in which significant figures are counted, if prices have no more. */
const PRICE_DECIMALS = 8;

/** Both sides of a book as it stood in one version. */
interface Gathered {
  version: number;
  levels: [object[], object[]];
}

/** The last result per market and figures, shared by all requests until the market changes. Versions belong to one book. */
const gatheredOf = new WeakMap<Book, Map<string, Gathered>>();

function gatheredBook(market: Market, book: Book, by: Aggregation): [object[], object[]] {
  const known = gatheredOf.get(book) ?? new Map<string, Gathered>();
  gatheredOf.set(book, known);
  const key = `${market.index}:${by.nSigFigs}:${by.mantissa ?? 1}`;
  const version = book.version(market.index);
  const last = known.get(key);
  if (last?.version === version) return last.levels;
  const levels: Gathered['levels'] = [gatheredLevels(market, book, 'bid', by), gatheredLevels(market, book, 'ask', by)];
  known.set(key, { version, levels });
  return levels;
}

function gatheredLevels(market: Market, book: Book, side: Side, by: Aggregation): object[] {
  const { digits, scale } = parseDecimal(market.tickSize);
  const decimals = Math.max(PRICE_DECIMALS, scale);
  const tickPrice = digits * powerOfTen(decimals - scale);
  const levels = aggregate(side, book.eachLevel(market.index, side), tickPrice, by, MAX_BOOK_LEVELS);
  return levels.map(({ price, lots, orders }) => ({
    px: withPoint(formatUnits(price, decimals)),
    sz: withPoint(lotsToSize(market, lots)),
    n: orders,
  }));
}

function levelOf(market: Market, level: BookLevel): object {
  return {
    px: withPoint(ticksToPrice(market, level.priceTicks)),
    sz: withPoint(lotsToSize(market, level.lots)),
    n: level.orders,
  };
}
