import type { Candle } from '../../core/market-data/candles.js';
import type { Interval } from '../../core/market-data/intervals.js';
import type { Market } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import { candlesBetween, dayFigures, type DayFigures } from '../../ledger/market-data/reads.js';
import type { Db } from '../../ledger/types.js';
import { createRemembered, type Remembered } from '../rendered.js';

/** Most candles of one answer. */
const MAX_CANDLES = 5_000;

/** Market data from the ledger, cached until it changes. */
export interface MarketDataView {
  /** Candles without gaps that contain these times and all between them, oldest first; of more than `MAX_CANDLES` the newest. */
  candles(
    market: Market,
    interval: Interval,
    range: { fromMs: number; toMs: number; limit?: number },
  ): Promise<Candle[]>;
  day(market: Market): Promise<DayFigures>;
  /** Price of the last trade that was read, null before any. */
  lastTicks(market: Market): bigint | null;
}

const MINUTE_MS = 60_000;

/** `generation` is the newest one that this process applied: results are at least as new. */
export function createMarketDataView(deps: { db: Db; generation: () => number; clock: () => number }): MarketDataView {
  const { db, generation, clock } = deps;
  const days = new Map<number, Remembered<DayFigures>>();
  const last = new Map<number, bigint>();

  return {
    candles: (market, interval, { fromMs, toMs, limit = MAX_CANDLES }) =>
      readTx(db, (q) => candlesBetween(q, { market: market.index, interval, fromMs, toMs, nowMs: clock(), limit })),
    day(market) {
      const remembered = days.get(market.index) ?? createRemembered<DayFigures>();
      days.set(market.index, remembered);
      const nowMs = clock();
      return remembered.get(`${generation()}:${Math.floor(nowMs / MINUTE_MS)}`, async () => {
        const figures = await readTx(db, (q) => dayFigures(q, market.index, nowMs));
        if (figures.lastTicks !== null) last.set(market.index, figures.lastTicks);
        return figures;
      });
    },
    lastTicks: (market) => last.get(market.index) ?? null,
  };
}
