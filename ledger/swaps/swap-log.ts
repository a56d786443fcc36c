/**
 * The swap log: signed orders, appended by the servers of the swap API as their quotes are (swap-quotes.ts), and attempts and outcomes,
 * appended by the executor that owns the log. Unique keys of the database ensure that a quote is used once, and a client order id once per
 * owner, so any number of servers may append at once. Whether an order was filled is in the ledger log alone.
 */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { highest, numberIn } from '../db/aggregates.js';
import { checkLimit, chunks, insertAll } from '../db/columns.js';
import { isUniqueViolation } from '../errors.js';
import { lockOwner, readPendingSales, type PendingSale } from './swap-wallets.js';
import { toQuote, type SwapQuote } from './swap-quotes.js';
import type { Db, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

export interface SwapOrder {
  id: string;
  quoteId: string;
  owner: Address;
  signature: Hex;
  clientOrderId: string | null;
  createdMs: number;
}

/**
 * An attempt to execute an order: either sent, with its outbox key and whether its route uses our curve, or refused before anything was
 * sent.
 */
export type SwapAttempt = { orderId: string; attemptNo: number; timeMs: number } & (
  { result: 'sent'; txKey: string; isOnCurve: boolean } | { result: 'refused'; code: string; message: string }
);

/** Why an order will never be filled, as of a generation of the ledger log. */
export interface SwapOutcome {
  orderId: string;
  status: 'failed' | 'expired';
  code: string;
  message: string;
  generation: number;
  timeMs: number;
}

/** Result of submitting an order: stored, already stored under its client order id, or its quote was used already. */
type Acceptance = { result: 'accepted' | 'existing'; order: SwapOrder } | { result: 'quoteUsed'; order: SwapOrder };

/**
 * Appends an order, pending from then on. Of any number of concurrent calls for one client order id, or one quote, one is accepted. `check`
 * gets the owner's other pending orders that sell the same token, and the transaction, in which no other call can add an order of the owner's;
 * when it throws, so does this, and nothing is appended. `permit` is the approval that comes with it: a call of the sell token.
 */
export async function acceptOrder(
  db: Db,
  order: SwapOrder,
  { sellToken, validToSec, isLimit }: Pick<SwapQuote, 'sellToken' | 'validToSec' | 'isLimit'>,
  check: (others: readonly PendingSale[], tx: Queryable) => void | Promise<void> = () => undefined,
  permit: Hex | null = null,
): Promise<Acceptance> {
  try {
    await db.knex.transaction(async (tx) => {
      await tx('swap_orders').insert(orderRow(order));
      if (permit !== null) await tx('swap_permits').insert({ order_id: order.id, data: permit });
      await lockOwner(tx, order.owner);
      await check(await readPendingSales(tx, order.owner, sellToken, Math.floor(order.createdMs / 1_000)), tx);
      await tx('swap_pending').insert({
        order_id: order.id,
        created_ms: order.createdMs,
        valid_to_sec: validToSec,
        owner: order.owner,
        sell_token: sellToken,
        is_limit: isLimit ? 1 : 0,
      });
    });
    return { result: 'accepted', order };
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const existing =
      order.clientOrderId === null ? null : await readClientOrder(db.knex, order.owner, order.clientOrderId);
    if (existing !== null) return { result: 'existing', order: existing };
    const user = await readOrderOfQuote(db.knex, order.quoteId);
    if (user === null) throw error;
    return { result: 'quoteUsed', order: user };
  }
}

/** One order, null when there is none of that id. */
export async function readOrder(q: Queryable, id: string): Promise<SwapOrder | null> {
  return orderWhere(q, { id });
}

/** The owner's order under its own name for it, null when there is none. */
export async function readClientOrder(q: Queryable, owner: Address, clientOrderId: string): Promise<SwapOrder | null> {
  return orderWhere(q, { owner, client_order_id: clientOrderId });
}

/** The order that used a quote, null while none did. */
export async function readOrderOfQuote(q: Queryable, quoteId: string): Promise<SwapOrder | null> {
  return orderWhere(q, { quote_id: quoteId });
}

/** An order that may still be executed, with its quote. */
export interface PendingOrder {
  order: SwapOrder;
  quote: SwapQuote;
  /** The call of the sell token by which Permit2 gets its allowance; null where the order brought none. */
  permit: Hex | null;
}

type PendingRow = Stored<'swap_quotes'> &
  Pick<Stored<'swap_orders'>, 'signature' | 'client_order_id'> & {
    order_id: string;
    placed_ms: number;
    permit: Hex | null;
  };

/** Pending orders with their quotes, and with their fills where the ledger has them. */
export const unended = (q: Queryable) =>
  q('swap_pending as pending')
    .join('swap_orders as placed', 'placed.id', 'pending.order_id')
    .join('swap_quotes as quote', 'quote.id', 'placed.quote_id')
    .leftJoin('settled_orders as fill', { 'fill.owner': 'quote.owner', 'fill.nonce': 'quote.nonce' });

/**
 * Most pending orders that take turns, the oldest, of limit orders and of the others. Servers accept fewer, so that none waits behind them without
 * being looked at.
 */
export const MOST_TURNS = 10_000;

/** The oldest `limit` (1..10000) pending orders without a fill in the ledger: limit orders, or the others. */
export async function listPending(
  q: Queryable,
  limit: number,
  isLimit: boolean,
): Promise<{ orderId: string; owner: Address }[]> {
  const rows = await unended(q)
    .whereNull('fill.generation')
    .where('pending.is_limit', isLimit ? 1 : 0)
    .orderBy(['pending.created_ms', 'pending.order_id'])
    .limit(checkLimit(limit))
    .select<{ order_id: string; owner: Address }[]>('pending.order_id', 'quote.owner');
  return rows.map(({ order_id, owner }) => ({ orderId: order_id, owner }));
}

/** Those of the given orders that are pending and without a fill in the ledger: limit orders last, else the oldest first. */
export async function readPending(q: Queryable, orderIds: readonly string[]): Promise<PendingOrder[]> {
  const found = await unended(q)
    .whereNull('fill.generation')
    .whereIn('pending.order_id', [...orderIds])
    .leftJoin('swap_permits as brought', 'brought.order_id', 'pending.order_id')
    .orderBy(['pending.is_limit', 'pending.created_ms', 'pending.order_id'])
    .select<PendingRow[]>('quote.*', {
      order_id: 'placed.id',
      signature: 'placed.signature',
      client_order_id: 'placed.client_order_id',
      placed_ms: 'placed.created_ms',
      permit: 'brought.data',
    });
  return found.map((row) => {
    const { order_id, signature, client_order_id, placed_ms } = row;
    const placed = { id: order_id, quote_id: row.id, owner: row.owner, signature, client_order_id };
    return { order: toOrder({ ...placed, created_ms: placed_ms }), quote: toQuote(row), permit: row.permit };
  });
}

/** Pending orders without a fill in the ledger, but for limit orders: how many, and when the oldest was accepted. */
export async function countPending(q: Queryable): Promise<{ count: number; oldestMs: number | null }> {
  const found = await unended(q)
    .whereNull('fill.generation')
    .where('pending.is_limit', 0)
    .count({ count: '*' })
    .min({ oldest: 'pending.created_ms' })
    .first();
  return { count: numberIn(found, 'count') ?? 0, oldestMs: numberIn(found, 'oldest') };
}

/** Pending orders that were filled at `lastBlock` or before and whose fees are stored, at most `limit` of them. */
export async function readFilledPending(q: Queryable, lastBlock: number, limit: number): Promise<string[]> {
  const rows = await unended(q)
    .join('swap_fees as fee', 'fee.tx_hash', 'fill.tx_hash')
    .where('fill.block_number', '<=', lastBlock)
    .limit(checkLimit(limit))
    .select<{ order_id: string }[]>('pending.order_id');
  return rows.map(({ order_id }) => order_id);
}

/** Appends an attempt. Inside a transaction of the swap log's writer. */
export async function insertAttempt(tx: Knex.Transaction, attempt: SwapAttempt): Promise<void> {
  const sent = attempt.result === 'sent' ? attempt : null;
  const refused = attempt.result === 'refused' ? attempt : null;
  await tx('swap_attempts').insert({
    order_id: attempt.orderId,
    attempt_no: attempt.attemptNo,
    time_ms: attempt.timeMs,
    result: attempt.result,
    tx_key: sent?.txKey ?? null,
    code: refused?.code ?? null,
    message: refused?.message ?? null,
    ...(sent === null ? {} : { on_curve: sent.isOnCurve ? 1 : 0 }),
  });
}

/**
 * Changes whether an attempt's route uses our curve, when it is sent by another route than it was begun with. Inside a transaction of the
 * swap log's writer.
 */
export async function changeAttempt(tx: Knex.Transaction, txKey: string, isOnCurve: boolean): Promise<void> {
  await tx('swap_attempts')
    .where({ tx_key: txKey })
    .update({ on_curve: isOnCurve ? 1 : 0 });
}

/**
 * Changes why the newest attempt of an order was refused, and since when. Inside a transaction of the swap log's writer.
 */
export async function changeRefusal(tx: Knex.Transaction, refused: SwapAttempt & { result: 'refused' }): Promise<void> {
  const { orderId, attemptNo, timeMs, code, message } = refused;
  await tx('swap_attempts')
    .where({ order_id: orderId, attempt_no: attemptNo, result: 'refused' })
    .update({ time_ms: timeMs, code, message });
}

/** Every attempt of an order, oldest first. */
export async function readAttempts(q: Queryable, orderId: string): Promise<SwapAttempt[]> {
  return (await q('swap_attempts').where({ order_id: orderId }).orderBy('attempt_no').select()).map(toAttempt);
}

/** An attempt as it is stored, without its transactions. */
export function toAttempt(row: Stored<'swap_attempts'>): SwapAttempt {
  const common = { orderId: row.order_id, attemptNo: row.attempt_no, timeMs: row.time_ms };
  if (row.result === 'sent') {
    return { ...common, result: 'sent', txKey: row.tx_key ?? '', isOnCurve: row.on_curve !== 0 };
  }
  return { ...common, result: 'refused', code: row.code ?? '', message: row.message ?? '' };
}

/** Every transaction that was signed for one key of the outbox, its replacements included, oldest first. */
export async function readTransactions(
  q: Queryable,
  txKey: string,
): Promise<{ hash: Hex; nonce: number; isFinished: boolean }[]> {
  const rows = await q('outbox')
    .where({ tx_key: txKey })
    .orderBy(['sent_ms', 'hash'])
    .select<Pick<Stored<'outbox'>, 'hash' | 'nonce' | 'finished'>[]>('hash', 'nonce', 'finished');
  return rows.map(({ hash, nonce, finished }) => ({ hash, nonce, isFinished: finished !== 0 }));
}

/** Ends an order that was not filled. Inside a transaction of the swap log's writer. */
export async function insertOutcome(tx: Knex.Transaction, outcome: SwapOutcome): Promise<void> {
  await tx('swap_outcomes').insert({
    order_id: outcome.orderId,
    status: outcome.status,
    code: outcome.code,
    message: outcome.message,
    generation: outcome.generation,
    time_ms: outcome.timeMs,
  });
  await closeOrders(tx, [outcome.orderId]);
}

/** Removes orders from the list of pending ones. Inside a transaction of the swap log's writer. */
export async function closeOrders(tx: Knex.Transaction, orderIds: readonly string[]): Promise<void> {
  for (const part of chunks(orderIds)) await tx('swap_pending').whereIn('order_id', part).delete();
}

/** Those of the keys of transactions whose orders ended unfilled, or were cancelled: none of them may be filled by them any more. */
export async function endedKeys(q: Queryable, txKeys: readonly string[]): Promise<Set<string>> {
  const rows = await q('swap_attempts as attempt')
    .leftJoin('swap_outcomes as ended', 'ended.order_id', 'attempt.order_id')
    .leftJoin('swap_cancellations as cancelled', 'cancelled.order_id', 'attempt.order_id')
    .whereIn('attempt.tx_key', [...txKeys])
    .where((either) => void either.whereNotNull('ended.order_id').orWhereNotNull('cancelled.order_id'))
    .select<{ tx_key: string }[]>('attempt.tx_key');
  return new Set(rows.map(({ tx_key }) => tx_key));
}

/**
 * Makes orders pending again whose fills a reorganisation removed, except those that ended otherwise or were cancelled, as is possible
 * after the swap log was restored to a time before their fills. Inside a transaction of the ledger log's writer.
 */
export async function reopenOrders(
  tx: Knex.Transaction,
  fills: readonly { owner: string; nonce: string }[],
): Promise<void> {
  for (const { owner, nonce } of fills) {
    const rows = await tx('swap_quotes as quote')
      .join('swap_orders as placed', 'placed.quote_id', 'quote.id')
      .leftJoin('swap_outcomes as ended', 'ended.order_id', 'placed.id')
      .leftJoin('swap_cancellations as cancelled', 'cancelled.order_id', 'placed.id')
      .leftJoin('swap_pending as pending', 'pending.order_id', 'placed.id')
      .where({ 'quote.owner': owner, 'quote.nonce': nonce })
      .whereNull('ended.order_id')
      .whereNull('cancelled.order_id')
      .whereNull('pending.order_id')
      .select<object[]>('quote.valid_to_sec', 'quote.owner', 'quote.sell_token', 'quote.is_limit', {
        order_id: 'placed.id',
        created_ms: 'placed.created_ms',
      });
    await insertAll(tx, 'swap_pending', rows);
  }
}

/** An outcome as it is stored. */
export function toOutcome({ order_id, time_ms, ...rest }: Stored<'swap_outcomes'>): SwapOutcome {
  return { orderId: order_id, timeMs: time_ms, ...rest };
}

/** When an order was last attempted, or ended unfilled; null if never. */
export async function lastSwapAct(q: Queryable): Promise<number | null> {
  const attempted = await highest(q('swap_attempts'), 'time_ms');
  return Math.max(attempted ?? 0, (await highest(q('swap_outcomes'), 'time_ms')) ?? 0) || null;
}

async function orderWhere(q: Queryable, where: Partial<Stored<'swap_orders'>>): Promise<SwapOrder | null> {
  const row = await q('swap_orders').where(where).first();
  return row === undefined ? null : toOrder(row);
}

export const toOrder = (row: Stored<'swap_orders'>): SwapOrder => ({
  id: row.id,
  quoteId: row.quote_id,
  owner: row.owner,
  signature: row.signature,
  clientOrderId: row.client_order_id,
  createdMs: row.created_ms,
});

function orderRow(order: SwapOrder): Stored<'swap_orders'> {
  return {
    id: order.id,
    quote_id: order.quoteId,
    owner: order.owner,
    signature: order.signature,
    client_order_id: order.clientOrderId,
    created_ms: order.createdMs,
  };
}
