import { remainingLots } from './order-life.js';
import { maxBig } from '../amounts.js';
import type { BookLevel } from '../book.js';
import type { OpenOrder, Side } from '../types.js';

/** The open orders of one market and side, kept sorted while they change. */
export interface SideBook {
  add(order: OpenOrder): void;
  /** Puts `next` in the place of an order that differs from it only in `filledUnits`. */
  replace(order: OpenOrder, next: OpenOrder): void;
  remove(order: OpenOrder): void;
  /** Best price first, then lower maker address, then lower oid. */
  orders(): OpenOrder[];
  /** The same orders as an iterator. */
  inOrder(): Iterable<OpenOrder>;
  /** At most `limit` levels, without the best `skippedOrders` orders. */
  levels(limit: number, skippedOrders: number): BookLevel[];
  /** The same without a limit, computed while the caller iterates; the side must not change meanwhile. */
  eachLevel(skippedOrders: number): Iterable<BookLevel>;
  /** Best price without the best `skippedOrders` orders. */
  bestTicks(skippedOrders: number): bigint | null;
  /** Best price of an order that is worth at least `tickLots` (ticks times lots) and that `counts` accepts. */
  bestTicksWorth(tickLots: bigint, counts: ((order: OpenOrder) => boolean) | null): bigint | null;
}

interface Level {
  priceTicks: bigint;
  lots: bigint;
  /** By maker address, then oid. */
  orders: OpenOrder[];
  /** Lots of the largest order; null when it must be computed again. */
  largestLots: bigint | null;
}

const isBefore = (a: OpenOrder, b: OpenOrder): boolean => (a.maker === b.maker ? a.oid < b.oid : a.maker < b.maker);

/**
 * Creates an empty side. Levels are held worst price first, so that a change near the best price, the common one, moves the
 * fewest array slots; finding a level or an order inside it is a binary search.
 */
export const createSideBook = (side: Side, lotUnits: bigint): SideBook => {
  const levels: Level[] = [];
  /**
   * Index of the first level that is not worse than the price. Both searches are written without a shared helper, for speed: each added or
   * removed order runs them.
   */
  const levelIndex = (priceTicks: bigint): number => {
    let low = 0;
    let high = levels.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = levels[middle]!.priceTicks;
      if (side === 'ask' ? at > priceTicks : at < priceTicks) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  /** Index of the first order of the level that does not come before this one. */
  const orderIndex = ({ orders: own }: Level, order: OpenOrder): number => {
    let low = 0;
    let high = own.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(own[middle]!, order)) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const locate = (order: OpenOrder): { at: number; level: Level; index: number } => {
    const at = levelIndex(order.priceTicks);
    const level = levels[at];
    const index = level?.priceTicks === order.priceTicks ? orderIndex(level, order) : -1;
    if (level?.orders[index]?.oid !== order.oid) throw new Error(`order ${order.oid} is not in its price level`);
    return { at, level, index };
  };

  const add = (order: OpenOrder): void => {
    const at = levelIndex(order.priceTicks);
    let level = levels[at];
    if (level?.priceTicks !== order.priceTicks) {
      level = { priceTicks: order.priceTicks, lots: 0n, orders: [], largestLots: 0n };
      levels.splice(at, 0, level);
    }
    const lots = remainingLots(order, lotUnits);
    level.orders.splice(orderIndex(level, order), 0, order);
    level.lots += lots;
    if (level.largestLots !== null && lots > level.largestLots) level.largestLots = lots;
  };

  const replace = (order: OpenOrder, next: OpenOrder): void => {
    const { level, index } = locate(order);
    level.orders[index] = next;
    const lots = remainingLots(order, lotUnits);
    level.lots += remainingLots(next, lotUnits) - lots;
    if (lots === level.largestLots) level.largestLots = null;
  };

  const remove = (order: OpenOrder): void => {
    const { at, level, index } = locate(order);
    const lots = remainingLots(order, lotUnits);
    level.orders.splice(index, 1);
    level.lots -= lots;
    if (lots === level.largestLots) level.largestLots = null;
    if (level.orders.length === 0) levels.splice(at, 1);
  };

  const orders = (): OpenOrder[] => {
    const result: OpenOrder[] = [];
    for (let at = levels.length - 1; at >= 0; at--) for (const order of levels[at]!.orders) result.push(order);
    return result;
  };

  function* inOrder(): Iterable<OpenOrder> {
    for (let at = levels.length - 1; at >= 0; at--) yield* levels[at]!.orders;
  }

  function* eachLevel(skippedOrders: number): Iterable<BookLevel> {
    let skip = skippedOrders;
    for (let at = levels.length - 1; at >= 0; at--) {
      const { priceTicks, lots, orders: own } = levels[at]!;
      if (skip >= own.length) skip -= own.length;
      else if (skip === 0) yield { priceTicks, lots, orders: own.length };
      else {
        const left = own.slice(skip);
        const leftLots = left.reduce((sum, order) => sum + remainingLots(order, lotUnits), 0n);
        skip = 0;
        yield { priceTicks, lots: leftLots, orders: left.length };
      }
    }
  }

  const topLevels = (limit: number, skippedOrders: number): BookLevel[] => {
    const result: BookLevel[] = [];
    if (limit <= 0) return result;
    for (const level of eachLevel(skippedOrders)) if (result.push(level) >= limit) break;
    return result;
  };

  const bestTicks = (skippedOrders: number): bigint | null => {
    let skip = skippedOrders;
    for (let at = levels.length - 1; at >= 0; at--) {
      const level = levels[at]!;
      if (level.orders.length > skip) return level.priceTicks;
      skip -= level.orders.length;
    }
    return null;
  };

  const largestLots = (level: Level): bigint =>
    (level.largestLots ??= level.orders.reduce((most, order) => maxBig(most, remainingLots(order, lotUnits)), 0n));

  const bestTicksWorth = (tickLots: bigint, counts: ((order: OpenOrder) => boolean) | null): bigint | null => {
    for (let at = levels.length - 1; at >= 0; at--) {
      const level = levels[at]!;
      const { priceTicks } = level;
      if (priceTicks * largestLots(level) < tickLots) continue;
      const found = (order: OpenOrder): boolean =>
        priceTicks * remainingLots(order, lotUnits) >= tickLots && counts!(order);
      if (counts === null || level.orders.some(found)) return priceTicks;
    }
    return null;
  };

  return { add, replace, remove, orders, inOrder, levels: topLevels, eachLevel, bestTicks, bestTicksWorth };
};
