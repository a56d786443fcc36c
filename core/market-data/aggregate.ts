/** Levels of a book gathered by significant figures, as clients of the exchange wire ask for them. */
import { ceilDiv } from '../amounts.js';
import type { BookLevel } from '../book.js';

/** A level with its price in integers of any one scale. */
interface PricedLevel {
  price: bigint;
  lots: bigint;
  orders: number;
}

/** `nSigFigs` 2 to 5; a `mantissa` of 2 or 5 widens the steps of 5 figures. */
export interface Aggregation {
  nSigFigs: number;
  mantissa: number | null;
}

/** The step of prices like this one: one in the last of the figures, times the mantissa. */
function stepOf(price: bigint, { nSigFigs, mantissa }: Aggregation): bigint {
  const beyond = price.toString().length - nSigFigs;
  return BigInt(mantissa ?? 1) * (beyond > 0 ? 10n ** BigInt(beyond) : 1n);
}

/**
 * Levels, best first, gathered into at most `limit` ones: bids are rounded down and asks up, so that no better price is shown than there
 * is. The step follows from the first price of each gathered level, so it changes across a power of ten. A level's price is its ticks times
 * `tickPrice`. The price is computed once per gathered level, and reading stops at the level that ends the last gathered one.
 */
export function aggregate(
  side: 'bid' | 'ask',
  levels: Iterable<BookLevel>,
  tickPrice: bigint,
  by: Aggregation,
  limit: number,
): PricedLevel[] {
  const gathered: PricedLevel[] = [];
  let last: PricedLevel | null = null;
  /** Ticks of the worst price that belongs to the last gathered level. */
  let worstTicks = 0n;
  for (const { priceTicks, lots, orders } of levels) {
    if (last !== null && (side === 'bid' ? priceTicks >= worstTicks : priceTicks <= worstTicks)) {
      last.lots += lots;
      last.orders += orders;
      continue;
    }
    if (gathered.length === limit) break;
    const price = priceTicks * tickPrice;
    const step = stepOf(price, by);
    const down = (price / step) * step;
    last = { price: side === 'bid' || down === price ? down : down + step, lots, orders };
    worstTicks = side === 'bid' ? ceilDiv(last.price, tickPrice) : last.price / tickPrice;
    gathered.push(last);
  }
  return gathered;
}
