import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import {
  feeUnits,
  gasOf,
  isNoRoute,
  maxSellUnits,
  minBuyUnits,
  termsCalls,
  termsGas,
  type RoutePlan,
  withVolatility,
} from '../../core/swap/pricing.js';
import { grossUnits, netUnits } from '../../core/swap/partner.js';
import { callsIn } from '../../core/swap/paths.js';
import { checksOf, wayOf, type Standing } from '../../core/swap/trust.js';
import { witnessTypeString } from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { readExecutors } from '../../ledger/swaps/swap-executors.js';
import type { SwapQuote, SwapQuoteDraft } from '../../ledger/swaps/swap-quotes.js';
import type { Head } from '../../liquidity/eth.js';
import { planSent } from '../../liquidity/checked-plan.js';
import { decodeRoute, encodeRoute, impactIn, planRoute, type RouteNotes } from '../../liquidity/planner.js';
import { ApiError, badRequest } from '../errors.js';
import { parseAs, readBody } from './body.js';
import type { JoinedReads } from '../../liquidity/joined-reads.js';
import type { Permits } from '../../liquidity/permits.js';
import { approvalAnswer, approvalState, bringsPermit, type ApprovalState } from './approval.js';
import { createCheckGas, type Check } from './check-gas.js';
import type { SwapDeps } from './deps.js';
import { impactBps, routeAnswer } from './impact.js';
import { checkPartnerBps, partnerAnswer, partnerFields, partnerProblems, refuseUnpayable, termsOf } from './partner.js';
import { ownerQuotes } from './owner-quotes.js';
import { typedDataOf, type QuoteStore } from './quote-store.js';
import { refuseWhileSpent, refusedFor, standingOf, withPermit } from './standing.js';
import { requireToken } from './tokens.js';

const MAX_SLIPPAGE_BPS = 2_000;
/** Far beyond every order's end; larger numbers of seconds are no times. */
const MAX_SEC = 1e11;
const DEFAULT_SLIPPAGE_BPS = 50;
/** How long a limit order may wait, at least, at most, and unless it says otherwise. */
const LIMIT_SEC = { least: 60, most: 30 * 86_400, usual: 86_400 } as const;
/** Of what a limit order sells, the most that its fee would take now: orders that no price could pay for only take turns from others. */
const MOST_LIMIT_FEE_SHARE = 10n;

const addressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an address: 0x and 40 hex digits')
  .transform((value) => value.toLowerCase() as Address);
const amountSchema = z
  .string()
  .regex(/^[1-9]\d{0,38}$/, 'must be a positive integer of base units, as a decimal string of at most 39 digits')
  .transform((value) => BigInt(value));

export const quoteRequestSchema = z
  .object({
    chainId: z.int(),
    from: addressSchema,
    receiver: addressSchema.optional(),
    sellToken: addressSchema,
    buyToken: addressSchema,
    kind: z.enum(['sell', 'buy']),
    sellAmountBeforeFee: amountSchema.optional(),
    buyAmountAfterFee: amountSchema.optional(),
    orderClass: z.enum(['market', 'limit']).default('market'),
    minBuyAmount: amountSchema.optional(),
    maxSellAmount: amountSchema.optional(),
    validTo: z.int().min(1).max(MAX_SEC).optional(),
    slippageBps: z.int().min(0).max(MAX_SLIPPAGE_BPS).default(DEFAULT_SLIPPAGE_BPS),
    routingPreference: z.enum(['auto', 'preferService', 'onlyService']).default('auto'),
    signingScheme: z.literal('eip712'),
    ...partnerFields(addressSchema),
  })
  .superRefine((request, ctx) => {
    const [wanted, other] =
      request.kind === 'sell'
        ? (['sellAmountBeforeFee', 'buyAmountAfterFee'] as const)
        : (['buyAmountAfterFee', 'sellAmountBeforeFee'] as const);
    const issue = (path: string, message: string) => ctx.addIssue({ code: 'custom', path: [path], message });
    if (request[wanted] === undefined) issue(wanted, `required when kind is '${request.kind}'`);
    if (request[other] !== undefined) issue(other, `must be left out when kind is '${request.kind}'`);
    const isLimit = request.orderClass === 'limit';
    const bound = request.kind === 'sell' ? 'minBuyAmount' : 'maxSellAmount';
    for (const field of ['minBuyAmount', 'maxSellAmount'] as const) {
      const isWanted = isLimit && field === bound;
      if (isWanted && request[field] === undefined) issue(field, 'required of a limit order');
      if (!isWanted && request[field] !== undefined)
        issue(field, `is for limit orders of kind '${field === 'minBuyAmount' ? 'sell' : 'buy'}' only`);
    }
    if (!isLimit && request.validTo !== undefined) issue('validTo', 'is for limit orders only');
    for (const [field, message] of partnerProblems(request)) issue(field, message);
  });

