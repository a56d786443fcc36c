/** Closed orders that the gateway no longer has in memory, from the order log, the compacted book and the fills. */
import { isFilled, openedOrder, reducedOrder } from '../../core/book/order-life.js';
import { decodeEffects } from '../../core/json.js';
import type { Address, Market, OpenOrder } from '../../core/types.js';
import { chunks, fromColumn } from '../db/columns.js';
import { placeholders, sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import type { Queryable } from '../types.js';
import { toCompactedOrder, type CompactedOrder } from './compacted-book.js';

/** Numbers of rows of the order log in which an order was opened, made smaller and closed, as far as they are known. */
interface Places {
  opened: number | null;
  closed: number | null;
  reduced: readonly number[];
}

/**
 * An order as it ended; null for one that is no longer stored. Call it within `readTx`, since compaction may move rows into the compacted
 * book.
 */
export async function readPastOrder(
  q: Queryable,
  markets: readonly Market[],
  oid: number,
  { opened, closed, reduced }: Places,
): Promise<CompactedOrder | null> {
  const folded = await q('folded_orders').where({ oid }).first();
  const seqs = [opened, ...reduced, closed].filter((seq) => seq !== null);
  const rows: Stored<'order_log'>[] = [];
  // In the order of the log: an order is opened first, then reduced, then closed.
  for (const part of chunks(seqs))
    rows.push(...(await q<Stored<'order_log'>>('order_log').whereIn('order_seq', part).orderBy('order_seq').select()));
  let found = folded === undefined ? null : toCompactedOrder(folded);
  let lastMs = found?.closedMs ?? null;
  for (const row of rows) {
    for (const effect of decodeEffects(row.effects)) {
      if (!('oid' in effect) || effect.oid !== oid) continue;
      if (effect.type === 'open') {
        const order = openedOrder({ maker: row.maker, timeMs: row.time_ms }, effect);
        found = { order, state: 'open', closedMs: null };
      } else if (found !== null && effect.type === 'reduce') {
        found = { ...found, order: reducedOrder(found.order, effect.lots) };
        lastMs = row.time_ms;
      } else if (found !== null && effect.type === 'close')
        found = { ...found, state: effect.reason, closedMs: row.time_ms };
    }
  }
  return found === null ? null : withFills(q, markets, found, lastMs);
}

/** Adds up the filled units from the fills, which may come after the order was closed. */
async function withFills(
  q: Queryable,
  markets: readonly Market[],
  found: CompactedOrder,
  lastMs: number | null,
): Promise<CompactedOrder | null> {
  const parts = await q<Stored<'order_fills'>>('order_fills')
    .where({ oid: found.order.oid })
    .select('base_units', 'timestamp_ms');
  const filledUnits = parts.reduce((sum, part) => sum + fromColumn(part.base_units), 0n);
  const order: OpenOrder = { ...found.order, filledUnits };
  const market = markets[order.market];
  if (market !== undefined && isFilled(order, market.lotUnits)) {
    const filledMs = parts.reduce((last, part) => Math.max(last, part.timestamp_ms), 0);
    const closedMs = parts.length > 0 ? filledMs : (lastMs ?? order.placedMs);
    return { order, state: 'filled', closedMs };
  }
  return found.state === 'open' || found.state === 'filled' ? null : { ...found, order };
}

/** Parts of fills that are searched for a client order id. */
const SEARCHED_PARTS = 2_000;

/** The newest order of a maker with a client order id, of those that are compacted or in its newest 2,000 parts of fills; null without one. */
export async function readPastOid(q: Queryable, maker: Address, cloid: string): Promise<number | null> {
  const sql =
    'select max(oid) as oid from (select oid from folded_orders where cloid = ? and maker = ? union all ' +
    'select oid from (select oid, cloid from order_fills where maker = ? order by timestamp_ms desc limit ?) as part where cloid = ?) as own';
  const [row] = await sendForRows<{ oid: number | null }>(q, sql, [cloid, maker, maker, SEARCHED_PARTS, cloid]);
  return row?.oid ?? null;
}

/** When each of these orders was filled last, in Unix milliseconds; those without a fill are left out. */
export async function lastFillsOf(q: Queryable, oids: readonly number[]): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  for (const part of chunks(oids)) {
    const sql = `select oid, max(timestamp_ms) as last_ms from order_fills where oid in (${placeholders(part.length)}) group by oid`;
    for (const row of await sendForRows<{ oid: number; last_ms: number }>(q, sql, part))
      found.set(row.oid, row.last_ms);
  }
  return found;
}
