import type { RouterMiddleware } from '@koa/router';
import { toSafeInt } from '../../core/amounts.js';
import { netUnits, partnerUnits } from '../../core/swap/partner.js';
import { maxSellUnits, minBuyUnits, type RoutePlan } from '../../core/swap/pricing.js';
import type { Head } from '../../liquidity/eth.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';
import { impactBps, routeAnswer } from './impact.js';
import { checkTokens, extraOf, parseRequest, planRequest, refuseWhileUnable, type QuoteRequest } from './quote.js';
import { checkPartnerBps, termsOf } from './partner.js';
import { newcomer } from './standing.js';

/** How long an answer may be cached: a price is valid for one block. */
const KEEP_SEC = 1;
/** Owner of price requests: no signature is made, and the fee includes no gas for checking one. */
const NOBODY = '0x0000000000000000000000000000000000000001';

/**
 * GET /api/v1/price: the price of a quote at the newest block, for clients without a wallet. Nothing is stored, no nonce is used, and
 * answers may be cached for a block. It is the price for an account that has not traded here: one that has may be quoted a better route
 * over several venues, and an account with code a higher fee.
 */
export function priceHandler(deps: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const { chainId, slippageBps, partnerBps, from: _from, receiver: _receiver, ...query } = ctx.query;
    const { partner: _partner, ...asked } = query;
    const request = parseRequest({
      ...asked,
      chainId: chainId === undefined ? deps.chainId : wholeNumber(chainId),
      from: NOBODY,
      ...(slippageBps === undefined ? {} : { slippageBps: wholeNumber(slippageBps) }),
      // Whoever it is, the price is the same.
      ...(partnerBps === undefined ? {} : { partner: NOBODY, partnerBps: wholeNumber(partnerBps) }),
      signingScheme: 'eip712',
    });
    if (request.orderClass === 'limit') throw badRequest('orderClass: a price is that of now, for market orders');
    checkTokens(deps, request);
    checkPartnerBps(deps, request);
    await refuseWhileUnable(deps, request);
    const { plan, head, atSec } = await planRequest(deps, request, extraOf(deps, request), await newcomer(deps, false));
    ctx.set('Cache-Control', `public, max-age=${KEEP_SEC}`);
    ctx.body = answerOf(request, plan, head, await impactBps(deps, request, plan, head, atSec));
  };
}

/** Text that is no whole number stays text, so that the schema refuses it. */
const wholeNumber = (text: string | string[]): unknown =>
  typeof text === 'string' && /^\d{1,9}$/.test(text) ? toSafeInt(BigInt(text)) : text;

function answerOf(request: QuoteRequest, plan: RoutePlan, head: Head, priceImpactBps: number | null) {
  const { kind, sellToken, buyToken, slippageBps } = request;
  const isSell = kind === 'sell';
  const terms = termsOf(request);
  const outUnits = netUnits(plan.outUnits, terms);
  const amount = partnerUnits(plan.outUnits, terms).toString();
  return {
    blockNumber: head.number,
    sellToken,
    buyToken,
    kind,
    sellAmount: (isSell ? plan.inUnits : maxSellUnits(plan.inUnits, slippageBps)).toString(),
    buyAmount: outUnits.toString(),
    minBuyAmount: (isSell ? minBuyUnits(outUnits, slippageBps) : outUnits).toString(),
    feeAmount: plan.feeUnits.toString(),
    ...(terms.partner === null ? {} : { partnerFee: { bps: terms.partnerBps, amount, token: buyToken } }),
    priceImpactBps,
    route: routeAnswer(plan.parts, request),
  };
}
