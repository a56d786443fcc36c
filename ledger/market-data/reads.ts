/** Candles and the last 24 hours of a market, for the public interfaces. */
import { withoutGaps, type Candle } from '../../core/market-data/candles.js';
import { DAY_MS, openOf, opensBefore, type Interval } from '../../core/market-data/intervals.js';
import type { Queryable } from '../types.js';
import { firstCandle, lastCandleBefore, readCandles } from './candle-rows.js';

export interface CandleRange {
  market: number;
  interval: Interval;
  /** The candles that contain these times and all between them. */
  fromMs: number;
  toMs: number;
  /** No candle begins later than this, unless it has a trade. */
  nowMs: number;
  /** Most candles; if there are more, the newest ones are returned. */
  limit: number;
}

const EVER = Number.MAX_SAFE_INTEGER;

/** Candles without gaps from the first trade on, oldest first. Read them within one state of the database. */
export async function candlesBetween(q: Queryable, range: CandleRange): Promise<Candle[]> {
  const { market, interval, limit } = range;
  const newest = await lastCandleBefore(q, { market, interval, beforeMs: EVER });
  const first = newest === null ? null : await firstCandle(q, market, interval);
  if (newest === null || first === null) return [];
  const toMs = openOf(interval, Math.min(range.toMs, Math.max(range.nowMs, newest.openMs)));
  const fromMs = Math.max(
    openOf(interval, Math.max(range.fromMs, first.openMs)),
    opensBefore(interval, toMs, limit - 1),
  );
  if (fromMs > toMs) return [];
  const traded = await readCandles(q, { market, interval, fromMs, toMs });
  const isComplete = traded[0]?.openMs === fromMs;
  const before = isComplete ? null : await lastCandleBefore(q, { market, interval, beforeMs: fromMs });
  return withoutGaps(interval, { fromMs, toMs, closeTicks: before?.closeTicks ?? null }, traded);
}

/** What was traded in the 1,440 minutes that end with the present one, and the prices before it and at its end. */
export interface DayFigures {
  baseUnits: bigint;
  quoteUnits: bigint;
  /** Price of the last trade before these minutes, else of the first one in them; null before the first trade. */
  previousTicks: bigint | null;
  lastTicks: bigint | null;
}

/** Figures of a market's last 24 hours; zero and null for a market that was never traded. */
export async function dayFigures(q: Queryable, market: number, nowMs: number): Promise<DayFigures> {
  const newest = await lastCandleBefore(q, { market, interval: '1m', beforeMs: EVER });
  if (newest === null) return { baseUnits: 0n, quoteUnits: 0n, previousTicks: null, lastTicks: null };
  const toMs = openOf('1m', Math.max(nowMs, newest.openMs));
  const fromMs = toMs - DAY_MS + 60_000;
  // The range is summed by minutes up to the first whole hour, by hours, and by minutes after the last whole hour.
  const firstHour = openOf('1h', fromMs + 3_599_999);
  const lastHour = openOf('1h', toMs);
  const before = await lastCandleBefore(q, { market, interval: '1m', beforeMs: fromMs });
  const candles = [
    ...(await readCandles(q, { market, interval: '1m', fromMs, toMs: firstHour - 1 })),
    ...(await readCandles(q, { market, interval: '1h', fromMs: firstHour, toMs: lastHour - 1 })),
    ...(await readCandles(q, { market, interval: '1m', fromMs: lastHour, toMs })),
  ];
  return {
    baseUnits: candles.reduce((sum, one) => sum + one.baseUnits, 0n),
    quoteUnits: candles.reduce((sum, one) => sum + one.quoteUnits, 0n),
    previousTicks: before?.closeTicks ?? candles[0]?.openTicks ?? null,
    lastTicks: newest.closeTicks,
  };
}
