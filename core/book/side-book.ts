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
  levels(limit: number): BookLevel[];
  bestTicks(): bigint | null;
}

interface Level {
  priceTicks: bigint;
  lots: bigint;
  /** By maker address, then oid. */
  orders: OpenOrder[];
}

/** Lots of the remaining size, floored. */
export const remainingLots = (order: OpenOrder, lotUnits: bigint): bigint =>
  order.filledUnits === 0n ? order.sizeLots : order.sizeLots - (order.filledUnits + lotUnits - 1n) / lotUnits;

const isBefore = (a: OpenOrder, b: OpenOrder): boolean => (a.maker === b.maker ? a.oid < b.oid : a.maker < b.maker);

/**
 * Creates an empty side. Levels are held worst price first, so that a change near the best price, the common one, moves the
 * fewest array slots; finding a level or an order inside it is a binary search.
 */
export const createSideBook = (side: Side, lotUnits: bigint): SideBook => {
  const levels: Level[] = [];
  /** First level that is not worse than the price. Both searches are written out: every order that comes or goes runs them. */
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
  /** First order of the level that does not come before this one. */
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
      level = { priceTicks: order.priceTicks, lots: 0n, orders: [] };
      levels.splice(at, 0, level);
    }
    level.orders.splice(orderIndex(level, order), 0, order);
    level.lots += remainingLots(order, lotUnits);
  };

  const replace = (order: OpenOrder, next: OpenOrder): void => {
    const { level, index } = locate(order);
    level.orders[index] = next;
    level.lots += remainingLots(next, lotUnits) - remainingLots(order, lotUnits);
  };

  const remove = (order: OpenOrder): void => {
    const { at, level, index } = locate(order);
    level.orders.splice(index, 1);
    level.lots -= remainingLots(order, lotUnits);
    if (level.orders.length === 0) levels.splice(at, 1);
  };

  const orders = (): OpenOrder[] => {
    const result: OpenOrder[] = [];
    for (let at = levels.length - 1; at >= 0; at--) for (const order of levels[at]!.orders) result.push(order);
    return result;
  };

  const topLevels = (limit: number): BookLevel[] => {
    const result: BookLevel[] = [];
    for (let at = levels.length - 1; at >= 0 && result.length < limit; at--) {
      const level = levels[at]!;
      result.push({ priceTicks: level.priceTicks, lots: level.lots, orders: level.orders.length });
    }
    return result;
  };

  return { add, replace, remove, orders, levels: topLevels, bestTicks: () => levels.at(-1)?.priceTicks ?? null };
};
