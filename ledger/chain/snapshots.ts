/** Stored books behind curves that fills hit. */
import type { Knex } from 'knex';
import type { MarketSnapshot } from '../../core/types.js';
import { insertAbsent } from '../db/columns.js';
import { packBook, unpackBook } from './packed-book.js';
import type { GenerationWrite, Queryable } from '../types.js';

/** Stores the books of curves that a generation hit first. */
export async function insertSnapshots(
  tx: Knex.Transaction,
  { generation, snapshots }: Pick<GenerationWrite, 'generation' | 'snapshots'>,
): Promise<void> {
  const rows = snapshots.map(({ seq, snapshot }) => ({
    market: snapshot.market,
    seq,
    generation,
    payload: packBook(snapshot),
  }));
  // A curve that was hit before a reorganisation and again after it is stored already, with the same book.
  await insertAbsent(tx, 'snapshots', ['market', 'seq'], rows);
}

/** The stored snapshot of a curve that a fill hit, null when none did. */
export async function readSnapshot(q: Queryable, market: number, seq: number): Promise<MarketSnapshot | null> {
  const row = await q<{ market: number; seq: number; payload: string }>('snapshots')
    .where({ market, seq })
    .first('payload');
  return row === undefined ? null : unpackBook(row.payload);
}
