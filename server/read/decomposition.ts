import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import { ticksToPrice, unitsToSize } from '../../core/market.js';
import type { Leg, Market } from '../../core/types.js';
import { COSTS, costsOf, UNBOUNDED_UNITS } from './costs.js';
import type { ExplainedFill, ReadDeps } from './deps.js';
import { directionOf, feeOf } from './fills.js';
import { queryMarket, sequenceOf } from './params.js';
import {
  addressSchema,
  decimalSchema,
  directionSchema,
  feeSchema,
  integerSchema,
  pairSchema,
  signedDecimalSchema,
} from './schemas.js';

/** One maker at one of its own prices. quote_amount = price x base_amount, floored to the quote token's smallest unit. */
const legSchema = z
  .strictObject({
    maker: addressSchema,
    price: decimalSchema,
    size: decimalSchema,
    base_amount: decimalSchema,
    quote_amount: decimalSchema,
    /** The maker's orders in this leg, with the base amount of each. */
    orders: z.array(z.strictObject({ oid: integerSchema, base_amount: decimalSchema })),
  })
  .meta({ id: 'Leg' });

/** The quote amounts of the legs plus `residual` are the curve's full quote amount; residual = rounding + compression_residual. */
export const decompositionSchema = z
  .strictObject({
    pair: pairSchema,
    fill_seq: integerSchema,
    status: z.enum(['pending', 'final']),
    curve_seq: integerSchema.nullable(),
    direction: directionSchema.nullable(),
    /**
     * Base of its side that was consumed before it, as the chain counts: since the snapshot of its curve, including the raise at its
     * landing.
     */
    consumed_before: decimalSchema.nullable(),
    legs: z.array(legSchema),
    rounding: decimalSchema,
    compression_residual: signedDecimalSchema,
    residual: signedDecimalSchema,
    /** +residual on buys, -residual on sells. */
    operator_gain: signedDecimalSchema,
    fee: feeSchema,
  })
  .meta({ id: 'Decomposition' });

type DecompositionBody = z.infer<typeof decompositionSchema>;

/** GET /v0/fills/{fill_seq}/decomposition?pair=: the amount that each maker was paid, and the operator's residual. */
export function decompositionHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const market = queryMarket(ctx, deps.markets());
    const fillSeq = sequenceOf(ctx.params.fill_seq ?? '', 'fill_seq');
    const explained = await costsOf(deps).holding(ctx, COSTS.decomposition, UNBOUNDED_UNITS, () =>
      deps.store.explainedFill(market.index, fillSeq),
    );
    const legs = explained?.decomposition.legs ?? [];
    const orders = legs.reduce((sum, leg) => sum + leg.orders.length, 0);
    costsOf(deps).add(ctx, COSTS.decomposition, orders);
    ctx.body = explained === null ? pending(market, fillSeq) : decompositionBody(market, explained);
  };
}

/** No attributed fill has this number; one may get it later. */
function pending(market: Market, fillSeq: number): DecompositionBody {
  return {
    pair: market.pair,
    fill_seq: fillSeq,
    status: 'pending',
    curve_seq: null,
    direction: null,
    consumed_before: null,
    legs: [],
    rounding: '0',
    compression_residual: '0',
    residual: '0',
    operator_gain: '0',
    fee: { taker: null, token: null, amount: '0' },
  };
}

/** The wire form of an attributed fill; quote amounts are in whole units of the quote token, written in token units. */
function decompositionBody(market: Market, { fill, decomposition }: ExplainedFill): DecompositionBody {
  const quote = (units: bigint): string => formatUnits(units, market.quote.decimals);
  return {
    pair: market.pair,
    fill_seq: fill.fillSeq,
    status: 'final',
    curve_seq: fill.curveSeq,
    direction: directionOf(fill),
    consumed_before: unitsToSize(market, fill.consumedBeforeUnits),
    legs: decomposition.legs.map((leg) => legBody(market, leg)),
    rounding: quote(decomposition.roundingUnits),
    compression_residual: quote(decomposition.compressionResidualUnits),
    residual: quote(decomposition.residualUnits),
    operator_gain: quote(decomposition.operatorGainUnits),
    fee: feeOf(market, fill),
  };
}

function legBody(market: Market, leg: Leg): DecompositionBody['legs'][number] {
  const size = unitsToSize(market, leg.baseUnits);
  return {
    maker: leg.maker,
    price: ticksToPrice(market, leg.priceTicks),
    size,
    base_amount: size,
    quote_amount: formatUnits(leg.quoteUnits, market.quote.decimals),
    orders: leg.orders.map(({ oid, baseUnits }) => ({ oid, base_amount: unitsToSize(market, baseUnits) })),
  };
}
