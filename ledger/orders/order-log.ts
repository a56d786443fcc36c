import { decodeEffects, encodeEffects } from '../../core/json.js';
import type { Address, OrderLogRow } from '../../core/types.js';
import type { Knex } from 'knex';
import type { Tables } from 'knex/types/tables.js';
import { highest } from '../db/aggregates.js';
import { checkLimit, insertValues } from '../db/columns.js';
import type { Queryable } from '../types.js';

/**
 * Appends rows, which the caller numbered without gaps after `lastOrderSeq`, inside a transaction of the order log's writer.
 * A number, or a nonce of the same signer, that is already there violates a unique key.
 */
export async function appendOrderRows(tx: Knex.Transaction, rows: readonly OrderLogRow[]): Promise<void> {
  const stored = rows.map(({ orderSeq, timeMs, maker, signer, nonce, kind, effects }) => [
    orderSeq,
    timeMs,
    maker,
    signer,
    nonce,
    kind,
    encodeEffects(effects),
  ]);
  await insertValues(tx, 'order_log', COLUMNS, stored);
}

const COLUMNS = ['order_seq', 'time_ms', 'maker', 'signer', 'nonce', 'kind', 'effects'] as const;

/** Rows with `after` < orderSeq <= `upTo`, oldest first, at most `limit` (1..10000). */
export async function readOrderRows(
  q: Queryable,
  range: { after: number; upTo?: number; limit: number },
): Promise<OrderLogRow[]> {
  const query = q('order_log').where('order_seq', '>', range.after).orderBy('order_seq').limit(checkLimit(range.limit));
  if (range.upTo !== undefined) void query.where('order_seq', '<=', range.upTo);
  return (await query.select()).map(rowOf);
}

/** The row in which a signer used a nonce; null when there is none, or it was compacted. */
export async function readOrderRowOf(q: Queryable, signer: Address, nonce: number): Promise<OrderLogRow | null> {
  const row = await q('order_log').where({ signer, nonce }).first();
  return row === undefined ? null : rowOf(row);
}

const rowOf = (row: Tables['order_log']): OrderLogRow => ({
  orderSeq: row.order_seq,
  timeMs: row.time_ms,
  maker: row.maker,
  signer: row.signer,
  nonce: row.nonce,
  kind: row.kind,
  effects: decodeEffects(row.effects),
});

/** Number of the newest row, 0 for an empty log. */
export async function lastOrderSeq(q: Queryable): Promise<number> {
  return (await highest(q('order_log'), 'order_seq')) ?? 0;
}
