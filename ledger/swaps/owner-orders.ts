/** An owner's signed orders, page by page. */
import type { Address } from '../../core/types.js';
import { checkLimit } from '../db/columns.js';
import type { Queryable } from '../types.js';
import { toOrder, type SwapOrder } from './swap-log.js';
import type { Stored } from '../db/tables.js';

/** Where a list of an owner's orders goes on: behind this one. */
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
  const rows: unknown = await rest
    .orderBy([
      { column: 'created_ms', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(checkLimit(limit))
    .select();
  return (rows as Stored<'swap_orders'>[]).map(toOrder);
}
