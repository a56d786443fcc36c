import type { Address, Hex, Side } from '../../core/types.js';
import { checkLimit, fromColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

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

type TradeRow = Pick<
  Stored<'order_fills'>,
  'market' | 'generation' | 'tid' | 'side' | 'maker' | 'price_ticks' | 'base_units' | 'timestamp_ms'
> &
  Pick<Stored<'fills'>, 'taker' | 'tx_hash'>;

const COLUMNS =
  'part.market, part.generation, part.tid, part.side, part.maker, part.price_ticks, part.base_units, part.timestamp_ms, fill.taker, fill.tx_hash ' +
  'from order_fills as part join fills as fill on fill.market = part.market and fill.fill_seq = part.fill_seq';

/** The `limit` (1..10000) newest trades of a market, newest first; of generations up to one when it is given. */
export async function marketTrades(
  q: Queryable,
  market: number,
  limit: number,
  upTo = Number.MAX_SAFE_INTEGER,
): Promise<Trade[]> {
  const sql = `select ${COLUMNS} where part.market = ? and part.generation <= ? order by part.fill_seq desc, part.part_no desc limit ?`;
  return (await sendForRows<TradeRow>(q, sql, [market, upTo, checkLimit(limit)])).map(toTrade);
}

/** Trades of the generations from one to another, both included, in their order within each market. */
export async function tradesBetween(
  q: Queryable,
  { from, to, limit, skip }: { from: number; to: number; limit: number; skip: number },
): Promise<(Trade & { market: number; generation: number })[]> {
  const sql = `select ${COLUMNS} where part.generation >= ? and part.generation <= ? order by part.generation, part.market, part.fill_seq, part.part_no limit ? offset ?`;
  const rows = await sendForRows<TradeRow>(q, sql, [from, to, checkLimit(limit), skip]);
  return rows.map((row) => ({ ...toTrade(row), market: row.market, generation: row.generation }));
}

function toTrade(row: TradeRow): Trade {
  return {
    tid: row.tid,
    side: row.side,
    maker: row.maker,
    taker: row.taker,
    priceTicks: fromColumn(row.price_ticks),
    baseUnits: fromColumn(row.base_units),
    txHash: row.tx_hash,
    timestampMs: row.timestamp_ms,
  };
}
