/** What the wallet behind gasless orders has promised, and what its orders have cost that reverted. */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import type { Dealing } from '../../core/swap/trust.js';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, toColumn } from '../db/columns.js';
import { COST_TABLES, type TransactionCost } from '../transactions/costs.js';
import { readUnmined } from '../transactions/outbox.js';
import type { Queryable } from '../types.js';

/** More fills, swaps or reverts of an owner than this are not looked at. */
const MOST_DEALINGS = 64;

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
    .update({ issued: tx.raw<number>('issued') });
}

/** An order of which a transaction may still revert: it is signed, and what became of it is not known. */
export interface UndecidedSale {
  owner: Address;
  sellToken: Address;
  /** The newest signed transaction of the order; those that it replaces differ by their fees alone. */
  raw: Hex;
}

/**
 * One entry per order, ended or not: of every signer what the chain has not used as far as its keeper knows, and what was mined and is not among the
 * costs yet.
 */
export async function readUndecidedSales(q: Queryable): Promise<UndecidedSale[]> {
  const signers = (await readUnmined(q)).filter(({ count }) => count > 0).map((one) => one.signer);
  const uncosted = await readUncostedOrders(q);
  const rows = await q('outbox as sent')
    .join('swap_attempts as attempt', 'attempt.tx_key', 'sent.tx_key')
    .join('swap_orders as placed', 'placed.id', 'attempt.order_id')
    .join('swap_quotes as quote', 'quote.id', 'placed.quote_id')
    .where((either) => {
      void either.where('sent.finished', 0).whereIn('sent.signer', signers);
      for (const { signer, costedNonce } of uncosted) {
        void either.orWhere((used) => {
          void used.where({ 'sent.signer': signer, 'sent.finished': 1 }).where('sent.nonce', '>', costedNonce);
        });
      }
    })
    .orderBy('sent.sent_ms')
    .select<{ order_id: string; owner: Address; sell_token: Address; raw: Hex }[]>(
      'placed.id as order_id',
      'placed.owner',
      'quote.sell_token',
      'sent.raw',
    );
  const sales = rows.map(
    (row) => [row.order_id, { owner: row.owner, sellToken: row.sell_token, raw: row.raw }] as const,
  );
  return [...new Map(sales).values()];
}

/** Transactions of orders that were mined and are not among the costs. */
interface UncostedOrders {
  signer: Address;
  /** Highest nonce of which the cost is known; -1 without any. */
  costedNonce: number;
  /** Highest nonce of a transaction of an order. */
  lastNonce: number;
}

/** Of every signer that has any, whether its key is in use or not. What other keepers have noted of a key that was theirs since is theirs. */
export async function readUncostedOrders(q: Queryable): Promise<UncostedOrders[]> {
  const found: UncostedOrders[] = [];
  for (const { signer } of await readUnmined(q)) {
    let costedNonce = -1;
    for (const table of Object.values(COST_TABLES)) {
      const row: unknown = await q(table).where({ signer }).max({ last: 'nonce' }).first();
      costedNonce = Math.max(costedNonce, (row as { last: number | null }).last ?? -1);
    }
    const row: unknown = await q('outbox as sent')
      .join('swap_attempts as attempt', 'attempt.tx_key', 'sent.tx_key')
      .where({ 'sent.signer': signer, 'sent.finished': 1 })
      .where('sent.nonce', '>', costedNonce)
      .max({ last: 'sent.nonce' })
      .first();
    const { last } = row as { last: number | null };
    if (last !== null) found.push({ signer, costedNonce, lastNonce: last });
  }
  return found;
}

/** Appends those of mined transactions that are of orders and reverted; one that is known stays as it is. */
export async function insertReverts(tx: Knex.Transaction, mined: readonly TransactionCost[]): Promise<void> {
  for (const { txKey, hash, blockNumber, gasUsed, succeeded, seenMs } of mined) {
    if (succeeded || gasUsed === 0) continue;
    const order = await tx('swap_attempts as attempt')
      .join('swap_orders as placed', 'placed.id', 'attempt.order_id')
      .where('attempt.tx_key', txKey)
      .first<{ id: string; owner: Address } | undefined>('placed.id', 'placed.owner');
    if (order === undefined) continue;
    const row = { tx_hash: hash, order_id: order.id, owner: order.owner, block_number: blockNumber, time_ms: seenMs };
    await tx('swap_reverts')
      .insert({ ...row, gas_used: toColumn(BigInt(gasUsed)) })
      .onConflict('tx_hash')
      .ignore();
  }
}

