/** The orders of the compacted book while a step of compaction changes them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Knex } from 'knex';
import { applyEffect, applyFill, openedOrder } from '../../core/book/order-life.js';
import type { CloseReason, Market, OpenOrder, OrderEffect, OrderFill, OrderLogRow } from '../../core/types.js';
import { chunks, toColumn, upsertAll } from '../db/columns.js';
import { allOrFirstError, jsonItems, sendForRows } from '../db/dialects.js';
import { toCompactedOrder, type CompactedOrder } from './compacted-book.js';
import type { ClosedOrder, Forgetting } from './forgetting.js';
import type { Stored } from '../db/tables.js';

export interface CompactedOrders {
  /** Reads orders that are about to be reduced or filled; those that are not kept stay unknown. */
  load(oids: readonly number[]): Promise<void>;
  /** Those of these orders that are not kept; they must have been loaded. */
  unknown(oids: readonly number[]): number[];
  /** Takes an order back in, as one that was closed then. */
  restore(order: OpenOrder, closedMs: number): void;
  /** The orders that the row reduces must have been loaded. */
  apply(row: OrderLogRow): void;
  /** Throws RangeError for an order that is not kept: one with a fill always is, or must be restored before. */
  fill(fills: readonly OrderFill[], timeMs: number): void;
  /** Writes the changes, then deletes closed orders without a fill beyond each maker's `keepClosed` newest ones. */
  store(keepClosed: number): Promise<void>;
}

interface OrderUpdate extends CompactedOrder {
  hasFill: boolean;
  /** Whether it is stored as closed. */
  wasClosed: boolean;
}

type ClosedRow = Pick<Stored<'folded_orders'>, 'oid' | 'maker' | 'has_fill'> & { closed_ms: number };
type Ending = Extract<OrderEffect, { type: 'close' | 'reduce' }>;

export function createCompactedOrders(
  tx: Knex.Transaction,
  markets: readonly Market[],
  forgetting: Forgetting,
): CompactedOrders {
  const drafts = new Map<number, OrderUpdate>();
  const changed = new Set<number>();
  /** Orders without a draft to close if they are open, with the first close of each. */
  const closings = new Map<number, { effect: Extract<Ending, { type: 'close' }>; timeMs: number }>();

  function lotUnitsOf({ oid, market: index }: OpenOrder): bigint {
    const market = markets[index];
    if (market === undefined) throw new RangeError(`order ${oid} is of market ${index}, which is not listed`);
    return market.lotUnits;
  }

  function end(draft: OrderUpdate, effect: Ending, timeMs: number): void {
    if (applyEffect(draft, effect, timeMs, lotUnitsOf(draft.order))) changed.add(effect.oid);
  }

  return {
    async load(oids) {
      for (const part of chunks([...new Set(oids)].filter((oid) => !drafts.has(oid)))) {
        const rows = await tx('folded_orders').whereIn('oid', part).select();
        for (const row of rows) {
          const wasClosed = row.closed_ms !== null;
          const draft = { ...toCompactedOrder(row), hasFill: row.has_fill !== 0, wasClosed };
          drafts.set(row.oid, draft);
          const closing = closings.get(row.oid);
          if (closing !== undefined) end(draft, closing.effect, closing.timeMs);
          closings.delete(row.oid);
        }
      }
    },
    unknown: (oids) => [...new Set(oids)].filter((oid) => !drafts.has(oid)),
    restore(order, closedMs) {
      drafts.set(order.oid, { order, state: 'canceled', closedMs, hasFill: false, wasClosed: false });
      changed.add(order.oid);
    },
    apply(row) {
      const { timeMs } = row;
      for (const effect of row.effects) {
        if (effect.type === 'open') {
          const order = openedOrder(row, effect);
          drafts.set(effect.oid, { order, state: 'open', closedMs: null, hasFill: false, wasClosed: false });
          changed.add(effect.oid);
        }
        if (effect.type !== 'close' && effect.type !== 'reduce') continue;
        const draft = drafts.get(effect.oid);
        if (draft !== undefined) end(draft, effect, timeMs);
        else if (effect.type === 'close' && !closings.has(effect.oid)) closings.set(effect.oid, { effect, timeMs });
      }
    },
    fill(fills, timeMs) {
      for (const { oid, baseUnits } of fills) {
        const draft = drafts.get(oid);
        if (draft === undefined) throw new RangeError(`order ${oid} has a fill and was not kept`);
        applyFill(draft, baseUnits, timeMs, lotUnitsOf(draft.order));
        draft.hasFill = true;
        changed.add(oid);
      }
    },
    async store(keepClosed) {
      const next = [...changed].map((oid) => drafts.get(oid)!);
      const blind = [...closings].map(([oid, { effect, timeMs }]): Closing => [oid, effect.reason, timeMs]);
      const [closed] = await allOrFirstError([
        closeStored(tx, blind),
        upsertAll(tx, 'folded_orders', ['oid'], next.map(toStored)),
      ]);
      for (const { order, closedMs, hasFill, wasClosed } of next) {
        if (closedMs !== null && !wasClosed) closed.push({ oid: order.oid, maker: order.maker, closedMs, hasFill });
      }
      await forgetting.forget(tx, closed, keepClosed);
    },
  };
}

type Closing = [oid: number, state: CloseReason, closedMs: number];

/** Closes stored orders that are open, and returns which were. Nothing of them is read before: most of all orders are closed here. */
async function closeStored(tx: Knex.Transaction, closings: readonly Closing[]): Promise<ClosedOrder[]> {
  const closed: ClosedOrder[] = [];
  // The state is compared as an expression, so that orders are found by their oids and not among all that are open.
  const sql =
    'update folded_orders as t set state = v.ended_state, closed_ms = v.ended_ms ' +
    'from (select cast(value ->> 0 as bigint) as ended_oid, value ->> 1 as ended_state, ' +
    `cast(value ->> 2 as bigint) as ended_ms from ${jsonItems(tx)}) as v ` +
    "where t.oid = v.ended_oid and coalesce(t.state, '') = 'open' returning oid, maker, closed_ms, has_fill";
  for (const part of chunks(closings)) {
    const rows = await sendForRows<ClosedRow>(tx, sql, [JSON.stringify(part)]);
    for (const { oid, maker, closed_ms: closedMs, has_fill } of rows)
      closed.push({ oid, maker, closedMs, hasFill: has_fill !== 0 });
    await nextTurn();
  }
  return closed;
}

function toStored({ order, state, closedMs, hasFill }: OrderUpdate): Stored<'folded_orders'> {
  return {
    oid: order.oid,
    market: order.market,
    placed_ms: order.placedMs,
    has_fill: hasFill ? 1 : 0,
    maker: order.maker,
    side: order.side,
    tif: order.tif,
    state,
    price_ticks: toColumn(order.priceTicks),
    size_lots: toColumn(order.sizeLots),
    filled_units: toColumn(order.filledUnits),
    cloid: order.cloid,
    closed_ms: closedMs,
  };
}
