/** Prices of a market at past times. */
import { INTERVALS } from '../../core/market-data/intervals.js';
import { chunks, fromColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';

const MINUTE_NO = INTERVALS.indexOf('1m');

/**
 * The last price in or before each of these minutes, in ticks, by the minute as it was named; those before the first trade are left out. Any
 * number of minutes takes a statement per chunk, in which each is one look at an index.
 */
export async function closesAt(
  q: Queryable,
  market: number,
  minutesMs: readonly number[],
): Promise<Map<number, bigint>> {
  const found = new Map<number, bigint>();
  for (const part of chunks(minutesMs)) {
    const wanted = part.map(() => '(cast(? as bigint))').join(', ');
    const last =
      'select close_ticks from candles where market = ? and interval_no = ? and open_ms <= minute_ms order by open_ms desc limit 1';
    const sql = `with wanted(minute_ms) as (values ${wanted}) select minute_ms, (${last}) as close_ticks from wanted`;
    const rows = await sendForRows<{ minute_ms: number; close_ticks: string | null }>(q, sql, [
      ...part,
      market,
      MINUTE_NO,
    ]);
    for (const row of rows) if (row.close_ticks !== null) found.set(row.minute_ms, fromColumn(row.close_ticks));
  }
  return found;
}
