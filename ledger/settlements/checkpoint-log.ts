/**
 * Checkpoints, a part of the settlement log: the balances of all accounts at a generation, under one Merkle root. Only the rows that
 * changed since the checkpoint before are stored.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Knex } from 'knex';
import { z } from 'zod';
import type { Hex } from '../../core/types.js';
import { checkLimit, chunks, fromColumn, insertAll, toColumn } from '../db/columns.js';
import { eachInSlices } from '../db/lists.js';
import { SUSPENSE, UNATTRIBUTED, VAULT, type CheckpointHead, type CheckpointRow, type Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

const whole = z.int().nonnegative();
const hash = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value));

/** The last fill of each market, by its index. */
const ackFillSeqsSchema = z.record(z.string().regex(/^\d{1,9}$/), whole);

/** A checkpoint as JSON, of whoever kept or sent it. */
export const checkpointHeadSchema: z.ZodType<CheckpointHead> = z.strictObject({
  checkpointSeq: whole.positive(),
  generation: whole,
  blockNumber: whole,
  blockHash: hash,
  timestampMs: whole,
  root: hash,
  leafCount: whole,
  ackFillSeqs: ackFillSeqsSchema,
});

/** Rows read at a time: one synchronous call of SQLite, which holds the event loop. */
const PAGE = 500;

/** Appends a checkpoint and the rows that it changed, inside a transaction of the settlement log's writer. */
export async function insertCheckpoint(
  tx: Knex.Transaction,
  head: CheckpointHead,
  changed: readonly CheckpointRow[],
): Promise<void> {
  const stored: Stored<'checkpoints'> = {
    checkpoint_seq: head.checkpointSeq,
    generation: head.generation,
    block_number: head.blockNumber,
    block_hash: head.blockHash,
    timestamp_ms: head.timestampMs,
    leaf_count: head.leafCount,
    root: head.root,
    ack_fill_seqs: JSON.stringify(head.ackFillSeqs),
  };
  await tx('checkpoints').insert(stored);
  for (const part of chunks(changed)) {
    const rows = part.map((row) => ({
      account: row.account,
      token: row.token,
      checkpoint_seq: head.checkpointSeq,
      balance_units: toColumn(row.balanceUnits),
      reserved_units: toColumn(row.reservedUnits),
    }));
    await insertAll(tx, 'checkpoint_rows', rows);
    await nextTurn();
  }
}

/** The newest checkpoint, null before the first. */
export async function lastCheckpoint(q: Queryable): Promise<CheckpointHead | null> {
  const row = await q('checkpoints').orderBy('checkpoint_seq', 'desc').first();
  return row === undefined ? null : fromHead(row);
}

/** Checkpoints with `after` < checkpointSeq, oldest first, at most `limit` (1..10000). */
export async function readCheckpoints(
  q: Queryable,
  { after, limit }: { after: number; limit: number },
): Promise<CheckpointHead[]> {
  const rows = await q('checkpoints')
    .where('checkpoint_seq', '>', after)
    .orderBy('checkpoint_seq')
    .limit(checkLimit(limit))
    .select<Stored<'checkpoints'>[]>();
  return rows.map(fromHead);
}

/** The rows that checkpoints with `after` < checkpointSeq <= `upTo` changed, each as the last of them left it. */
export async function readChangedRows(q: Queryable, after: number, upTo: number): Promise<CheckpointRow[]> {
  const newest = new Map<string, CheckpointRow>();
  for (let seq = after + 1; seq <= upTo; seq++) {
    for await (const row of pages(() => q('checkpoint_rows').where({ checkpoint_seq: seq }))) {
      newest.set(rowKey(row), row);
    }
  }
  return [...newest.values()];
}

/**
 * The balances that a generation after this one changed, as they are now; of every account, when `generation` is 0. Accounts that are no
 * address are left out. Call it within `readTx` together with the reading of the generation.
 */
export async function readBalancesSince(q: Queryable, generation: number): Promise<CheckpointRow[]> {
  const rows: CheckpointRow[] = [];
  const query = () =>
    q('balances').whereNotIn('account', [VAULT, UNATTRIBUTED, SUSPENSE]).where('generation', '>', generation);
  for await (const row of pages(query)) rows.push(row);
  return rows;
}

/**
 * All rows of the newest checkpoint, without going through the older ones: the present balances, less what changed after it. Call it
 * within `readTx` together with `lastCheckpoint`.
 */
export async function readCheckpointState(q: Queryable, head: CheckpointHead): Promise<CheckpointRow[]> {
  const rows = new Map<string, CheckpointRow>();
  await eachInSlices(await readBalancesSince(q, 0), (row) => void rows.set(rowKey(row), row));
  const since = await readBalancesSince(q, head.generation);
  for (const part of chunks(since, 100)) {
    for (const row of part) {
      const before = await q('checkpoint_rows')
        .where({ account: row.account, token: row.token })
        .where('checkpoint_seq', '<=', head.checkpointSeq)
        .orderBy('checkpoint_seq', 'desc')
        .first();
      if (before === undefined) rows.delete(rowKey(row));
      else rows.set(rowKey(row), fromRow(before));
    }
    await nextTurn();
  }
  const state: CheckpointRow[] = [];
  await eachInSlices(rows.values(), (row) => {
    if (row.balanceUnits !== 0n) state.push(row);
  });
  return state;
}

/** Rows of a table with account and token, page by page in their order; yields to the event loop between pages. */
async function* pages(query: () => Knex.QueryBuilder): AsyncGenerator<CheckpointRow> {
  let last: Stored<'checkpoint_rows'> | null = null;
  for (;;) {
    const page = query().orderBy(['account', 'token']).limit(PAGE);
    if (last !== null) void page.whereRaw('(account, token) > (?, ?)', [last.account, last.token]);
    const rows = await page.select<Stored<'checkpoint_rows'>[]>('account', 'token', 'balance_units', 'reserved_units');
    for (const row of rows) yield fromRow(row);
    if (rows.length < PAGE) return;
    last = rows[rows.length - 1]!;
    await nextTurn();
  }
}

/** Identity of a row. */
export const rowKey = ({ account, token }: { account: string; token: string }): string => `${account}:${token}`;

function fromHead(row: Stored<'checkpoints'>): CheckpointHead {
  return {
    checkpointSeq: row.checkpoint_seq,
    generation: row.generation,
    blockNumber: row.block_number,
    blockHash: row.block_hash,
    timestampMs: row.timestamp_ms,
    leafCount: row.leaf_count,
    root: row.root,
    ackFillSeqs: ackFillSeqsSchema.parse(JSON.parse(row.ack_fill_seqs)),
  };
}

function fromRow(row: Stored<'checkpoint_rows'>): CheckpointRow {
  return {
    account: row.account,
    token: row.token,
    balanceUnits: fromColumn(row.balance_units),
    reservedUnits: fromColumn(row.reserved_units),
  };
}
