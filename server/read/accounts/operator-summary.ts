import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits, toSafeInt } from '../../../core/amounts.js';
import { unitsToSize } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import { totalOfDays, type GasSpent, type OperatorDay } from '../../../ledger/accounts/operator.js';
import { badRequest } from '../../errors.js';
import type { ReadDeps } from '../deps.js';
import { queryPairs } from '../params.js';
import { decimalSchema, integerSchema, pairSchema, signedDecimalSchema } from '../schemas.js';
import { spanOf } from '../span.js';

const amountsSchema = z.strictObject({ base: decimalSchema, quote: decimalSchema });

/** In the chain's native token. */
const gasSchema = z
  .strictObject({ posts: decimalSchema, settlements: decimalSchema, fills: decimalSchema })
  .meta({ id: 'GasSpent' });

const figuresSchema = z.strictObject({
  fills: integerSchema,
  /** What takers bought and sold, in the quote token. */
  volume: decimalSchema,
  /** The operator's gain on fills: the residuals; fills in suspense do not count. */
  residual: signedDecimalSchema,
  /** Fees that takers paid on top of the curve's amount, to the operator. */
  input_fees: amountsSchema,
  /** Credited to takers. */
  taker_fees: amountsSchema,
  gas: gasSchema,
  /** The gas in the quote token, at the day's last price of the native token; null when no listed pair has that price. */
  gas_quote: decimalSchema.nullable(),
  /** residual + input fees, those in base at the day's last price, - gas_quote; null without it. */
  profit: signedDecimalSchema.nullable(),
});

export const operatorSummarySchema = z.strictObject({
  /** Fills from here on and before there, both at midnight UTC. */
  from_ms: integerSchema,
  to_ms: integerSchema,
  pairs: z.array(
    z
      .strictObject({
        pair: pairSchema,
        quote_token: z.string(),
        total: figuresSchema,
        /** Those with a fill or gas, oldest first. */
        days: z.array(figuresSchema.extend({ open_ms: integerSchema })),
      })
      .meta({ id: 'OperatorPair' }),
  ),
  /** Of all transactions, those of no pair included. */
  gas: gasSchema,
});

/** Decimals of the chain's native token. */
const NATIVE_DECIMALS = 18;

/** GET /v0/operator/summary?pair=&from=&to=: what the platform earned and what it cost, per pair and day. */
export function operatorSummaryHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const markets = queryPairs(ctx, deps.markets());
    const { interval, span } = spanOf(ctx, deps.nowMs());
    if (interval !== '1d') throw badRequest('the platform is summed up by day');
    const summary = await deps.store.operatorSummary(markets, {
      all: deps.markets(),
      span,
      nativeToken: deps.deployment.wrappedNative,
      nowMs: deps.nowMs(),
    });
    const body: z.infer<typeof operatorSummarySchema> = {
      from_ms: span.fromMs,
      to_ms: span.toMs,
      pairs: summary.markets.map(({ market: index, days }) => {
        const market = deps.markets()[index]!;
        return {
          pair: market.pair,
          quote_token: market.quote.symbol,
          total: figuresOf(market, totalOfDays(days)),
          days: days.map((day) => ({ open_ms: day.openMs, ...figuresOf(market, day) })),
        };
      }),
      gas: gasOf(summary.gasWei),
    };
    ctx.body = body;
  };
}

const gasOf = ({ poster, settler, executor }: GasSpent): z.infer<typeof gasSchema> => ({
  posts: formatUnits(poster, NATIVE_DECIMALS),
  settlements: formatUnits(settler, NATIVE_DECIMALS),
  fills: formatUnits(executor, NATIVE_DECIMALS),
});

function figuresOf(
  market: Market,
  { sums, gasWei, gasUnits, profitUnits }: Omit<OperatorDay, 'openMs'>,
): z.infer<typeof figuresSchema> {
  const quote = (units: bigint): string => formatUnits(units, market.quote.decimals);
  return {
    fills: toSafeInt(sums.fills),
    volume: quote(sums.bought_quote + sums.sold_quote),
    residual: quote(sums.gain_quote),
    input_fees: { base: unitsToSize(market, sums.input_base), quote: quote(sums.input_quote) },
    taker_fees: { base: unitsToSize(market, sums.fee_base), quote: quote(sums.fee_quote) },
    gas: gasOf(gasWei),
    gas_quote: gasUnits === null ? null : quote(gasUnits),
    profit: profitUnits === null ? null : quote(profitUnits),
  };
}
