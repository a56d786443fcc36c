/** Levels of a book gathered by significant figures, as clients of the exchange wire ask for them. */

/** A level with its price in integers of any one scale. */
export interface PricedLevel {
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
 * Levels, best first, gathered into at most `limit` ones: bids are rounded down and asks up, so that nobody sees a better price than there is.
 * The step is that of each gathered level's first price, and changes across a power of ten.
 */
export function aggregate(
  side: 'bid' | 'ask',
  levels: Iterable<PricedLevel>,
  by: Aggregation,
  limit: number,
): PricedLevel[] {
  const gathered: PricedLevel[] = [];
  for (const { price, lots, orders } of levels) {
    const last = gathered.at(-1);
    const isWithin = last !== undefined && (side === 'bid' ? price >= last.price : price <= last.price);
    if (isWithin) {
      last.lots += lots;
      last.orders += orders;
      continue;
    }
    if (gathered.length === limit) break;
    const step = stepOf(price, by);
    const down = (price / step) * step;
    gathered.push({ price: side === 'bid' || down === price ? down : down + step, lots, orders });
  }
  return gathered;
}
