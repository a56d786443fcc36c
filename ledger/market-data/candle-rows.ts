/** Rows of candles: a projection of order fills. */
import type { Knex } from 'knex';
import type { Candle } from '../../core/market-data/candles.js';
import { INTERVALS, type Interval } from '../../core/market-data/intervals.js';
import { chunks, fromColumn, toColumn, upsertAll } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A candle of one market. */
export interface MarketCandle extends Candle {
  market: number;
}

const intervalNo = (interval: Interval): number => INTERVALS.indexOf(interval);

/** Which candle it is. */
export const candleKey = ({ market, interval, openMs }: Pick<MarketCandle, 'market' | 'interval' | 'openMs'>): string =>
  `${market}:${interval}:${openMs}`;

/** Candles that are stored under these keys. */
export async function readCandlesAt(
  q: Queryable,
  keys: readonly Pick<MarketCandle, 'market' | 'interval' | 'openMs'>[],
): Promise<MarketCandle[]> {
  const found: MarketCandle[] = [];
  for (const part of chunks(keys, 60)) {
    const any = part.map(() => '(market = ? and interval_no = ? and open_ms = ?)').join(' or ');
    const bindings = part.flatMap(({ market, interval, openMs }) => [market, intervalNo(interval), openMs]);
    const rows = await sendForRows<Stored<'candles'>>(q, `select * from candles where ${any}`, bindings);
    found.push(...rows.map(fromRow));
  }
  return found;
}

/** Writes candles as they are now. */
export async function storeCandles(tx: Knex.Transaction, candles: readonly MarketCandle[]): Promise<void> {
  const rows = candles.map((one): Stored<'candles'> => ({
    market: one.market,
    interval_no: intervalNo(one.interval),
    open_ms: one.openMs,
    open_ticks: toColumn(one.openTicks),
    high_ticks: toColumn(one.highTicks),
    low_ticks: toColumn(one.lowTicks),
    close_ticks: toColumn(one.closeTicks),
    base_units: toColumn(one.baseUnits),
    quote_units: toColumn(one.quoteUnits),
    trades: one.trades,
  }));
  await upsertAll(tx, 'candles', ['market', 'interval_no', 'open_ms'], rows);
}

/** Candles with a trade that begin within both bounds, oldest first. */
export async function readCandles(
  q: Queryable,
  { market, interval, fromMs, toMs }: { market: number; interval: Interval; fromMs: number; toMs: number },
): Promise<MarketCandle[]> {
  const sql =
    'select * from candles where market = ? and interval_no = ? and open_ms >= ? and open_ms <= ? order by open_ms';
  const rows = await sendForRows<Stored<'candles'>>(q, sql, [market, intervalNo(interval), fromMs, toMs]);
  return rows.map(fromRow);
}

/** The newest candle with a trade that begins before a time; null when there is none. */
export async function lastCandleBefore(
  q: Queryable,
  { market, interval, beforeMs }: { market: number; interval: Interval; beforeMs: number },
): Promise<MarketCandle | null> {
  const sql =
    'select * from candles where market = ? and interval_no = ? and open_ms < ? order by open_ms desc limit 1';
  const [row] = await sendForRows<Stored<'candles'>>(q, sql, [market, intervalNo(interval), beforeMs]);
  return row === undefined ? null : fromRow(row);
}

/** The oldest candle of a market; null before its first trade. */
export async function firstCandle(q: Queryable, market: number, interval: Interval): Promise<MarketCandle | null> {
  const sql = 'select * from candles where market = ? and interval_no = ? order by open_ms limit 1';
  const [row] = await sendForRows<Stored<'candles'>>(q, sql, [market, intervalNo(interval)]);
  return row === undefined ? null : fromRow(row);
}

function fromRow(row: Stored<'candles'>): MarketCandle {
  const interval = INTERVALS[row.interval_no];
  if (interval === undefined) throw new RangeError(`a candle has the interval ${row.interval_no}`);
  return {
    market: row.market,
    interval,
    openMs: row.open_ms,
    openTicks: fromColumn(row.open_ticks),
    highTicks: fromColumn(row.high_ticks),
    lowTicks: fromColumn(row.low_ticks),
    closeTicks: fromColumn(row.close_ticks),
    baseUnits: fromColumn(row.base_units),
    quoteUnits: fromColumn(row.quote_units),
    trades: row.trades,
  };
}
