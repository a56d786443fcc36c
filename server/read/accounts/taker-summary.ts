import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits, toSafeInt } from '../../../core/amounts.js';
import { unitsToSize } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import type { TakerSum } from '../../../ledger/accounts/tables.js';
import { bpsOf } from '../amounts.js';
import { COSTS, costsOf } from '../costs.js';
import type { ReadDeps } from '../deps.js';
import { addressOf } from '../params.js';
import { addressSchema, decimalSchema, integerSchema, pairSchema, signedDecimalSchema } from '../schemas.js';
import { daysOf, spanOf } from '../span.js';
import { badRequest } from '../../errors.js';

const tradedSchema = z.strictObject({ base: decimalSchema, quote: decimalSchema });

const takerPairSchema = z
  .strictObject({
    pair: pairSchema,
    fills: integerSchema,
    /** At the curve, before fees. */
    bought: tradedSchema,
    sold: tradedSchema,
    /** Bought and sold, in the quote token. */
    volume: decimalSchema,
    /** Taken from what was paid out, and paid beyond what the curve took. */
    fees: tradedSchema,
    input_fees: tradedSchema,
    /** What was paid beyond the middle of the curves that were hit, before fees, in the quote token; less than zero is a better price. */
    slippage: signedDecimalSchema,
    /** Quote amount of the fills that it counts: those of curves with a middle. */
    priced_quote: decimalSchema,
    /** `slippage` in basis points of `priced_quote`; null without any. */
    slippage_bps: signedDecimalSchema.nullable(),
  })
  .meta({ id: 'TakerSummary' });

export const takerSummarySchema = z.strictObject({
  taker: addressSchema,
  /** Fills from here on and before there, both at midnight UTC. */
  from_ms: integerSchema,
  to_ms: integerSchema,
  pairs: z.array(takerPairSchema),
});

/** GET /v0/takers/{address}/summary?from=&to=: volume, fees and slippage of swaps that an address sent or signed. */
export function takerSummaryHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const taker = addressOf(ctx.params.address ?? '');
    const { interval, span } = spanOf(ctx, deps.nowMs());
    if (interval !== '1d') throw badRequest('swaps are summed up by day');
    const most = daysOf(span) * deps.markets().length;
    const read = () => deps.store.takerActivity(taker, span);
    const activity = await costsOf(deps).holding(ctx, COSTS.takerSummary, most, read);
    costsOf(deps).add(ctx, COSTS.takerSummary, daysOf(span) * activity.length);
    const body: z.infer<typeof takerSummarySchema> = {
      taker,
      from_ms: span.fromMs,
      to_ms: span.toMs,
      pairs: activity.map(({ market, total }) => pairOf(deps.markets()[market]!, total)),
    };
    ctx.body = body;
  };
}

function pairOf(market: Market, total: Record<TakerSum, bigint>): z.infer<typeof takerPairSchema> {
  const traded = (baseUnits: bigint, quoteUnits: bigint) => ({
    base: unitsToSize(market, baseUnits),
    quote: formatUnits(quoteUnits, market.quote.decimals),
  });
  return {
    pair: market.pair,
    fills: toSafeInt(total.fills),
    bought: traded(total.bought_base, total.bought_quote),
    sold: traded(total.sold_base, total.sold_quote),
    volume: formatUnits(total.bought_quote + total.sold_quote, market.quote.decimals),
    fees: traded(total.fee_base, total.fee_quote),
    input_fees: traded(total.input_base, total.input_quote),
    slippage: formatUnits(total.slippage_quote, market.quote.decimals),
    priced_quote: formatUnits(total.priced_quote, market.quote.decimals),
    slippage_bps: bpsOf(total.slippage_quote, total.priced_quote),
  };
}
