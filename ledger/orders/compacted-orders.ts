/** The orders of the compacted book while a step of compaction changes them. */
import type { Knex } from 'knex';
import { applyEffect, applyFill, openedOrder } from '../../core/book/order-life.js';
import type { Address, Market, OpenOrder, OrderFill, OrderLogRow } from '../../core/types.js';
import { chunks, toColumn, upsertAll } from '../db/columns.js';
import { toCompactedOrder, type CompactedOrder } from './compacted-book.js';
import type { Stored } from '../db/tables.js';

/** Most orders of a maker that one step deletes; the next step deletes more. */
const FORGET_MAX = 5_000;

export interface CompactedOrders {
  /** Reads orders that are about to change; those that are not kept stay unknown. */
  load(oids: readonly number[]): Promise<void>;
  apply(row: OrderLogRow): void;
  /** Throws RangeError for an order that is not kept: one with a fill always is. */
  fill(fills: readonly OrderFill[], timeMs: number): void;
  /** Writes the changes, then deletes closed orders without a fill beyond each maker's `keepClosed` newest ones. */
  store(keepClosed: number): Promise<void>;
}

type OrderUpdate = CompactedOrder & { hasFill: boolean };

export function createCompactedOrders(tx: Knex.Transaction, markets: readonly Market[]): CompactedOrders {
  const drafts = new Map<number, OrderUpdate>();
  const changed = new Set<number>();

  function lotUnitsOf({ oid, market: index }: OpenOrder): bigint {
    const market = markets[index];
    if (market === undefined) throw new RangeError(`order ${oid} is of market ${index}, which is not listed`);
    return market.lotUnits;
  }

  return {
    async load(oids) {
      for (const part of chunks([...new Set(oids)].filter((oid) => !drafts.has(oid)))) {
        const rows = await tx('folded_orders').whereIn('oid', part).select();
        for (const row of rows) drafts.set(row.oid, { ...toCompactedOrder(row), hasFill: row.has_fill !== 0 });
      }
    },
    apply(row) {
      for (const effect of row.effects) {
        if (effect.type === 'open') {
          drafts.set(effect.oid, { order: openedOrder(row, effect), state: 'open', closedMs: null, hasFill: false });
          changed.add(effect.oid);
        }
        if (effect.type !== 'close' && effect.type !== 'reduce') continue;
        const draft = drafts.get(effect.oid);
        if (draft === undefined) continue;
        if (applyEffect(draft, effect, row.timeMs, lotUnitsOf(draft.order))) changed.add(effect.oid);
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
      const next = [...changed].map((oid) => toStored(drafts.get(oid)!));
      await upsertAll(tx, 'folded_orders', ['oid'], next);
      const makers = new Set(next.filter((row) => row.closed_ms !== null).map((row) => row.maker));
      for (const maker of makers) await forget(tx, maker, keepClosed);
    },
  };
}

async function forget(tx: Knex.Transaction, maker: Address, keepClosed: number): Promise<void> {
  const newestFirst = [
    { column: 'closed_ms', order: 'desc' },
    { column: 'oid', order: 'desc' },
  ];
  const closed = () => tx<Stored<'folded_orders'>>('folded_orders').where({ maker }).whereNotNull('closed_ms');
  const first = await closed().orderBy(newestFirst).offset(keepClosed).limit(1).first('closed_ms', 'oid');
  if (first === undefined) return;
  const candidates = await closed()
    .where({ has_fill: 0 })
    .where((behind) => {
      void behind
        .where('closed_ms', '<', first.closed_ms)
        .orWhere((same) => void same.where('closed_ms', first.closed_ms).where('oid', '<=', first.oid));
    })
    .limit(FORGET_MAX)
    .select('oid');
  for (const part of chunks(candidates.map(({ oid }) => oid))) {
    // Checks all stored fills, also those after the compacted generation. A later one can't come: no live curve has these orders.
    const filled = await tx('order_fills').whereIn('oid', part).distinct<{ oid: number }[]>('oid');
    const kept = new Set(filled.map(({ oid }) => oid));
    if (kept.size > 0)
      await tx('folded_orders')
        .whereIn('oid', [...kept])
        .update({ has_fill: 1 });
    await tx('folded_orders')
      .whereIn(
        'oid',
        part.filter((oid) => !kept.has(oid)),
      )
      .delete();
  }
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
