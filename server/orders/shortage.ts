import { absBig } from '../../core/amounts.js';
import type { Book } from '../../core/book.js';
import type { Address, Market, OpenOrder, OrderEffect } from '../../core/types.js';
import { obligationOf } from './draft.js';

interface Payer {
  order: OpenOrder;
  units: bigint;
  /** Best price of the order's side in its market. */
  bestTicks: bigint;
}

/** Whether the maker's open orders could pay more of some token than it has available. */
export function isShort(book: Book, maker: Address, available: (maker: Address, token: Address) => bigint): boolean {
  return [...book.exposureUnits(maker)].some(([token, units]) => units > available(maker, token));
}

/**
 * Which of a maker's orders close because its inventory no longer backs them: token by token, worst price first, until what is
 * left is backed. Prices of different markets are compared by their distance from the best price of their side, relative to it;
 * at an equal distance the newer order goes first. An order that is backed in part closes whole.
 */
export function closeForShortage(
  book: Book,
  markets: readonly Market[],
  maker: Address,
  available: (maker: Address, token: Address) => bigint,
): OrderEffect[] {
  const payers = Map.groupBy(payersOf(book, markets, maker), ({ token }) => token);
  const effects: OrderEffect[] = [];
  for (const [token, exposure] of book.exposureUnits(maker)) {
    let excess = exposure - available(maker, token);
    for (const { order, units } of (payers.get(token) ?? []).sort(worstFirst)) {
      if (excess <= 0n) break;
      excess -= units;
      effects.push({ type: 'close', oid: order.oid, reason: 'inventory' });
    }
  }
  return effects;
}

function payersOf(book: Book, markets: readonly Market[], maker: Address): (Payer & { token: Address })[] {
  return book.openOrders(maker).map((order) => {
    const market = markets[order.market];
    if (market === undefined)
      throw new RangeError(`order ${order.oid} names market ${order.market}, which is not listed`);
    const bestTicks = book.bestTicks(order.market, order.side) ?? order.priceTicks;
    return { order, bestTicks, ...obligationOf(market, order) };
  });
}

/** Distances are compared as fractions, exactly. */
function worstFirst(a: Payer, b: Payer): number {
  const distanceA = absBig(a.order.priceTicks - a.bestTicks) * b.bestTicks;
  const distanceB = absBig(b.order.priceTicks - b.bestTicks) * a.bestTicks;
  if (distanceA !== distanceB) return distanceA > distanceB ? -1 : 1;
  return b.order.oid - a.order.oid;
}
