/** What the wallet behind gasless orders has promised, and what its orders have cost that reverted. */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import type { Reverts } from '../../core/swap/trust.js';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, toColumn } from '../db/columns.js';
import { readUnmined } from '../transactions/outbox.js';
import type { Queryable } from '../types.js';

/** More of an owner's swaps than this are not counted. */
const MOST_SWAPS = 8;

/** A pending order as far as it binds its owner's sell token. */
export interface PendingSale {
  orderId: string;
  /** Permit2's. */
  nonce: bigint;
  /** The most that it takes, and what it takes if nothing moves. */
  sellUnits: bigint;
  expectedSellUnits: bigint;
}

/** The owner's orders that sell `sellToken`, did not end, may still be executed at `nowSec`, and that, by the ledger, nobody filled. */
export async function readPendingSales(
  q: Queryable,
  owner: Address,
  sellToken: Address,
  nowSec: number,
): Promise<PendingSale[]> {
  const rows = await q('swap_pending as pending')
    .join('swap_orders as placed', 'placed.id', 'pending.order_id')
    .join('swap_quotes as quote', 'quote.id', 'placed.quote_id')
    .leftJoin('settled_orders as fill', { 'fill.owner': 'quote.owner', 'fill.nonce': 'quote.nonce' })
    .where({ 'pending.owner': owner, 'pending.sell_token': sellToken })
    .where('pending.valid_to_sec', '>=', nowSec)
    .whereNull('fill.generation')
    .select<{ order_id: string; nonce: string; sell_units: string; expected_sell_units: string }[]>(
      'pending.order_id',
      'quote.nonce',
      'quote.sell_units',
      'quote.expected_sell_units',
    );
  return rows.map((row) => ({
    orderId: row.order_id,
    nonce: fromColumn(row.nonce),
    sellUnits: fromColumn(row.sell_units),
    expectedSellUnits: fromColumn(row.expected_sell_units),
  }));
}

/** Lets one transaction at a time judge what an owner may promise, until it ends. Every owner of a quote has the row. */
export async function lockOwner(tx: Knex.Transaction, owner: Address): Promise<void> {
  await tx('swap_nonces')
    .where({ owner })
    .update({ issued: tx.ref('issued') });
}

/** Wallets of pending orders of which a transaction is signed and, as far as its signer knows, not mined: one entry per order. */
export async function readUnminedSales(q: Queryable): Promise<{ owner: Address; sellToken: Address }[]> {
  const signers = (await readUnmined(q)).filter(({ count }) => count > 0).map(({ signer }) => signer);
  if (signers.length === 0) return [];
  const rows = await q('outbox as sent')
    .join('swap_attempts as attempt', 'attempt.tx_key', 'sent.tx_key')
    .join('swap_pending as pending', 'pending.order_id', 'attempt.order_id')
    .where('sent.finished', 0)
    .whereIn('sent.signer', signers)
    .distinct<{ order_id: string; owner: string; sell_token: string }[]>(
      'pending.order_id',
      'pending.owner',
      'pending.sell_token',
    );
  return rows.map((row) => ({ owner: row.owner as Address, sellToken: row.sell_token as Address }));
}

/** A transaction of an order that was mined and reverted. */
export interface SwapRevert {
  txHash: Hex;
  orderId: string;
  owner: Address;
  blockNumber: number;
  gasUsed: bigint;
  timeMs: number;
}

/** Appends a revert; one that is known stays as it is. Inside a transaction of the swap log's writer. */
export async function insertRevert(tx: Knex.Transaction, revert: SwapRevert): Promise<void> {
  await tx('swap_reverts')
    .insert({
      tx_hash: revert.txHash,
      order_id: revert.orderId,
      owner: revert.owner,
      block_number: revert.blockNumber,
      gas_used: toColumn(revert.gasUsed),
      time_ms: revert.timeMs,
    })
    .onConflict('tx_hash')
    .ignore();
}

/**
 * The transactions of an owner's orders that reverted, without those before the block of its newest fill, and the swaps that the owner sent to
 * the entrypoint in later blocks than the newest of them.
 */
export async function readReverts(q: Queryable, owner: Address): Promise<Reverts> {
  const fill = (await q('settled_orders').where({ owner }).max({ last: 'block_number' }).first()) as {
    last: number | null;
  };
  const reverts = (await q('swap_reverts')
    .where({ owner })
    .where('block_number', '>', fill.last ?? -1)
    .count({ count: '*' })
    .max({ last: 'block_number' })
    .first()) as { count: number | string; last: number | null };
  const swaps =
    reverts.last === null
      ? []
      : await q('fills')
          .where({ taker: owner })
          .where('block_number', '>', reverts.last)
          .limit(MOST_SWAPS)
          .select('fill_seq');
  return { sinceFill: toSafeInt(BigInt(reverts.count)), swapsSince: swaps.length };
}

/** Reverted transactions of all orders since `sinceMs`, and the gas that they burnt. */
export async function sumReverts(q: Queryable, sinceMs: number): Promise<{ count: number; gasUsed: bigint }> {
  const rows = await q('swap_reverts').where('time_ms', '>=', sinceMs).select<{ gas_used: string }[]>('gas_used');
  return { count: rows.length, gasUsed: rows.reduce((sum, { gas_used }) => sum + fromColumn(gas_used), 0n) };
}
