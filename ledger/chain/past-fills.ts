import type { OrderFill, Side } from '../../core/types.js';
import { fromColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
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
  const after = 'where market = ? and fill_seq > ? order by fill_seq';
  const fills = await sendForRows<PastFillRow>(
    q,
    `select fill_seq, curve_seq, side, base_units, quote_units from fills ${after}`,
    [market, fillSeq],
  );
  if (fills.length === 0) return [];
  const parts = await sendForRows<OrderFillRow>(
    q,
    `select fill_seq, oid, maker, price_ticks, base_units from order_fills ${after}, part_no`,
    [market, fillSeq],
  );
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
