import type { OrderFill, Side } from '../../core/types.js';
import { fromColumn } from '../db/columns.js';
import type { Queryable } from '../types.js';

/** A stored fill as later attribution and the exposure limit need it. */
export interface PastFill {
  market: number;
  fillSeq: number;
  curveSeq: number;
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
  orderFills: OrderFill[];
}

interface PastFillRow {
  fill_seq: number;
  curve_seq: number;
  side: Side;
  base_units: string;
  quote_units: string;
}

interface OrderFillRow {
  fill_seq: number;
  oid: number;
  maker: OrderFill['maker'];
  price_ticks: string;
  base_units: string;
}

/** Fills of a market with a higher fillSeq, in order, with their parts per order. */
export async function readFillsAfter(q: Queryable, market: number, fillSeq: number): Promise<PastFill[]> {
  const fills = await q<PastFillRow>('fills')
    .select('fill_seq', 'curve_seq', 'side', 'base_units', 'quote_units')
    .where('market', market)
    .where('fill_seq', '>', fillSeq)
    .orderBy('fill_seq');
  if (fills.length === 0) return [];
  const parts = await q<OrderFillRow>('order_fills')
    .select('fill_seq', 'oid', 'maker', 'price_ticks', 'base_units')
    .where('market', market)
    .where('fill_seq', '>', fillSeq)
    .orderBy([{ column: 'fill_seq' }, { column: 'part_no' }]);
  const past = new Map<number, PastFill>();
  for (const row of fills) {
    past.set(row.fill_seq, {
      market,
      fillSeq: row.fill_seq,
      curveSeq: row.curve_seq,
      side: row.side,
      baseUnits: fromColumn(row.base_units),
      quoteUnits: fromColumn(row.quote_units),
      orderFills: [],
    });
  }
  for (const row of parts) {
    const fill = past.get(row.fill_seq);
    fill?.orderFills.push({
      oid: row.oid,
      maker: row.maker,
      market,
      side: fill.side,
      priceTicks: fromColumn(row.price_ticks),
      baseUnits: fromColumn(row.base_units),
    });
  }
  return [...past.values()];
}
