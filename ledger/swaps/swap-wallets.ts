/** What an owner's pending orders may take from its wallet, and what its reverted orders have cost. */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import type { Dealing } from '../../core/swap/trust.js';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, toColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import { COST_TABLES, type TransactionCost } from '../transactions/costs.js';
import { SIGNERS_CTE, readUnmined } from '../transactions/outbox.js';
import type { Queryable } from '../types.js';

/** Newest fills, transactions with swaps, and reverts of an owner that are read, each. */
const MOST_DEALINGS = 64;
/** Newest fills on our curve by an owner's swaps in which those transactions are looked for: each may have many. */
const MOST_SWAPPED = 8 * MOST_DEALINGS;

/** What a pending order may take of its owner's sell token. */
export interface PendingSale {
  orderId: string;
  /** Permit2's. */
  nonce: bigint;
  /** The most that it takes, and what it takes if prices do not change. */
  sellUnits: bigint;
  expectedSellUnits: bigint;
  isLimit: boolean;
}

type PendingSaleRow = Pick<Stored<'swap_quotes'>, 'nonce' | 'sell_units' | 'expected_sell_units'> &
  Pick<Stored<'swap_pending'>, 'order_id' | 'is_limit'>;

// Every quote reads what follows: as text, because the query builder takes longer than the database.
const PENDING_SALES = `
  select pending.order_id, pending.is_limit, quote.nonce, quote.sell_units, quote.expected_sell_units
  from swap_pending as pending
  join swap_orders as placed on placed.id = pending.order_id
  join swap_quotes as quote on quote.id = placed.quote_id
  left join settled_orders as fill on fill.owner = quote.owner and fill.nonce = quote.nonce
  where pending.owner = ? and pending.sell_token = ? and pending.valid_to_sec >= ? and fill.generation is null`;

/** The owner's pending orders that sell `sellToken`, may still be executed at `nowSec`, and have no fill in the ledger. */
export async function readPendingSales(
  q: Queryable,
  owner: Address,
  sellToken: Address,
  nowSec: number,
): Promise<PendingSale[]> {
  const rows = await sendForRows<PendingSaleRow>(q, PENDING_SALES, [owner, sellToken, nowSec]);
  return rows.map((row) => ({
    orderId: row.order_id,
    nonce: fromColumn(row.nonce),
    sellUnits: fromColumn(row.sell_units),
    expectedSellUnits: fromColumn(row.expected_sell_units),
    isLimit: row.is_limit !== 0,
  }));
}

/**
 * Locks the owner's row until the transaction ends, so that one transaction at a time checks and adds its orders. Every owner of a quote
 * has the row.
 */
export async function lockOwner(tx: Knex.Transaction, owner: Address): Promise<void> {
  await tx('swap_nonces')
    .where({ owner })
    .update({ issued: tx.raw<number>('issued') });
}

/** An order with a transaction that may still revert: it is signed, and its result is not known. */
export interface UndecidedSale {
  owner: Address;
  sellToken: Address;
  /** The newest signed transaction of the order; those that it replaces differ by their fees alone. */
  raw: Hex;
}

/**
 * One entry per order, ended or not: orders with transactions whose nonces the chain has not used as far as the signer's keeper knows, or
 * that were mined and whose costs are not stored yet.
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

/** Mined transactions of orders whose costs are not stored. */
interface UncostedOrders {
  signer: Address;
  /** Highest nonce of which the cost is known; -1 without any. */
  costedNonce: number;
  /** Highest nonce of a transaction of an order. */
  lastNonce: number;
}

/**
 * For every signer that has any, whether its key is in use or not. Nonces whose cost another role's keeper has stored, because it used the
 * key, are not counted.
 */
export async function readUncostedOrders(q: Queryable): Promise<UncostedOrders[]> {
  const rows = await sendForRows<{ signer: Address; costed: number; last: number | null }>(q, UNCOSTED);
  return rows.flatMap(({ signer, costed, last }) =>
    last === null ? [] : [{ signer, costedNonce: costed, lastNonce: last }],
  );
}

const COSTED = Object.values(COST_TABLES)
  .map((table) => `select max(nonce) as nonce from ${table} where ${table}.signer = signers.signer`)
  .join(' union all ');
