/**
 * Updates candles and positions for each generation and each reversal. Both are projections of order fills alone: `verify` derives them
 * again and compares, and `rebuildMarketData` replaces them.
 */
import type { Knex } from 'knex';
import { candlesOf, joined, joinedAs, type TradePart } from '../../core/market-data/candles.js';
import { INTERVALS, PART_OF, nextOpen, openOf } from '../../core/market-data/intervals.js';
import {
  NO_POSITION,
  afterPart,
  closedUnits,
  quoteUnitsOfOrders,
  withoutParts,
  type PositionPart,
} from '../../core/market-data/positions.js';
import type { Address, Side } from '../../core/types.js';
import { fromColumn } from '../db/columns.js';
import { sendForRows, allOrFirstError } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import type { AttributedFill, AttributedPart, Queryable } from '../types.js';
import {
  candleKey,
  lastCandleBefore,
  readCandles,
  readCandlesAt,
  storeCandles,
  type MarketCandle,
} from './candle-rows.js';
import { positionKey, readPositionsOf, storePositions, type MakerPosition } from './position-rows.js';

/** Quote amount of one order's part of a fill, and its maker's profit from closing with it. Quote units. */
export interface PartDetails {
  quoteUnits: bigint;
  closedUnits: bigint;
}

/** What fills add, to be stored with them. */
export interface MarketDataChange {
  details: ReadonlyMap<AttributedPart, PartDetails>;
  candles: MarketCandle[];
  positions: MakerPosition[];
}

/** Positions by `positionKey`, moved on in place. */
export type Positions = Map<string, MakerPosition>;

/** A fill's parts in their order, with the quote amount and the profit of each; updates the makers' positions. */
export function takeFill(
  positions: Positions,
  { decomposition, orderFills }: Pick<AttributedFill, 'decomposition' | 'orderFills'>,
): Map<AttributedPart, PartDetails> {
  const details = new Map<AttributedPart, PartDetails>();
  for (const [part, { quoteUnits }] of quotesOf({ decomposition, orderFills })) {
    const { maker, market } = part;
    const key = positionKey(part);
    const before = positions.get(key) ?? { maker, market, parts: 0, ...NO_POSITION };
    const taken: PositionPart = { side: part.side, baseUnits: part.baseUnits, quoteUnits };
    const closed = closedUnits(before, taken);
    positions.set(key, { ...before, ...afterPart(before, taken, closed), parts: before.parts + 1 });
    details.set(part, { quoteUnits, closedUnits: closed });
  }
  return details;
}

/** The quote amount of each part of a fill, in their order. */
function quotesOf({
  decomposition,
  orderFills,
}: Pick<AttributedFill, 'decomposition' | 'orderFills'>): Map<AttributedPart, Pick<PartDetails, 'quoteUnits'>> {
  const quotes = decomposition.legs.flatMap(quoteUnitsOfOrders);
  return new Map(orderFills.map((part, i) => [part, { quoteUnits: quotes[i]! }]));
}

/** The trades of a fill, in their order. */
export function tradesOf(
  { fill, orderFills }: Pick<AttributedFill, 'fill' | 'orderFills'>,
  details: ReadonlyMap<AttributedPart, Pick<PartDetails, 'quoteUnits'>>,
): TradePart[] {
  return orderFills.map((part) => ({
    timeMs: fill.timestampMs,
    priceTicks: part.priceTicks,
    baseUnits: part.baseUnits,
    quoteUnits: details.get(part)!.quoteUnits,
  }));
}

/** The changes that a generation's fills make. The fills of a market must be in their order. */
export async function marketDataAfter(q: Queryable, fills: readonly AttributedFill[]): Promise<MarketDataChange> {
  if (fills.length === 0) return { details: new Map(), candles: [], positions: [] };
  const makers = [...new Set(fills.flatMap(({ orderFills }) => orderFills.map(({ maker }) => maker)))];
  const trades = groupBy(fills, ({ fill }) => fill.market);
  const added = [...trades].flatMap(([market, own]) =>
    candlesOf(own.flatMap((one) => tradesOf(one, quotesOf(one)))).map((one) => ({ ...one, market })),
  );
  const [stored, candlesBefore] = await allOrFirstError([readPositionsOf(q, makers), readCandlesAt(q, added)]);
  const positions: Positions = new Map(stored.map((one) => [positionKey(one), one]));
  const touched = new Set<string>();
  const details = new Map<AttributedPart, PartDetails>();
  for (const one of fills) {
    for (const [part, paid] of takeFill(positions, one)) {
      details.set(part, paid);
      touched.add(positionKey(part));
    }
  }
  const before = new Map(candlesBefore.map((one) => [candleKey(one), one]));
  const candles = added.map((one) => {
    const earlier = before.get(candleKey(one));
    return earlier === undefined ? one : { market: one.market, ...joined(earlier, one) };
  });
  return { details, candles, positions: [...touched].map((key) => positions.get(key)!) };
}

/** Stores what `marketDataAfter` found. */
export async function storeMarketData(
  tx: Knex.Transaction,
  generation: number,
  { candles, positions }: MarketDataChange,
): Promise<void> {
  await allOrFirstError([storeCandles(tx, candles), storePositions(tx, generation, positions)]);
}

