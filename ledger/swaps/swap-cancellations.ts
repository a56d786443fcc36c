/** Orders that their owners cancelled. Of a cancellation and a transaction for the same order only the first is accepted. */
import type { Knex } from 'knex';
import type { Hex } from '../../core/types.js';
import { closeOrders, readAttempts } from './swap-log.js';
import type { Db, Queryable } from '../types.js';

interface SwapCancellation {
  orderId: string;
  /** The owner's signature of the cancellation. */
  signature: Hex;
  timeMs: number;
}

/** How a cancellation ended: stored, now or before; too late, since a transaction was sent; or the order had ended otherwise. */
type CancelResult = 'cancelled' | 'sent' | 'ended';

/**
 * Locks the row of a pending order until the transaction ends, so that a cancellation and a signing of the same order run one after the
 * other. False when it has ended or was cancelled.
 */
export async function holdPending(tx: Knex.Transaction, orderId: string): Promise<boolean> {
  const held = await tx('swap_pending')
    .where({ order_id: orderId })
    .update({ order_id: tx.ref('order_id') });
  return held > 0;
}

/**
 * Cancels an order unless a transaction that was signed for it may still fill it. A signing locks the order, too, so the two can't both
 * succeed. Durable once it resolves.
 */
export async function cancelOrder(db: Db, cancellation: SwapCancellation): Promise<CancelResult> {
  const { orderId, signature, timeMs } = cancellation;
  return db.knex.transaction(async (tx) => {
    if (!(await holdPending(tx, orderId))) return (await isCancelled(tx, orderId)) ? 'cancelled' : 'ended';
    for (const attempt of await readAttempts(tx, orderId)) {
      if (attempt.result === 'sent' && (await mayFill(tx, attempt.txKey))) return 'sent';
    }
    await tx('swap_cancellations').insert({ order_id: orderId, signature, time_ms: timeMs });
    await closeOrders(tx, [orderId]);
    return 'cancelled';
  });
}

/**
 * Whether a transaction of this key may have filled its order, or may still do so: until the chain has used its nonce, and the stored cost of
 * that nonce says that it reverted, or that another transaction took its place.
 */
async function mayFill(q: Queryable, txKey: string): Promise<boolean> {
  const rows = await q('outbox as sent')
    .leftJoin('order_costs as cost', { 'cost.signer': 'sent.signer', 'cost.nonce': 'sent.nonce' })
    .where('sent.tx_key', txKey)
    .select<{ finished: number; hash: Hex | null; tx_key: string | null; succeeded: number | null }[]>(
      'sent.finished',
      'cost.hash',
      'cost.tx_key',
      'cost.succeeded',
    );
  return rows.some(({ finished, hash, tx_key, succeeded }) => {
    const isKnown = finished !== 0 && hash !== null && hash !== '0x';
    return !isKnown || (tx_key === txKey && succeeded !== 0);
  });
}

/** Whether its owner cancelled it. */
async function isCancelled(q: Queryable, orderId: string): Promise<boolean> {
  return (await q('swap_cancellations').where({ order_id: orderId }).first('order_id')) !== undefined;
}
