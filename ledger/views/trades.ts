import type { Address, Hex, Side } from '../../core/types.js';
import { checkLimit, fromColumn } from '../db/columns.js';
import type { Queryable } from '../types.js';

/** One order's part of a fill as the public sees it. */
export interface Trade {
  tid: number;
  /** Side of the maker's order. */
  side: Side;
  maker: Address;
  taker: Address;
  priceTicks: bigint;
  baseUnits: bigint;
  txHash: Hex;
  timestampMs: number;
}

interface TradeRow {
  tid: number;
  side: Side;
  maker: string;
  taker: string;
  price_ticks: string;
  base_units: string;
  tx_hash: string;
  timestamp_ms: number;
}

/** The `limit` (1..10000) newest trades of a market, newest first. */
export async function marketTrades(q: Queryable, market: number, limit: number): Promise<Trade[]> {
  const rows = await q('order_fills as part')
    .join('fills as fill', (on) => {
      on.on('fill.market', 'part.market').on('fill.fill_seq', 'part.fill_seq');
    })
    .where('part.market', market)
    .orderBy([
      { column: 'part.fill_seq', order: 'desc' },
      { column: 'part.part_no', order: 'desc' },
    ])
    .limit(checkLimit(limit))
    .select<TradeRow[]>(
      'part.tid',
      'part.side',
      'part.maker',
      'part.price_ticks',
      'part.base_units',
      'fill.taker',
      'fill.tx_hash',
      'fill.timestamp_ms',
    );
  return rows.map((row) => ({
    tid: row.tid,
    side: row.side,
    maker: row.maker as Address,
    taker: row.taker as Address,
    priceTicks: fromColumn(row.price_ticks),
    baseUnits: fromColumn(row.base_units),
    txHash: row.tx_hash as Hex,
    timestampMs: row.timestamp_ms,
  }));
}