export type QuoteRequest = z.output<typeof quoteRequestSchema>;

/** POST /api/v1/quote: prices a swap at the newest block and answers with what to sign. The quote is durable before the answer. */
export function quoteHandler(
  deps: SwapDeps,
  store: QuoteStore,
  permits: Permits,
  joined: JoinedReads,
): RouterMiddleware {
  const checkGasOf = createCheckGas(deps, joined);
  const ofOwner = deps.ownerQuotesPerMinute === undefined ? null : ownerQuotes(deps.ownerQuotesPerMinute);
  return async (ctx) => {
    const request = await readBody(ctx.req, quoteRequestSchema);
    checkRequest(deps, request);
    await ofOwner?.count(ctx, request.from);
    await refuseUnpayable(deps, request);
    await refuseWhileUnable(deps, request);
    const { sellToken, from: owner } = request;
    const [check, found] = await Promise.all([checkGasOf(owner), approvalState(deps, permits, { sellToken, owner })]);
    // An owner with code has no key to sign a permit with, so the token's support does not count for it.
    const approval = check.isCode ? { ...found, support: null } : found;
    const priced = await priceRequest(deps, request, check, approval);
    ctx.body = answerOf(deps, await store.save(draftOf(deps, request, priced)), approval);
  };
}

/** A quote's request in its own shape. Throws 400 with every problem at once. */
export const parseRequest = (value: unknown): QuoteRequest => parseAs(quoteRequestSchema, value);

/** Throws 503 while no order could be executed. */
export async function refuseWhileUnable(deps: SwapDeps, request: QuoteRequest): Promise<void> {
  const { ready, reason } = deps.readiness();
  if (!ready) throw new ApiError(503, 'NOT_READY', `No quotes at the moment: ${reason ?? 'the ledger is not ready'}`);
  refuseQuarantined(deps, request);
  await refuseUnfunded(deps);
}

/** An order for a token in quarantine would only wait until it expires. Throws ApiError `TOKEN_QUARANTINED`. */
function refuseQuarantined(deps: SwapDeps, { sellToken, buyToken }: QuoteRequest): void {
  const held = [sellToken, buyToken].find((token) => deps.quarantined().has(token));
  if (held !== undefined) throw new ApiError(503, 'TOKEN_QUARANTINED', `${held} is in quarantine; try again later`);
}

/** Throws ApiError `EXECUTOR_UNFUNDED` when no executor can pay for transactions. */
async function refuseUnfunded({ db, nowMs }: SwapDeps): Promise<void> {
  const executors = await readExecutors(db.knex, nowMs());
  if (executors.length === 0 || executors.some(({ isFunded }) => isFunded)) return;
  throw new ApiError(
    503,
    'EXECUTOR_UNFUNDED',
    'No quotes at the moment: the service has no ETH to send transactions with',
  );
}

/** Throws 400 for another chain, and for tokens that are not traded. */
export function checkTokens(deps: SwapDeps, { chainId, sellToken, buyToken }: QuoteRequest): void {
  if (chainId !== deps.chainId) throw badRequest(`chainId: must be ${deps.chainId}`);
  requireToken(deps, 'sellToken', sellToken);
  requireToken(deps, 'buyToken', buyToken);
  if (sellToken === buyToken) throw badRequest('buyToken: must differ from sellToken');
}

function checkRequest(deps: SwapDeps, request: QuoteRequest): void {
  const { from, receiver = from, validTo } = request;
  checkTokens(deps, request);
  const nowSec = Math.floor(deps.nowMs() / 1_000);
  if (validTo !== undefined && (validTo < nowSec + LIMIT_SEC.least || validTo > nowSec + LIMIT_SEC.most)) {
    throw badRequest(
      `validTo: must be ${LIMIT_SEC.least} seconds to 30 days from now, ${nowSec + LIMIT_SEC.least} to ${nowSec + LIMIT_SEC.most}`,
    );
  }
  if (/^0x0+$/.test(from)) throw badRequest('from: must be the owner who signs');
  for (const [field, account] of [
    ['receiver', receiver],
    ['partner', request.partner],
  ] as const) {
    if (account !== undefined && !canReceive(deps, account))
      throw badRequest(`${field}: ${account} can't receive tokens`);
  }
  checkPartnerBps(deps, request);
}

