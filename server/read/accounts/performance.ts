import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits, toSafeInt } from '../../../core/amounts.js';
import { HORIZONS_SEC, unrealisedUnits } from '../../../core/market-data/markouts.js';
import { costUnits, openUnits, NO_POSITION } from '../../../core/market-data/positions.js';
import { unitsToSize } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import type { MakerActivity } from '../../../ledger/accounts/reads.js';
import { averagePrice, bpsOf, middlePrice, shareOf } from '../amounts.js';
import { COSTS, costsOf } from '../costs.js';
import type { ReadDeps } from '../deps.js';
import { addressOf, queryPairs } from '../params.js';
import { addressSchema, decimalSchema, integerSchema, pairSchema, signedDecimalSchema } from '../schemas.js';
import { daysOf, PERIODS, spanOf } from '../span.js';

const tradedSchema = z.strictObject({ base: decimalSchema, quote: decimalSchema });

const markoutSchema = z.strictObject({
  seconds: z.literal(HORIZONS_SEC),
  /** In the quote token: the parts' gain against the middle of the curve that was live so long after their fills. */
  amount: signedDecimalSchema,
  /** Quote amount of the parts that it counts, and of those that had no middle then. */
  marked_quote: decimalSchema,
  unmarked_quote: decimalSchema,
  /** `amount` in basis points of `marked_quote`; null without any. */
  bps: signedDecimalSchema.nullable(),
});

const makerPairSchema = z
  .strictObject({
    pair: pairSchema,
    /** Fills that an order of the maker had a part in, and these parts. */
    fills: integerSchema,
    parts: integerSchema,
    bought: tradedSchema,
    sold: tradedSchema,
    /** Bought and sold, in the quote token. */
    volume: decimalSchema,
    /** In the quote token, at average cost. */
    realised_pnl: signedDecimalSchema,
    /** Curves that were hit with orders of the maker behind them, and what base these offered, on both sides together. */
    curves: integerSchema,
    offered_base: decimalSchema,
    /** Base filled, of what was offered; null when nothing was. */
    fill_rate: decimalSchema.nullable(),
    /** The maker's share of the base offered by all makers, and of the base filled; null when there was none. */
    book_share: decimalSchema.nullable(),
    fill_share: decimalSchema.nullable(),
    markouts: z.array(markoutSchema).length(HORIZONS_SEC.length),
    /** As of the newest block, from the first fill on, whatever the span; deposits and withdrawals do not change it. */
    position: z.strictObject({
      base: signedDecimalSchema,
      /** Null without a position. */
      average_price: decimalSchema.nullable(),
      realised_pnl: signedDecimalSchema,
      /** The middle of the live curve; null when there is none. */
      middle: decimalSchema.nullable(),
      unrealised_pnl: signedDecimalSchema.nullable(),
    }),
    /** The position after each interval with a fill, and what was realised in it, oldest first. */
    inventory: z.array(
      z.strictObject({ open_ms: integerSchema, base: signedDecimalSchema, realised_pnl: signedDecimalSchema }),
    ),
  })
  .meta({ id: 'MakerPerformance' });

export const performanceSchema = z.strictObject({
  maker: addressSchema,
  interval: z.enum(PERIODS),
  /** Fills from here on and before there, both on the hour. */
  from_ms: integerSchema,
  to_ms: integerSchema,
  /** Those in which the maker ever had a fill, or an order behind a curve that was hit. */
  pairs: z.array(makerPairSchema),
});

/** GET /v0/makers/{maker}/performance?pair=&interval=&from=&to=: results of an address's orders. */
export function performanceHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const maker = addressOf(ctx.params.maker ?? '');
    const markets = queryPairs(ctx, deps.markets());
    const nowMs = deps.nowMs();
    const { interval, periodMs, span } = spanOf(ctx, nowMs);
    // The position before the span is the present one less all that was traded since, which is read, too.
    const days = daysOf({ fromMs: span.fromMs, toMs: Math.max(span.toMs, nowMs) });
    const indices = markets.map(({ index }) => index);
    const activity = await costsOf(deps).holding(ctx, COSTS.performance, days * markets.length, () =>
      deps.store.makerActivity(maker, indices, span),
    );
    costsOf(deps).add(ctx, COSTS.performance, days * activity.length);
    const body: z.infer<typeof performanceSchema> = {
      maker,
      interval,
      from_ms: span.fromMs,
      to_ms: span.toMs,
      pairs: activity.map((one) => pairOf(deps.markets()[one.market]!, one, periodMs)),
    };
    ctx.body = body;
  };
}

function pairOf(market: Market, activity: MakerActivity, periodMs: number): z.infer<typeof makerPairSchema> {
  const { total, all } = activity;
  const base = (units: bigint): string => unitsToSize(market, units);
  const quote = (units: bigint): string => formatUnits(units, market.quote.decimals);
  const filled = total.bought_base + total.sold_base;
  const offered = total.offered_ask + total.offered_bid;
  return {
    pair: market.pair,
    fills: toSafeInt(total.fills),
    parts: toSafeInt(total.parts),
    bought: { base: base(total.bought_base), quote: quote(total.bought_quote) },
    sold: { base: base(total.sold_base), quote: quote(total.sold_quote) },
    volume: quote(total.bought_quote + total.sold_quote),
    realised_pnl: quote(total.closed_quote),
    curves: toSafeInt(total.curves),
    offered_base: base(offered),
    fill_rate: shareOf(filled, offered),
    book_share: shareOf(offered, all.offered_ask + all.offered_bid),
    fill_share: shareOf(filled, all.bought_base + all.sold_base),
    markouts: HORIZONS_SEC.map((seconds) => {
      const [amount, marked] = [total[`markout_${seconds}`], total[`marked_${seconds}`]];
      return {
        seconds,
        amount: quote(amount),
        marked_quote: quote(marked),
        unmarked_quote: quote(total[`unmarked_${seconds}`]),
        bps: bpsOf(amount, marked),
      };
    }),
    position: positionOf(market, activity),
    inventory: inventoryOf(market, activity, periodMs),
  };
}

function positionOf(market: Market, activity: MakerActivity): z.infer<typeof makerPairSchema>['position'] {
  const position = activity.position ?? NO_POSITION;
  const { middle } = activity;
  const quote = (units: bigint): string => formatUnits(units, market.quote.decimals);
  return {
    base: unitsToSize(market, openUnits(position)),
    average_price: averagePrice(market, costUnits(position), openUnits(position)),
    realised_pnl: quote(position.realisedUnits),
    middle: middle === null ? null : middlePrice(market, middle),
    unrealised_pnl: middle === null ? null : quote(unrealisedUnits(market, position, middle)),
  };
}

function inventoryOf(
  market: Market,
  { hours, openBeforeUnits }: MakerActivity,
  periodMs: number,
): z.infer<typeof makerPairSchema>['inventory'] {
  let open = openBeforeUnits;
  const rows = new Map<number, { base: bigint; closed: bigint }>();
  for (const { openMs, sums } of hours) {
    if (sums.parts === 0n) continue;
    open += sums.bought_base - sums.sold_base;
    const periodOpenMs = Math.floor(openMs / periodMs) * periodMs;
    rows.set(periodOpenMs, { base: open, closed: (rows.get(periodOpenMs)?.closed ?? 0n) + sums.closed_quote });
  }
  return [...rows].map(([openMs, { base, closed }]) => ({
    open_ms: openMs,
    base: unitsToSize(market, base),
    realised_pnl: formatUnits(closed, market.quote.decimals),
  }));
}