/**
 * What an owner did and what happened to transactions for it, in the order of the chain: the newest of each kind, fills of its orders, swaps that it
 * sent to the entrypoint, and reverts. Within a block reverts come last. A swap in the block of a fill is taken for that of the fill.
 */
export async function readDealings(q: Queryable, owner: Address): Promise<Dealing[]> {
  const newest = [{ column: 'block_number', order: 'desc' }];
  const fills = await q('settled_orders').where({ owner }).orderBy(newest).limit(MOST_DEALINGS).select('block_number');
  const swaps = await q('fills').where({ taker: owner }).orderBy(newest).limit(MOST_DEALINGS).select('block_number');
  const reverts = await q('swap_reverts')
    .where({ owner })
    .orderBy(newest)
    .limit(MOST_DEALINGS)
    .select<{ block_number: number | string; gas_used: string }[]>('block_number', 'gas_used');
  const filled = new Set(fills.map(blockOf));
  const dated: (Dealing & { block: number })[] = [
    ...fills.map((row) => ({ kind: 'fill' as const, block: blockOf(row) })),
    ...swaps.map((row) => ({ kind: 'swap' as const, block: blockOf(row) })).filter(({ block }) => !filled.has(block)),
    ...reverts.map((row) => ({ kind: 'revert' as const, gasUsed: fromColumn(row.gas_used), block: blockOf(row) })),
  ];
  return dated.sort((a, b) => a.block - b.block).map(({ block: _, ...dealing }) => dealing);
}

const blockOf = (row: { block_number: number | string }): number => toSafeInt(BigInt(row.block_number));

/** Reverted transactions of all orders since `sinceMs`, and the gas that they burnt. */
export async function sumReverts(q: Queryable, sinceMs: number): Promise<{ count: number; gasUsed: bigint }> {
  const rows = await q('swap_reverts').where('time_ms', '>=', sinceMs).select<{ gas_used: string }[]>('gas_used');
  return { count: rows.length, gasUsed: rows.reduce((sum, { gas_used }) => sum + fromColumn(gas_used), 0n) };
}

/** Reverts since `sinceMs` for owners of whom the chain had seen no fill and no swap before, the oldest first. */
export async function readUnprovenReverts(
  q: Queryable,
  sinceMs: number,
): Promise<{ timeMs: number; gasUsed: bigint }[]> {
  const rows = await q('swap_reverts as burnt')
    .where('burnt.time_ms', '>=', sinceMs)
    .whereNotExists((fill) => {
      void fill.select(q.raw('1')).from('settled_orders as fill');
      void fill.whereRaw('fill.owner = burnt.owner and fill.block_number < burnt.block_number');
    })
    .whereNotExists((swap) => {
      void swap.select(q.raw('1')).from('fills as swap');
      void swap.whereRaw('swap.taker = burnt.owner and swap.block_number < burnt.block_number');
    })
    .orderBy('burnt.time_ms')
    .select<{ time_ms: number | string; gas_used: string }[]>('burnt.time_ms', 'burnt.gas_used');
  return rows.map((row) => ({ timeMs: toSafeInt(BigInt(row.time_ms)), gasUsed: fromColumn(row.gas_used) }));
}

/** Those of the owners of whom the chain has seen a fill or a swap. */
export async function readProven(q: Queryable, owners: readonly Address[]): Promise<Set<Address>> {
  const filled = await q('settled_orders').whereIn('owner', owners).distinct<{ owner: Address }[]>('owner');
  const swapped = await q('fills').whereIn('taker', owners).distinct<{ taker: Address }[]>('taker');
  return new Set([...filled.map(({ owner }) => owner), ...swapped.map(({ taker }) => taker)]);
}