/** Whether tokens that are sent there are not lost, as far as we know of contracts. */
const canReceive = ({ tokens, forbiddenReceivers }: SwapDeps, account: Address): boolean =>
  !/^0x0+$/.test(account) &&
  !forbiddenReceivers.includes(account) &&
  !tokens.some(({ address }) => address === account);

/** A route with the gas in its fee for checking the owner's signature, the approval that the order must include, and its price impact. */
type PricedRoute = RoutePlan & Required<RouteNotes>;

async function priceRequest(
  deps: SwapDeps,
  request: QuoteRequest,
  { gas: checkGas, isCode }: Check,
  approval: ApprovalState,
): Promise<PricedRoute> {
  const extraWith = (isBrought: boolean): Extra => {
    const beforeGas = isBrought ? deps.gasModel.permit : 0n;
    const { gas, calls } = extraOf(deps, request);
    return { gas: checkGas + beforeGas + gas, beforeGas, calls: calls + (isBrought ? 1 : 0) };
  };
  const standing = await standingOf(deps, request.from, isCode);
  const planWith = (isBrought: boolean): ReturnType<typeof planRequest> =>
    planRequest(deps, request, extraWith(isBrought), isBrought ? withPermit(deps, standing) : standing);
  // The input of a purchase is only known after pricing.
  let isBrought = bringsPermit(approval, request.sellAmountBeforeFee ?? 0n);
  let priced = await planWith(isBrought);
  if (!isBrought && bringsPermit(approval, mostUnits(request, priced.plan))) {
    isBrought = true;
    priced = await planWith(isBrought);
  }
  const { plan, head, atSec } = priced;
  const mostFee = mostUnits(request, plan) / MOST_LIMIT_FEE_SHARE;
  if (request.orderClass === 'limit' && plan.feeUnits > mostFee) {
    const field = request.kind === 'sell' ? 'sellAmountBeforeFee' : 'maxSellAmount';
    throw badRequest(
      `${field}: too little for a limit order, whose fee of now, ${plan.feeUnits}, would be more than a tenth of it`,
    );
  }
  const ids = plan.parts.map(({ id }) => id);
  await refuseWhileSpent(deps, standing, gasOf(deps.gasModel, ids) + extraWith(isBrought).gas);
  const permit =
    isBrought && approval.support !== null ? { style: approval.support.style, nonce: approval.nonce } : null;
  return { ...plan, checkGas, permit, impactBps: await impactBps(deps, request, plan, head, atSec) };
}

/** The most that an order takes: for a purchase the input plus slippage, or what a limit order names. */
const mostUnits = ({ kind, slippageBps, maxSellAmount }: QuoteRequest, { inUnits }: RoutePlan): bigint =>
  kind === 'sell' ? inUnits : (maxSellAmount ?? maxSellUnits(inUnits, slippageBps));

/** The least that a route of a market order must bring of a sale, or the most that it may take for a purchase, without its fee. */
function boundUnits(request: QuoteRequest, plan: RoutePlan): bigint {
  const terms = termsOf(request);
  return request.kind === 'sell'
    ? grossUnits(minBuyUnits(netUnits(plan.outUnits, terms), request.slippageBps), terms)
    : mostUnits(request, plan) - plan.feeUnits;
}

/** What a request's partner and hash take. */
export function extraOf({ gasModel }: Pick<SwapDeps, 'gasModel'>, request: QuoteRequest): Extra {
  const terms = termsOf(request);
  return { gas: termsGas(gasModel, terms), beforeGas: 0n, calls: termsCalls(terms) };
}

/** What an order takes besides its route: gas, and data counted in calls of the usual length. */
interface Extra {
  gas: bigint;
  /** Of that, an approval that comes first. */
  beforeGas: bigint;
  calls: number;
}

/**
 * The best route at the newest block that executors accept for an owner of that standing, with the order's other costs in its fee. What it
 * brings is gross: a partner's part comes off it. Throws 400 without one.
 */
