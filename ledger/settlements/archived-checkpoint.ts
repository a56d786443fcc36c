/**
 * The newest checkpoint that a lost database had published, as an archive has it: what makers were told that they have. A database that was made
 * again is held against it, and gives none of its numbers away again.
 */
import type { Knex } from 'knex';
import type { CheckpointHead, Queryable } from '../types.js';

const KEY = 'archived_checkpoint';

/** The newest one that was ever imported; null when none was. */
export async function readArchivedCheckpoint(q: Queryable): Promise<CheckpointHead | null> {
  const row = await q<{ key: string; value: string }>('meta').where({ key: KEY }).first('value');
  return row === undefined ? null : (JSON.parse(row.value) as CheckpointHead);
}

/** Keeps a checkpoint unless a newer one is kept. */
export async function storeArchivedCheckpoint(tx: Knex.Transaction, head: CheckpointHead): Promise<void> {
  const known = await readArchivedCheckpoint(tx);
  if (known !== null && known.checkpointSeq >= head.checkpointSeq) return;
  await tx('meta')
    .insert({ key: KEY, value: JSON.stringify(head) })
    .onConflict('key')
    .merge();
}

/** The number of the next checkpoint after the newest one of this database (0 for none), above all that were published before it. */
export function nextCheckpointSeq(lastSeq: number, archived: Pick<CheckpointHead, 'checkpointSeq'> | null): number {
  return Math.max(lastSeq, archived?.checkpointSeq ?? 0) + 1;
}
