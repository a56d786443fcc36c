import type { BookLevel } from '../../../core/book.js';
import { lotsToSize, ticksToPrice } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { WireError } from '../../../core/wire/errors.js';
import { asText } from '../../../core/wire/shape.js';
import type { Gateway } from '../engine.js';
import { MAX_BOOK_LEVELS } from '../limits.js';
import { coinOf } from './spot-meta.js';
import type { InfoHandler } from './types.js';

/** Up to 20 levels per side, best first, bids before asks; null for an unknown coin. Levels are never aggregated. */
export const l2Book: InfoHandler = (request, { gateway, clock }) => {
  for (const field of ['nSigFigs', 'mantissa']) {
    if (request[field] !== undefined && request[field] !== null) throw new WireError(field, 'is not supported');
  }
  const coin = asText(request.coin, 'coin');
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return null;
  return bookOf(market, gateway, clock());
};

/** A market's book as clients see it. */
export function bookOf(market: Market, gateway: Pick<Gateway, 'book'>, timeMs: number): object {
  const sideOf = (side: 'bid' | 'ask'): object[] =>
    gateway
      .book()
      .levels(market.index, side, MAX_BOOK_LEVELS)
      .map((level) => levelOf(market, level));
  return { coin: coinOf(market), time: timeMs, levels: [sideOf('bid'), sideOf('ask')] };
}

function levelOf(market: Market, level: BookLevel): object {
  return {
    px: withPoint(ticksToPrice(market, level.priceTicks)),
    sz: withPoint(lotsToSize(market, level.lots)),
    n: level.orders,
  };
}