export async function planRequest(
  deps: SwapDeps,
  request: QuoteRequest,
  extra: Extra,
  standing: Standing,
): Promise<{ plan: RoutePlan; head: Head; atSec: number }> {
  const { marketData } = deps;
  const { kind, sellToken, buyToken, routingPreference } = request;
  const atSec = Math.floor(deps.nowMs() / 1_000);
  const head = await marketData.head();
  const gasPrice = await marketData.gasPrice(sellToken, head, atSec);
  if (gasPrice === null) throw noLiquidity(`Nothing prices gas in ${sellToken}, so the fee can't be told`);
  const price = withVolatility(gasPrice, deps.gasVolatilityBps ?? 0);
  const way = wayOf(standing, extra.gas - extra.beforeGas, extra.beforeGas);
  const checksOn = checksOf(way, deps.gasModel);
  const question = {
    kind,
    sellToken,
    buyToken,
    amountUnits:
      kind === 'sell'
        ? (request.sellAmountBeforeFee ?? 0n)
        : grossUnits(request.buyAmountAfterFee ?? 0n, termsOf(request)),
    preference: routingPreference,
    toleranceBps: deps.toleranceBps,
    feeOf: (ids: readonly string[], counted: number | null = 0) => {
      const checks = checksOn(ids, counted);
      const gas = gasOf(deps.gasModel, ids) + extra.gas + checks.gas;
      return feeUnits(gas, price, deps.feeMarginBps, callsIn(ids) + extra.calls + checks.calls);
    },
    // What a limit order relies on is known once its price is reached.
    boundOf: (plan: RoutePlan) => (request.orderClass === 'limit' ? null : boundUnits(request, plan)),
  };
  const plan = await planSent(marketData, { ...question, way }, head, atSec);
  if (!isNoRoute(plan)) return { plan, head, atSec };
  const { boundOf: _, ...anyones } = question;
  if (!isNoRoute(await planRoute(marketData, anyones, head, atSec))) throw refusedFor(standing);
  if (plan.problem === 'fee') {
    throw badRequest(`sellAmountBeforeFee: too little, the fee alone is ${plan.feeUnits}`);
  }
  const where = routingPreference === 'onlyService' ? 'our own liquidity has' : 'there is';
  throw noLiquidity(`No route: ${where} no or not enough liquidity for this swap`);
}

const noLiquidity = (message: string): ApiError => new ApiError(400, 'INSUFFICIENT_LIQUIDITY', message);

/**
 * Slippage lowers the least output of a sell order, and raises the most input of a buy order. A limit order has what it names as both what is
 * expected and what is guaranteed.
 */
function draftOf(deps: SwapDeps, request: QuoteRequest, plan: PricedRoute): SwapQuoteDraft {
  const nowMs = deps.nowMs();
  const { kind, slippageBps, minBuyAmount } = request;
  const isSell = kind === 'sell';
  const isLimit = request.orderClass === 'limit';
  const sellUnits = mostUnits(request, plan);
  const nowSec = Math.floor(nowMs / 1_000);
  const terms = termsOf(request);
  const outUnits = netUnits(plan.outUnits, terms);
  return {
    id: crypto.randomUUID(),
    owner: request.from,
    receiver: request.receiver ?? request.from,
    sellToken: request.sellToken,
    buyToken: request.buyToken,
    kind,
    preference: request.routingPreference,
    slippageBps,
    isLimit,
    sellUnits,
    expectedSellUnits: isLimit ? sellUnits : plan.inUnits,
    buyUnits: minBuyAmount ?? outUnits,
    minBuyUnits: minBuyAmount ?? (isSell ? minBuyUnits(outUnits, slippageBps) : outUnits),
    feeUnits: plan.feeUnits,
    validToSec: isLimit ? (request.validTo ?? nowSec + LIMIT_SEC.usual) : nowSec + deps.orderTtlSec,
    createdMs: nowMs,
    expiresMs: nowMs + deps.quoteTtlSec * 1_000,
    route: encodeRoute(plan.parts, plan),
    ...terms,
  };
}

function answerOf(deps: SwapDeps, quote: SwapQuote, approval: ApprovalState) {
  const parts = decodeRoute(quote.route);
  return {
    id: quote.id,
    from: quote.owner,
    route: routeAnswer(parts, quote),
    priceImpactBps: impactIn(quote.route),
    expiration: new Date(quote.expiresMs).toISOString(),
    quote: {
      sellToken: quote.sellToken,
      buyToken: quote.buyToken,
      receiver: quote.receiver,
      sellAmount: quote.sellUnits.toString(),
      buyAmount: quote.buyUnits.toString(),
      minBuyAmount: quote.minBuyUnits.toString(),
      validTo: quote.validToSec,
      feeAmount: quote.feeUnits.toString(),
      kind: quote.kind,
      orderClass: quote.isLimit ? 'limit' : 'market',
      partiallyFillable: false,
      signingScheme: 'eip712',
    },
    ...partnerAnswer(quote, parts),
    permit2: {
      allowanceTarget: deps.permit2,
      spender: deps.settler,
      typedData: typedDataOf(quote),
      witnessTypeString: witnessTypeString(quote),
    },
    approval: approvalAnswer(deps, quote, approval),
  };
}
