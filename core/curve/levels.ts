import type { Side, SnapshotOrder } from '../types.js';

/** All of one side at one price. */
export interface Level {
  priceTicks: bigint;
  lots: bigint;
}

/** Orders of one side merged by price, best price first; orders without size are left out. The input may be in any order. */
export function sideLevels(side: Side, orders: readonly Pick<SnapshotOrder, 'priceTicks' | 'sizeLots'>[]): Level[] {
  const lotsAt = new Map<bigint, bigint>();
  for (const { priceTicks, sizeLots } of orders) {
    if (sizeLots > 0n) lotsAt.set(priceTicks, (lotsAt.get(priceTicks) ?? 0n) + sizeLots);
  }
  const levels = [...lotsAt].map(([priceTicks, lots]) => ({ priceTicks, lots }));
  const ascending = side === 'ask';
  return levels.sort((a, b) => (a.priceTicks < b.priceTicks === ascending ? -1 : 1));
}

/** Lots of all levels. */
export function totalLots(levels: readonly Level[]): bigint {
  let sum = 0n;
  for (const { lots } of levels) sum += lots;
  return sum;
}
