import { setImmediate as nextTurn } from 'node:timers/promises';
import { SLICE } from '../core/merkle.js';

/** Does something with each item, in order, and lets others run after every slice of items, whatever became of them. */
export async function eachInSlices<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
  let count = 0;
  for (const item of items) {
    work(item);
    count += 1;
    if (count % SLICE === 0) await nextTurn();
  }
}
