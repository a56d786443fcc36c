import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits, toSafeInt } from '../../../core/amounts.js';
import { stringify } from '../../../core/json.js';
import { unitsToSize } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import { totalOfDays, type GasSpent, type OperatorDay } from '../../../ledger/accounts/operator.js';
import type { Span } from '../../../ledger/accounts/reads.js';
import { badRequest } from '../../errors.js';
import { createRemembered, sendText } from '../../rendered.js';
import { COSTS, costsOf } from '../costs.js';
import type { ReadDeps } from '../deps.js';
import { queryPairs } from '../params.js';
import { decimalSchema, integerSchema, pairSchema, signedDecimalSchema } from '../schemas.js';
import { daysOf, spanOf } from '../span.js';

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

/** How long an answer is shared by those who ask for the same pairs and days. */
const SHARED_MS = 10_000;

/**
 * GET /v0/operator/summary?pair=&from=&to=: what the platform earned and what it cost, per pair and day. Every hour of every pair is read for it, and
 * consoles ask for the same all the time: the newest answer is shared while the ledger stays the same. Gas comes without a generation, so that its
 * figures may be a little older.
 */
export function operatorSummaryHandler(deps: ReadDeps): RouterMiddleware {
  const remembered = createRemembered<string>();
  return async (ctx) => {
    const markets = queryPairs(ctx, deps.markets());
    const { interval, span } = spanOf(ctx, deps.nowMs());
    if (interval !== '1d') throw badRequest('the platform is summed up by day');
    const of = [...markets.map(({ index }) => index), deps.markets().length, span.fromMs, span.toMs].join();
    const key = `${of} ${await deps.store.ledgerVersion()} ${Math.floor(deps.nowMs() / SHARED_MS)}`;
    const units = daysOf(span) * markets.length;
    const make = async (): Promise<string> => {
      const body = await read(markets, span);
      costsOf(deps).add(ctx, COSTS.operatorSummary, units);
      return stringify(body);
    };
    // Outside of what is shared, where a refusal would reach those who are within their points.
    const text = await costsOf(deps).holding(ctx, COSTS.operatorSummary, units, () => remembered.get(key, make));
    sendText(ctx, text);
  };

  async function read(markets: readonly Market[], span: Span): Promise<z.infer<typeof operatorSummarySchema>> {
    const summary = await deps.store.operatorSummary(markets, {
      all: deps.markets(),
      span,
      nativeToken: deps.deployment.wrappedNative,
      nowMs: deps.nowMs(),
    });
    return {
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
  }
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
