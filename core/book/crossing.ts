/** Which orders of a crossed book are neither shown nor published, so that the rest does not cross. */

/** The parts of an order that decide a crossing; `sizeLots` is what is left of it. */
export interface RestingLots {
  oid: number;
  priceTicks: bigint;
  sizeLots: bigint;
}

/** How many of the best orders of each side are left out. */
export interface Crossing {
  asks: number;
  bids: number;
}

/** Nothing crosses. */
export const UNCROSSED: Crossing = { asks: 0, bids: 0 };

/**
 * The orders that a crossing leaves out. While the best ask is not above the best bid, the one of the two that is worth less at its own
 * price is left out; of two worth the same, the newer. So small orders never displace a larger one, however many there are, and the orders
 * left out are the first of their side. Both sides are best order first; of each side only the orders left out and one more are read.
 */
export function crossingOf(asks: Iterable<RestingLots>, bids: Iterable<RestingLots>): Crossing {
  const crossing = { asks: 0, bids: 0 };
  const [nextAsk, nextBid] = [asks[Symbol.iterator](), bids[Symbol.iterator]()];
  let [ask, bid] = [nextAsk.next(), nextBid.next()];
  while (ask.done !== true && bid.done !== true && ask.value.priceTicks <= bid.value.priceTicks) {
    if (goesFirst(ask.value, bid.value)) {
      crossing.asks += 1;
      ask = nextAsk.next();
    } else {
      crossing.bids += 1;
      bid = nextBid.next();
    }
  }
  return crossing;
}

function goesFirst(a: RestingLots, b: RestingLots): boolean {
  const [worthA, worthB] = [a.priceTicks * a.sizeLots, b.priceTicks * b.sizeLots];
  return worthA === worthB ? a.oid > b.oid : worthA < worthB;
}
