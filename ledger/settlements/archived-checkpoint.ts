/**
 * The newest checkpoint that a lost database had published, from an archive: the balances that makers were shown. A rebuilt database is
 * compared with it and uses none of the lost database's numbers again.
 */
import type { Knex } from 'knex';
import type { CheckpointHead, Queryable } from '../types.js';
import { checkpointHeadSchema } from './checkpoint-log.js';

const KEY = 'archived_checkpoint';

/** The newest one that was ever imported; null when none was. */
export async function readArchivedCheckpoint(q: Queryable): Promise<CheckpointHead | null> {
  const row = await q<{ key: string; value: string }>('meta').where({ key: KEY }).first('value');
  return row === undefined ? null : checkpointHeadSchema.parse(JSON.parse(row.value));
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
