/** An owner's signed orders, page by page. */
import type { Address } from '../../core/types.js';
import { checkLimit, chunks } from '../db/columns.js';
import { readLostFrom } from '../chain/halts.js';
import type { Queryable } from '../types.js';
import { toOrder, unended, type SwapOrder } from './swap-log.js';
import type { Stored } from '../db/tables.js';

/** Position in a list of an owner's orders: the next page begins after it. */
export interface OrderPlace {
  createdMs: number;
  id: string;
}

/** An owner's orders, newest first, at most `limit` of them, from behind `after` on. */
export async function readOrdersOf(
  q: Queryable,
  owner: Address,
  after: OrderPlace | null,
  limit: number,
): Promise<SwapOrder[]> {
  const all = q('swap_orders').where({ owner });
  const rest =
    after === null
      ? all
      : all.whereRaw('(created_ms < ? or (created_ms = ? and id < ?))', [after.createdMs, after.createdMs, after.id]);
  const rows = await rest
    .orderBy([
      { column: 'created_ms', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(checkLimit(limit))
    .select<Stored<'swap_orders'>[]>();
  return rows.map(toOrder);
}

/** Owners that one statement names. */
const OWNERS_AT_A_TIME = 500;

/**
 * A mark per owner, which is another one once one of its orders is accepted, tried, filled, ended or taken back, or a fill is taken back with its block. Owners
 * without any order share one mark. Costs four statements, however many orders there are.
 */
export async function readOrderMarks(q: Queryable, owners: readonly Address[]): Promise<Map<Address, string>> {
  const lostFrom = await readLostFrom(q);
  const marks = new Map(owners.map((owner) => [owner, `${lostFrom}`]));
  for (const part of chunks([...owners], OWNERS_AT_A_TIME)) {
    const pending = await unended(q)
      .whereIn('pending.owner', part)
      .groupBy('pending.owner')
      .select<{ owner: Address; pending: number; filled: number; newest: number }[]>(
        'pending.owner',
        q.raw('count(*) as pending'),
        q.raw('count(fill.generation) as filled'),
        q.raw('max(pending.created_ms) as newest'),
      );
    const tried = await q('swap_pending as pending')
      .join('swap_attempts as attempt', 'attempt.order_id', 'pending.order_id')
      .whereIn('pending.owner', part)
      .groupBy('pending.owner')
      .select<{ owner: Address; attempts: number; tried: number }[]>(
        'pending.owner',
        q.raw('count(*) as attempts'),
        // Why a limit order was refused changes in its place.
        q.raw('max(attempt.time_ms) as tried'),
      );
    // One that is accepted and ended between two looks is the newest one, and was never seen pending.
    const accepted = await q('swap_nonces as owned')
      .whereIn('owned.owner', part)
      .select<{ owner: Address; newest: number | null }[]>(
        'owned.owner',
        q.raw('(select max(placed.created_ms) from swap_orders as placed where placed.owner = owned.owner) as newest'),
      );
    for (const { owner, newest } of accepted) if (newest !== null) marks.set(owner, `${lostFrom}:${newest}`);
    const attempts = new Map(tried.map((row) => [row.owner, `${row.attempts}@${row.tried}`]));
    for (const { owner, pending: count, filled, newest } of pending)
      marks.set(owner, [marks.get(owner), count, filled, newest, attempts.get(owner) ?? ''].join(':'));
  }
  return marks;
}
