import { MAX_BATCH_ENTRIES } from '../limits.js';
import { REFUSALS } from '../refusals.js';

/** Why a batch of this many entries is refused as a whole, or null. */
export function refuseBatch(entries: readonly unknown[]): string | null {
  if (entries.length === 0) return REFUSALS.emptyBatch();
  return entries.length > MAX_BATCH_ENTRIES ? REFUSALS.batchTooLarge() : null;
}
