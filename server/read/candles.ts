import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import type { Candle } from '../../core/market-data/candles.js';
import {
  INTERVALS,
  isInterval,
  nextOpen,
  opensBefore,
  openOf,
  type Interval,
} from '../../core/market-data/intervals.js';
import { ticksToPrice, unitsToSize } from '../../core/market.js';
import type { Market } from '../../core/types.js';
import { badRequest } from '../errors.js';
import { COSTS, costsOf } from './costs.js';
import type { ReadDeps } from './deps.js';
import { marketOf, queryTime } from './params.js';
import { decimalSchema, integerSchema, pairSchema } from './schemas.js';

/** Most candles of one answer. */
export const CANDLES_LIMIT = 5_000;

export const candlesSchema = z.strictObject({
  pair: pairSchema,
  interval: z.enum(INTERVALS),
  /** Oldest first and without gaps: an interval without a trade has the last price before it, and no volume. */
  candles: z
    .array(
      z.strictObject({
        open_ms: integerSchema,
        close_ms: integerSchema,
        open: decimalSchema,
        high: decimalSchema,
        low: decimalSchema,
        close: decimalSchema,
        base_volume: decimalSchema,
        quote_volume: decimalSchema,
        trades: integerSchema,
      }),
    )
    .max(CANDLES_LIMIT),
});

/** GET /v0/candles/{pair}?interval=&from=&to=: candles of a market from its first trade on. */
export function candlesHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const market = marketOf(deps.markets(), ctx.params.pair ?? '');
    const { interval } = ctx.query;
    if (typeof interval !== 'string' || !isInterval(interval))
      throw badRequest(`interval must be one of ${INTERVALS.join(', ')}`);
    const nowMs = deps.nowMs();
    const toMs = queryTime(ctx, 'to') ?? nowMs;
    const earliestMs = opensBefore(interval, openOf(interval, toMs), CANDLES_LIMIT - 1);
    const fromMs = queryTime(ctx, 'from') ?? Math.max(earliestMs, 0);
    if (fromMs < earliestMs)
      throw badRequest(
        `from and to span more than ${CANDLES_LIMIT} candles: ask from ${earliestMs} on, or up to an earlier time`,
      );
    const range = { market: market.index, interval, fromMs, toMs, nowMs, limit: CANDLES_LIMIT };
    const most = mostCandles(interval, fromMs, Math.min(toMs, nowMs));
    const candles = await costsOf(deps).holding(ctx, COSTS.candles, most, () => deps.store.candles(range));
    costsOf(deps).add(ctx, COSTS.candles, candles.length);
    const body: z.infer<typeof candlesSchema> = {
      pair: market.pair,
      interval,
      candles: candles.map((one) => candleOf(market, one)),
    };
    ctx.body = body;
  };
}

/** About how many candles a span has at most: months are counted with the length of the first one. */
function mostCandles(interval: Interval, fromMs: number, toMs: number): number {
  const openMs = openOf(interval, fromMs);
  const lengthMs = nextOpen(interval, openMs) - openMs;
  return Math.min(Math.max(Math.floor((toMs - openMs) / lengthMs) + 1, 0), CANDLES_LIMIT);
}

function candleOf(market: Market, candle: Candle): z.infer<typeof candlesSchema>['candles'][number] {
  return {
    open_ms: candle.openMs,
    close_ms: nextOpen(candle.interval, candle.openMs) - 1,
    open: ticksToPrice(market, candle.openTicks),
    high: ticksToPrice(market, candle.highTicks),
    low: ticksToPrice(market, candle.lowTicks),
    close: ticksToPrice(market, candle.closeTicks),
    base_volume: unitsToSize(market, candle.baseUnits),
    quote_volume: formatUnits(candle.quoteUnits, market.quote.decimals),
    trades: candle.trades,
  };
}
