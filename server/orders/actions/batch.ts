import { MAX_BATCH_ENTRIES } from '../limits.js';
import { REFUSALS } from '../refusals.js';

/** Why a batch of this many entries is refused as a whole, or null. */
export function refuseBatch(entries: readonly unknown[]): string | null {
  if (entries.length === 0) return REFUSALS.emptyBatch();
  return entries.length > MAX_BATCH_ENTRIES ? REFUSALS.batchTooLarge() : null;
}

/** Lists of entries, whatever the type of the action. */
const LISTS = ['orders', 'cancels', 'modifies'] as const;

/** Whether an action as it was received has more entries than any may have: told before anything of it is read or hashed. */
export const isTooLong = (action: Readonly<Record<string, unknown>>): boolean =>
  LISTS.some((name) => {
    const list = action[name];
    return Array.isArray(list) && list.length > MAX_BATCH_ENTRIES;
  });