const UNCOSTED = `with ${SIGNERS_CTE}, known as (
    select signer, coalesce((select max(nonce) from (${COSTED}) as costs), -1) as costed
    from signers where signer is not null
  )
  select signer, costed, (
    select max(sent.nonce) from outbox as sent join swap_attempts as attempt on attempt.tx_key = sent.tx_key
    where sent.signer = known.signer and sent.finished = 1 and sent.nonce > known.costed
  ) as last from known order by signer`;

/** Stores the mined transactions that belong to orders and reverted; one that is stored already stays unchanged. */
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

/** The newest transaction that was signed for an order at a nonce. */
interface OrderSent {
  orderId: string;
  owner: Address;
  hash: Hex;
  raw: Hex;
}

/**
 * The order for which a transaction was signed at a nonce; null without one, and when the ledger has its fill by a transaction of that
 * nonce.
 */
export async function readUnfilledAt(q: Queryable, signer: Address, nonce: number): Promise<OrderSent | null> {
  const rows = await q('outbox as sent')
    .join('swap_attempts as attempt', 'attempt.tx_key', 'sent.tx_key')
    .join('swap_orders as placed', 'placed.id', 'attempt.order_id')
    .leftJoin('settled_orders as fill', 'fill.tx_hash', 'sent.hash')
    .where({ 'sent.signer': signer, 'sent.nonce': nonce })
    .orderBy([{ column: 'sent.sent_ms', order: 'desc' }, { column: 'sent.hash' }])
    .select<{ order_id: string; owner: Address; hash: Hex; raw: Hex; filled: string | null }[]>(
      'placed.id as order_id',
      'placed.owner',
      'sent.hash',
      'sent.raw',
      'fill.tx_hash as filled',
    );
  const [newest] = rows;
  if (newest === undefined || rows.some(({ filled }) => filled !== null)) return null;
  return { orderId: newest.order_id, owner: newest.owner, hash: newest.hash, raw: newest.raw };
}

/**
 * Charges a transaction to its owner as if it had reverted and burnt `gasUsed`, because its result is unknown. In the order of the chain it
 * counts as of `blockNumber`.
 */
export async function insertPresumedRevert(
  tx: Knex.Transaction,
  { orderId, owner, hash }: OrderSent,
  { gasUsed, blockNumber, timeMs }: { gasUsed: bigint; blockNumber: number; timeMs: number },
): Promise<void> {
  const row = { tx_hash: hash, order_id: orderId, owner, block_number: blockNumber, time_ms: timeMs };
  await tx('swap_reverts')
    .insert({ ...row, gas_used: toColumn(gasUsed) })
    .onConflict('tx_hash')
    .ignore();
}

/** Deletes the reverts that are charged to owners for these nonces, because their result turned out otherwise or is not known yet. */
export async function dropReverts(tx: Knex.Transaction, signer: Address, nonces: readonly number[]): Promise<void> {
  for (const nonce of nonces) {
    const hashes = tx('outbox').where({ signer, nonce }).select('hash');
    await tx('swap_reverts').whereIn('tx_hash', hashes).delete();
  }
}

/**
 * The dealings of an owner, in the order of the chain: the newest fills of its orders, swaps that it sent to the entrypoint, and reverts.
 * Within a block reverts come last. A swap in the block of a fill counts as part of the fill. What a swap earns is the cost of a whole
 * transaction, so all swaps of one transaction are one, and those of a transaction in which other accounts swapped too are none: code can
 * make each further one for a fraction.
 */
export async function readDealings(q: Queryable, owner: Address): Promise<Dealing[]> {
  const rows = await sendForRows<DealingRow>(q, DEALINGS, [owner, owner, owner]);
  const filled = new Set(rows.filter(({ kind }) => kind === 'fill').map(({ block_number }) => block_number));
  return rows
    .filter(({ kind, block_number }) => kind !== 'swap' || !filled.has(block_number))
    .sort((a, b) => a.block_number - b.block_number || ORDER[a.kind] - ORDER[b.kind])
    .map(({ kind, gas_used }) => (kind === 'revert' ? { kind, gasUsed: fromColumn(gas_used) } : { kind }));
}

interface DealingRow {
  kind: Dealing['kind'];
  block_number: number;
  /** Zero of all but reverts. */
  gas_used: string;
}

/** Within a block. */
const ORDER: Readonly<Record<Dealing['kind'], number>> = { fill: 0, swap: 1, revert: 2 };

const newestOf = (kind: Dealing['kind'], table: string, where: string, gasUsed: string): string =>
  `select '${kind}' as kind, block_number, ${gasUsed} as gas_used from (
     select * from ${table} where ${where} = ? order by block_number desc limit ${MOST_DEALINGS}
   ) as ${kind}s`;
