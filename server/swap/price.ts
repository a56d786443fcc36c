import type { RouterMiddleware } from '@koa/router';
import { toSafeInt } from '../../core/amounts.js';
import { squareRoot } from '../../core/swap/pool-math.js';
import { BPS, maxSellUnits, minBuyUnits, type RoutePlan } from '../../core/swap/pricing.js';
import type { Source } from '../../core/swap/source.js';
import type { Head } from '../../liquidity/eth.js';
import type { SwapDeps } from './deps.js';
import { checkTokens, parseRequest, planRequest, refuseWhileUnable, type QuoteRequest } from './quote.js';

/** How long an answer may be kept: a price is of one block. */
const KEEP_SEC = 1;
/** The mid price is that of this part of the amount. */
const PROBE_PART = 1_000n;
const RATE_BITS = 96n;
/** Nobody signs for a price, and a fee for the check of a signature is not in it. */
const NOBODY = '0x0000000000000000000000000000000000000001';

/**
 * GET /api/v1/price: what a quote would say at the newest block, for whoever has no wallet yet. Nothing is stored, no nonce is given out, and answers
 * may be kept for a block; an account with code may be quoted a higher fee.
 */
export function priceHandler(deps: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const { chainId, slippageBps, from: _from, receiver: _receiver, ...query } = ctx.query;
    const request = parseRequest({
      ...query,
      chainId: chainId === undefined ? deps.chainId : wholeNumber(chainId),
      from: NOBODY,
      ...(slippageBps === undefined ? {} : { slippageBps: wholeNumber(slippageBps) }),
      signingScheme: 'eip712',
    });
    checkTokens(deps, request);
    await refuseWhileUnable(deps, request);
    const { plan, head, atSec } = await planRequest(deps, request, 0n);
    ctx.set('Cache-Control', `public, max-age=${KEEP_SEC}`);
    ctx.body = answerOf(request, plan, head, await impactBps(deps, request, plan, head, atSec));
  };
}

/** Text that is no whole number stays as it is, for the schema to refuse. */
const wholeNumber = (text: string | string[]): unknown =>
  typeof text === 'string' && /^\d{1,9}$/.test(text) ? toSafeInt(BigInt(text)) : text;

function answerOf(request: QuoteRequest, plan: RoutePlan, head: Head, priceImpactBps: number | null) {
  const { kind, sellToken, buyToken, slippageBps } = request;
  const isSell = kind === 'sell';
  return {
    blockNumber: head.number,
    sellToken,
    buyToken,
    kind,
    sellAmount: (isSell ? plan.inUnits : maxSellUnits(plan.inUnits, slippageBps)).toString(),
    buyAmount: plan.outUnits.toString(),
    minBuyAmount: (isSell ? minBuyUnits(plan.outUnits, slippageBps) : plan.outUnits).toString(),
    feeAmount: plan.feeUnits.toString(),
    priceImpactBps,
    route: plan.parts.map(({ id, inUnits, outUnits }) => ({
      source: id,
      sellAmount: inUnits.toString(),
      buyAmount: outUnits.toString(),
    })),
  };
}

/**
 * How much less than at the mid price the route brings, the fee not counted, in whole basis points rounded to the nearest. The mid is the geometric
 * mean of the best prices for a small amount either way; null where the pair trades one way only.
 */
async function impactBps(
  { marketData }: SwapDeps,
  { sellToken, buyToken }: QuoteRequest,
  { inUnits, outUnits, feeUnits }: RoutePlan,
  head: Head,
  atSec: number,
): Promise<number | null> {
  const traded = inUnits - feeUnits;
  const there = bestRate(await marketData.sources(sellToken, buyToken, head, atSec), traded / PROBE_PART);
  const back = bestRate(await marketData.sources(buyToken, sellToken, head, atSec), outUnits / PROBE_PART);
  if (there === 0n || back === 0n) return null;
  // Out per in: what selling brings, and what is paid to buy it back.
  const mid = squareRoot((there << (2n * RATE_BITS)) / back);
  const route = (outUnits << RATE_BITS) / traded;
  const scaled = ((mid - route) * BPS * 2n) / mid;
  return toSafeInt((scaled + (scaled < 0n ? -1n : 1n)) / 2n);
}

/** Units out per unit in at the best source, in binary fixed point; 0 when none takes the amount. */
function bestRate(sources: readonly Source[], inUnits: bigint): bigint {
  const rates = sources.map(
    (source) => ((source.outputFor(inUnits) ?? 0n) << RATE_BITS) / (inUnits === 0n ? 1n : inUnits),
  );
  return rates.reduce((best, rate) => (rate > best ? rate : best), 0n);
}
