/** What mined transactions of the poster cost. One row per nonce, written by the publication log's writer. */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, toColumn } from '../db/columns.js';
import type { Queryable } from '../types.js';

export interface PostCost {
  signer: Address;
  nonce: number;
  hash: Hex;
  txKey: string;
  blockNumber: number;
  gasUsed: number;
  /** With the data fee of a rollup. */
  feeWei: bigint;
  /** False for a transaction that reverted, or a nonce that another transaction took. */
  succeeded: boolean;
  seenMs: number;
}

interface StoredRow {
  signer: string;
  nonce: number;
  hash: string;
  tx_key: string;
  block_number: number;
  gas_used: number;
  fee_wei: string;
  succeeded: number;
  seen_ms: number;
}

/** Appends costs; a nonce that is there already violates the primary key. */
export async function insertPostCosts(tx: Knex.Transaction, costs: readonly PostCost[]): Promise<void> {
  for (const cost of costs) {
    await tx('post_costs').insert({
      signer: cost.signer,
      nonce: cost.nonce,
      hash: cost.hash,
      tx_key: cost.txKey,
      block_number: cost.blockNumber,
      gas_used: cost.gasUsed,
      fee_wei: toColumn(cost.feeWei),
      succeeded: cost.succeeded ? 1 : 0,
      seen_ms: cost.seenMs,
    });
  }
}

/** Costs seen after `sinceMs`, oldest first. */
export async function readPostCosts(q: Queryable, signer: Address, sinceMs: number): Promise<PostCost[]> {
  const rows = (await q('post_costs')
    .where({ signer })
    .where('seen_ms', '>', sinceMs)
    .orderBy('nonce')
    .select()) as StoredRow[];
  return rows.map((row) => ({
    signer: row.signer as Address,
    nonce: row.nonce,
    hash: row.hash as Hex,
    txKey: row.tx_key,
    blockNumber: row.block_number,
    gasUsed: row.gas_used,
    feeWei: fromColumn(row.fee_wei),
    succeeded: row.succeeded === 1,
    seenMs: row.seen_ms,
  }));
}

/** Transactions at nonces that the chain has used and whose cost is unknown, lowest nonce first, at most `limit`. */
export async function readUncosted(
  q: Queryable,
  signer: Address,
  limit: number,
): Promise<{ nonce: number; hash: Hex; txKey: string; sentMs: number }[]> {
  const known = q('post_costs').where({ signer }).max('nonce');
  const rows = await q('outbox')
    .where({ signer, finished: 1 })
    .where('nonce', '>', q.raw('coalesce((?), -1)', [known]))
    .orderBy([{ column: 'nonce' }, { column: 'sent_ms' }])
    .limit(limit)
    .select<{ nonce: number; hash: string; tx_key: string; sent_ms: number }[]>('nonce', 'hash', 'tx_key', 'sent_ms');
  return rows.map((row) => ({ nonce: row.nonce, hash: row.hash as Hex, txKey: row.tx_key, sentMs: row.sent_ms }));
}