const DEALINGS = [
  newestOf('fill', 'settled_orders', 'owner', "'0'"),
  `select 'swap' as kind, block_number, '0' as gas_used from (
     select distinct tx_hash, block_number from (
       select tx_hash, block_number from fills where taker = ? order by block_number desc limit ${MOST_SWAPPED}
     ) as swapped order by block_number desc limit ${MOST_DEALINGS}
   ) as swaps
   where (select count(distinct beside.taker) from fills as beside where beside.tx_hash = swaps.tx_hash) = 1`,
  newestOf('revert', 'swap_reverts', 'owner', 'cast(gas_used as text)'),
].join(' union all ');

/** Reverted transactions of all orders since `sinceMs`, and the gas that they burnt. */
export async function sumReverts(q: Queryable, sinceMs: number): Promise<{ count: number; gasUsed: bigint }> {
  const rows = await q('swap_reverts').where('time_ms', '>=', sinceMs).select<{ gas_used: string }[]>('gas_used');
  return { count: rows.length, gasUsed: rows.reduce((sum, { gas_used }) => sum + fromColumn(gas_used), 0n) };
}

/** Reverts since `sinceMs` for owners without an earlier fill or swap on the chain, the oldest first. */
export async function readUnprovenReverts(
  q: Queryable,
  sinceMs: number,
): Promise<{ timeMs: number; gasUsed: bigint }[]> {
  const rows = await sendForRows<Pick<Stored<'swap_reverts'>, 'time_ms' | 'gas_used'>>(q, UNPROVEN_REVERTS, [sinceMs]);
  return rows.map((row) => ({ timeMs: row.time_ms, gasUsed: fromColumn(row.gas_used) }));
}

const UNPROVEN_REVERTS = `
  select burnt.time_ms, burnt.gas_used from swap_reverts as burnt
  where burnt.time_ms >= ?
    and not exists (select 1 from settled_orders as fill where fill.owner = burnt.owner and fill.block_number < burnt.block_number)
    and not exists (select 1 from fills as swap where swap.taker = burnt.owner and swap.block_number < burnt.block_number)
  order by burnt.time_ms`;

/** Those of the owners that have a fill or a swap on the chain. */
export async function readProven(q: Queryable, owners: readonly Address[]): Promise<Set<Address>> {
  const filled = await q('settled_orders').whereIn('owner', owners).distinct<{ owner: Address }[]>('owner');
  const swapped = await q('fills').whereIn('taker', owners).distinct<{ taker: Address }[]>('taker');
  return new Set([...filled.map(({ owner }) => owner), ...swapped.map(({ taker }) => taker)]);
}

/** Pending orders without a fill in the ledger, but for limit orders, of owners without a fill or a swap on the chain. */
export async function countUnproven(q: Queryable): Promise<number> {
  const [row] = await sendForRows<{ count: number | string }>(q, UNPROVEN_PENDING, []);
  return toSafeInt(BigInt(row?.count ?? 0));
}

const UNPROVEN_PENDING = `
  select count(*) as count from swap_pending as pending
  join swap_orders as placed on placed.id = pending.order_id
  join swap_quotes as quote on quote.id = placed.quote_id
  where pending.is_limit = 0
    and not exists (select 1 from settled_orders as fill where fill.owner = quote.owner)
    and not exists (select 1 from fills as swap where swap.taker = quote.owner)`;

/** Pending limit orders, and how many of them are of owners without a fill or a swap on the chain; of those, how many are `owner`'s. */
export async function countLimits(
  q: Queryable,
  owner: Address,
): Promise<{ all: number; unproven: number; isProven: boolean; own: number }> {
  const rows = await q('swap_pending')
    .where({ is_limit: 1 })
    .groupBy('owner')
    .select<{ owner: Address; limits: number | string }[]>('owner', q.raw('count(*) as limits'));
  const counts = rows.map((row) => ({ owner: row.owner, limits: toSafeInt(BigInt(row.limits)) }));
  const proven = await readProven(q, [owner, ...counts.map((one) => one.owner)]);
  const sum = (some: typeof counts): number => some.reduce((total, { limits }) => total + limits, 0);
  return {
    all: sum(counts),
    unproven: sum(counts.filter((one) => !proven.has(one.owner))),
    isProven: proven.has(owner),
    own: counts.find((one) => one.owner === owner)?.limits ?? 0,
  };
}
