/** Resets of a market's sequence numbers by the contract's owner: later curves are numbered from another number on. */
import type { Knex } from 'knex';
import { insertAll } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable, SeqReset } from '../types.js';
import type { Stored } from '../db/tables.js';

/** Appends resets inside a transaction of the ledger log's writer. */
export async function insertSeqResets(
  tx: Knex.Transaction,
  { generation, seqResets = [] }: { generation: number; seqResets?: readonly SeqReset[] },
): Promise<void> {
  const rows = seqResets.map((one) => ({
    market: one.market,
    era: one.era,
    seq: one.seq,
    fill_seq: one.fillSeq,
    block_number: one.blockNumber,
    log_index: one.logIndex,
    tx_hash: one.txHash,
    generation,
  }));
  await insertAll(tx, 'seq_resets', rows);
}

/** All resets of a market, oldest first. */
export async function readSeqResets(q: Queryable, market: number): Promise<SeqReset[]> {
  const rows = await q('seq_resets').where({ market }).orderBy('era').select();
  return rows.map(fromRow);
}

/** The newest reset of a market, null when its numbers were never given back. */
export async function lastSeqReset(q: Queryable, market: number): Promise<SeqReset | null> {
  const newest = 'select * from seq_resets where market = ? order by era desc limit 1';
  const [row] = await sendForRows<Stored<'seq_resets'>>(q, newest, [market]);
  return row === undefined ? null : fromRow(row);
}

/**
 * Numbers above `afterSeq`, at most `span` above it, that curves of ours or of others had before the numbers were given back; none of them
 * may be used again. Empty when numbers were never given back.
 */
export async function takenSeqs(
  q: Queryable,
  { market, afterSeq, span }: { market: number; afterSeq: number; span: number },
): Promise<ReadonlySet<number>> {
  if ((await lastSeqReset(q, market)) === null) return new Set();
  const taken = new Set<number>();
  for (const table of ['publications', 'posts_seen']) {
    const rows = await q(table)
      .where({ market })
      .whereBetween('seq', [afterSeq + 1, afterSeq + span])
      .select<{ seq: number }[]>('seq');
    for (const { seq } of rows) taken.add(seq);
  }
  return taken;
}

function fromRow(row: Stored<'seq_resets'>): SeqReset {
  return {
    market: row.market,
    era: row.era,
    seq: row.seq,
    fillSeq: row.fill_seq,
    blockNumber: row.block_number,
    logIndex: row.log_index,
    txHash: row.tx_hash,
  };
}
