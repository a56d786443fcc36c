import { setImmediate as nextTurn } from 'node:timers/promises';
import { SLICE } from '../../core/merkle.js';

/** Runs `work` on each item, in order, and yields to the event loop after every slice of items, whatever `work` returns. */
export async function eachInSlices<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
  let count = 0;
  for (const item of items) {
    work(item);
    count += 1;
    if (count % SLICE === 0) await nextTurn();
  }
}

/** Items by key, each group in the order of the items. */
export function groupBy<K, T>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
