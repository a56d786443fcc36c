import { maxBig, absBig } from '../../core/amounts.js';
import type { Address, Market, OpenOrder, OrderEffect } from '../../core/types.js';
import type { BalanceRow } from '../../ledger/types.js';
import type { Book } from '../../core/book.js';
import { orderPayment } from '../../core/book/maker-orders.js';
import { remainingLots } from '../../core/book/order-life.js';
import { marketIn } from './draft.js';

/** Balances after the last durable generation that was read. */
export interface Inventory {
  /** Replaces the rows of the same account and token. */
  update: (rows: readonly BalanceRow[]) => void;
  /** max(balance - reserved, 0), in units of the token; 0 for an unknown account. */
  available: (maker: Address, token: Address) => bigint;
  has: (account: Address) => boolean;
}

/** An empty inventory. */
export function createInventory(): Inventory {
  const available = new Map<string, Map<string, bigint>>();
  return {
    update(rows) {
      for (const { account, token, balanceUnits, reservedUnits } of rows) {
        const tokens = available.get(account) ?? new Map<string, bigint>();
        available.set(account, tokens.set(token, maxBig(balanceUnits - reservedUnits, 0n)));
      }
    },
    available: (maker, token) => available.get(maker)?.get(token) ?? 0n,
    has: (account) => available.has(account),
  };
}

interface Payer {
  order: OpenOrder;
  market: Market;
  token: Address;
  units: bigint;
  /** Best price of the order's side in its market. */
  bestTicks: bigint;
}

/** Whether the maker's open orders could pay more of some token than it has available. */
export function isShort(book: Book, maker: Address, available: (maker: Address, token: Address) => bigint): boolean {
  return [...book.exposureUnits(maker)].some(([token, units]) => units > available(maker, token));
}

/**
 * Which of a maker's orders close because its inventory no longer backs them: token by token, worst price first, until the rest is backed;
 * the last one is reduced to the whole lots that are backed. Prices of different markets are compared by their distance from the best price
 * of their side, relative to it; at an equal distance the newer order goes first.
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
    for (const payer of (payers.get(token) ?? []).sort(worstFirst)) {
      if (excess <= 0n) break;
      effects.push(shrink(payer, excess));
      excess -= payer.units;
    }
  }
  return effects;
}

/** Takes as many whole lots off the order as pay `excess`; an order that would be left with less than a lot closes. */
function shrink({ order, market }: Payer, excess: bigint): OrderEffect {
  // Both are exact: a lot of an ask pays its base units, a lot of a bid its price, which is whole by the rule of listing.
  const perLot = order.side === 'ask' ? market.lotUnits : order.priceTicks * market.tickLotUnits;
  const lots = (excess + perLot - 1n) / perLot;
  return lots < remainingLots(order, market.lotUnits)
    ? { type: 'reduce', oid: order.oid, lots }
    : { type: 'close', oid: order.oid, reason: 'inventory' };
}

function payersOf(book: Book, markets: readonly Market[], maker: Address): Payer[] {
  return book.openOrders(maker).map((order) => {
    const market = marketIn(markets, order.market);
    const bestTicks = book.bestTicks(order.market, order.side) ?? order.priceTicks;
    return { order, market, bestTicks, ...orderPayment(market, order) };
  });
}

/** Distances are compared as fractions, exactly. */
function worstFirst(a: Payer, b: Payer): number {
  const distanceA = absBig(a.order.priceTicks - a.bestTicks) * b.bestTicks;
  const distanceB = absBig(b.order.priceTicks - b.bestTicks) * a.bestTicks;
  if (distanceA !== distanceB) return distanceA > distanceB ? -1 : 1;
  return b.order.oid - a.order.oid;
}
