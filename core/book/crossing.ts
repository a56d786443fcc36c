/** A crossing of a book, and which orders are left out of what is shown and published so that the rest does not cross. */

/** An order as far as a crossing is concerned; `sizeLots` is what is left of it. */
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
 * The orders that a crossing leaves out: as long as the best ask is not above the best bid, the one of the two that is worth less at its own
 * price goes, of two that are worth the same the newer. So a small order never displaces a larger one, however many small ones there
 * are, and those that go are the first of their side. Both sides are best order first; no more than what goes and one order of each is read.
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