/**
 * Removes the order fills of the generations after the kept one from positions and candles; call it before their rows are moved to the
 * orphans. Candles that begin after the last kept block are deleted, and those that contain it are rebuilt: a minute from trades, a longer
 * one from shorter ones.
 */
export async function reverseMarketData(
  tx: Knex.Transaction,
  { generation, keptGeneration, keptMs }: { generation: number; keptGeneration: number; keptMs: number },
): Promise<void> {
  await reversePositions(tx, generation, keptGeneration);
  const markets = await sendForRows<{ market: number }>(tx, 'select market from markets order by market');
  for (const { market } of markets) {
    const keptSeq = await lastFillSeq(tx, market, keptGeneration);
    const sql = 'select timestamp_ms from fills where market = ? and fill_seq > ? order by fill_seq limit 1';
    const [first] = await sendForRows<{ timestamp_ms: number }>(tx, sql, [market, keptSeq]);
    await reverseCandles(tx, market, { keptSeq, fromMs: Math.min(first?.timestamp_ms ?? keptMs, keptMs) });
  }
}

/** Number of a market's newest fill up to a generation; 0 before the first. */
async function lastFillSeq(q: Queryable, market: number, generation: number): Promise<number> {
  const sql =
    'select fill_seq from market_progress where market = ? and generation <= ? order by generation desc limit 1';
  const [row] = await sendForRows<{ fill_seq: number }>(q, sql, [market, generation]);
  return row?.fill_seq ?? 0;
}

async function reverseCandles(
  tx: Knex.Transaction,
  market: number,
  { keptSeq, fromMs }: { keptSeq: number; fromMs: number },
): Promise<void> {
  const newest = await lastCandleBefore(tx, { market, interval: '1m', beforeMs: Number.MAX_SAFE_INTEGER });
  if (newest === null || newest.openMs < openOf('1m', fromMs)) return;
  for (const [no, interval] of INTERVALS.entries()) {
    const openMs = openOf(interval, fromMs);
    await tx('candles').where({ market, interval_no: no }).where('open_ms', '>=', openMs).delete();
    const toMs = nextOpen(interval, openMs) - 1;
    const parts =
      interval === '1m'
        ? candlesOf(await keptTrades(tx, market, { keptSeq, openMs }), ['1m'])
        : await readCandles(tx, { market, interval: PART_OF[interval], fromMs: openMs, toMs });
    const made = joinedAs(
      interval,
      parts.filter((one) => one.openMs <= toMs),
    );
    if (made !== null) await storeCandles(tx, [{ ...made, market }]);
  }
}

/** Fills read at a time. */
const PAGE = 200;

/** Trades since a time that stay, oldest first. */
async function keptTrades(
  q: Queryable,
  market: number,
  { keptSeq, openMs }: { keptSeq: number; openMs: number },
): Promise<TradePart[]> {
  const sql =
    'select timestamp_ms, price_ticks, base_units, quote_units from order_fills ' +
    'where market = ? and fill_seq > ? and fill_seq <= ? order by fill_seq desc, part_no desc';
  const trades: TradePart[] = [];
  for (let upTo = keptSeq; upTo > 0; upTo -= PAGE) {
    const rows = await sendForRows<StoredTrade>(q, sql, [market, upTo - PAGE, upTo]);
    const since = rows.filter((row) => row.timestamp_ms >= openMs);
    trades.push(...since.map(toTrade));
    if (since.length < rows.length) break;
  }
  return trades.reverse();
}

interface StoredTrade {
  timestamp_ms: number;
  price_ticks: string;
  base_units: string;
  quote_units: string;
}

const toTrade = (row: StoredTrade): TradePart => ({
  timeMs: row.timestamp_ms,
  priceTicks: fromColumn(row.price_ticks),
  baseUnits: fromColumn(row.base_units),
  quoteUnits: fromColumn(row.quote_units),
});

interface StoredPart {
  maker: Address;
  market: number;
  side: Side;
  base_units: string;
  quote_units: string;
  closed_units: string;
}

async function reversePositions(tx: Knex.Transaction, reversal: number, keptGeneration: number): Promise<void> {
  const sql = 'select maker, market, side, base_units, quote_units, closed_units from order_fills where generation > ?';
  const taken: Positions = new Map();
  for (const row of await sendForRows<StoredPart>(tx, sql, [keptGeneration])) {
    const { maker, market, side } = row;
    const key = positionKey(row);
    const sum = taken.get(key) ?? { maker, market, parts: 0, ...NO_POSITION };
    const part = { side, baseUnits: fromColumn(row.base_units), quoteUnits: fromColumn(row.quote_units) };
    taken.set(key, { ...sum, ...afterPart(sum, part, fromColumn(row.closed_units)), parts: sum.parts + 1 });
  }
  const makers = [...new Set([...taken.values()].map(({ maker }) => maker))];
  const stored = new Map((await readPositionsOf(tx, makers)).map((one) => [positionKey(one), one]));
  const after = [...taken].flatMap(([key, sum]) => {
    const before = stored.get(key);
    if (before === undefined) return [];
    return [{ ...before, ...withoutParts(before, sum), parts: before.parts - sum.parts }];
  });
  await storePositions(tx, reversal, after);
}
