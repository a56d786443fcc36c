import { z } from 'zod';
import type Router from '@koa/router';
import type { Middleware } from 'koa';
import { joinedReads, type JoinedReads } from '../../liquidity/joined-reads.js';
import { createPermits, type Permits } from '../../liquidity/permits.js';
import { notKept, routesOf, type RequestLimit, type ServedEndpoint } from '../openapi/endpoint.js';
import { rateLimit } from '../rate-limit.js';
import { chainFaults } from './chain-faults.js';
import { cancelHandler, cancellationSchema } from './cancel.js';
import type { SwapDeps } from './deps.js';
import { orderHandler, ordersHandler } from './order.js';
import { priceHandler } from './price.js';
import { createQuoteStore, type QuoteStore } from './quote-store.js';
import { quoteHandler, quoteRequestSchema } from './quote.js';
import { submissionSchema, submitHandler } from './submit.js';
import { tokensHandler } from './tokens.js';

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const hash = z.string().regex(/^0x[0-9a-f]{64}$/);
const amount = z
  .string()
  .regex(/^(0|[1-9]\d*)$/)
  .meta({ description: 'base units' });
const timestamp = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const orderClass = z.enum(['market', 'limit']);
const status = z.enum(['pending', 'filled', 'failed', 'expired']);

const tokensSchema = z.array(
  z
    .strictObject({
      chainId: z.int(),
      address,
      symbol: z.string(),
      name: z.string(),
      decimals: z.int().min(0),
      logoURI: z.string(),
    })
    .meta({ id: 'Token' }),
);

const typedDataSchema = z
  .strictObject({
    domain: z.strictObject({ name: z.string(), chainId: z.int(), verifyingContract: address }),
    primaryType: z.literal('PermitWitnessTransferFrom'),
    types: z.record(z.string(), z.array(z.strictObject({ name: z.string(), type: z.string() }))),
    message: z.strictObject({
      permitted: z.strictObject({ token: address, amount }),
      spender: address,
      nonce: amount,
      deadline: amount,
      witness: z.strictObject({
        recipient: address,
        tokenOut: address,
        minAmountOut: amount,
        partner: address.optional().describe('these three with a partner or appData only; zero for none'),
        partnerBps: amount.optional(),
        appData: hash.optional(),
      }),
    }),
  })
  .meta({ id: 'OrderTypedData', description: 'signed exactly as it is' });

const permitTypedDataSchema = z
  .strictObject({
    domain: z.strictObject({
      name: z.string().optional(),
      version: z.string().optional(),
      chainId: z.int().optional(),
      verifyingContract: address.optional(),
    }),
    primaryType: z.literal('Permit'),
    types: z.record(z.string(), z.array(z.strictObject({ name: z.string(), type: z.string() }))),
    message: z.record(z.string(), z.union([z.string(), z.boolean()])),
  })
  .meta({ id: 'PermitTypedData', description: 'signed exactly as it is' });

const routeSchema = z
  .array(
    z.strictObject({
      source: z.string(),
      sellAmount: amount,
      buyAmount: amount,
      legs: z
        .array(
          z.strictObject({
            source: z.string(),
            sellToken: address,
            buyToken: address,
            sellAmount: amount,
            buyAmount: amount,
          }),
        )
        .optional()
        .describe('of a part by way of other tokens: each place, and what it trades for what'),
    }),
  )
  .meta({ description: 'as quoted; `own` is our curve' });
const impactSchema = z.int().nullable().meta({ description: 'against the mid price, the fee not counted' });

const quoteSchema = z
  .strictObject({
    id: z.string(),
    from: address,
    route: routeSchema,
    priceImpactBps: impactSchema,
    expiration: timestamp,
    quote: z.strictObject({
      sellToken: address,
      buyToken: address,
      receiver: address,
      sellAmount: amount.meta({ description: 'the most that is sold, base units' }),
      buyAmount: amount.meta({ description: 'what is expected, or the limit, base units' }),
      minBuyAmount: amount.meta({ description: 'the least that is bought, base units' }),
      validTo: z.int().meta({ description: 'deadline of the permit, Unix seconds' }),
      feeAmount: amount.meta({
        description:
          'for gas, in the sell token, part of sellAmount; of a limit order as of now, it is taken at execution',
      }),
      kind: z.enum(['sell', 'buy']),
      orderClass,
      partiallyFillable: z.literal(false),
      signingScheme: z.literal('eip712'),
    }),
    partnerFee: z.strictObject({ partner: address, bps: z.int(), amount, token: address }).optional().meta({
      description:
        'with a partner: what it gets of what is bought, beside buyAmount, as expected, or of a limit order at its limit',
    }),
    appData: hash.optional().meta({ description: 'as asked for; absent for none and for zero' }),
    permit2: z.strictObject({
      allowanceTarget: address.meta({ description: 'Permit2, to which the sell token is approved' }),
      spender: address.meta({ description: 'settles orders; never approved directly' }),
      typedData: typedDataSchema,
      witnessTypeString: z.string(),
    }),
    approval: z.strictObject({
      required: z.boolean().meta({ description: 'Permit2 may not take sellAmount of the owner yet' }),
      type: z
        .enum(['eip2612', 'dai', 'none'])
        .meta({ description: 'how the sell token takes an approval by signature' }),
      typedData: permitTypedDataSchema
        .nullable()
        .meta({ description: 'signed beside the order where an approval is required; null where none can be or is' }),
    }),
  })
  .meta({ id: 'SwapQuote' });

const priceSchema = z
  .strictObject({
    blockNumber: z.int(),
    sellToken: address,
    buyToken: address,
    kind: z.enum(['sell', 'buy']),
    sellAmount: amount,
    buyAmount: amount,
    minBuyAmount: amount,
    feeAmount: amount,
    partnerFee: z
      .strictObject({ bps: z.int(), amount, token: address })
      .optional()
      .meta({ description: 'with partnerBps: what a partner would get of what is bought, beside buyAmount' }),
    priceImpactBps: impactSchema,
    route: routeSchema,
  })
  .meta({ id: 'SwapPrice' });

const submissionAnswerSchema = z
  .strictObject({ orderId: z.string(), quoteId: z.string(), status })
  .meta({ id: 'SwapSubmission' });

export const orderSchema = z
  .strictObject({
    orderId: z.string(),
    quoteId: z.string(),
    clientOrderId: z.string().nullable(),
    status,
    sellToken: address,
    buyToken: address,
    kind: z.enum(['sell', 'buy']),
    orderClass,
    sellAmount: amount,
    buyAmount: amount,
    minBuyAmount: amount,
    validTo: z.int().meta({ description: 'last second at which it may be executed' }),
    executedSellAmount: amount,
    executedBuyAmount: amount.meta({ description: "what the receiver got, the partner's part not included" }),
    partner: address.optional().meta({ description: 'this and the next two where there is a partner' }),
    partnerBps: z.int().optional(),
    partnerFeeAmount: amount
      .nullable()
      .optional()
      .meta({ description: 'what the partner got of the buy token; null until filled' }),
    appData: hash.optional(),
    txHash: hash.nullable(),
    explorerUrl: z.string().nullable(),
    route: routeSchema,
    priceImpactBps: impactSchema,
    makers: z
      .array(
        z.strictObject({
          pair: z.string(),
          fillSeq: z.int(),
          decomposition: z.string().meta({ description: 'path on this server' }),
          legs: z.array(z.strictObject({ maker: address, baseAmount: amount, quoteAmount: amount })),
        }),
      )
      .meta({ description: 'what our curve gave, once filled' }),
    reason: z.strictObject({ code: z.string().nullable(), message: z.string().nullable() }).nullable(),
    attempts: z.array(
      z.strictObject({
        at: timestamp,
        result: z.string(),
        code: z.string().nullable(),
        txHashes: z.array(hash),
      }),
    ),
  })
  .meta({ id: 'SwapOrder' });

const RATE_LIMITED = 'RATE_LIMITED: come back after retry-after seconds';
const SILENT = 'CHAIN_UNAVAILABLE: no node of the chain answers';

interface SwapEndpointDeps extends SwapDeps {
  store: QuoteStore;
  joined: JoinedReads;
  permits: Permits;
}

const limitOf = (name: keyof SwapDeps['limits'], setting: string): RequestLimit<SwapEndpointDeps> => ({
  setting,
  count: ({ limits, nowMs }) => rateLimit(limits[name], nowMs),
});

/** The swap API: routes and the OpenAPI document come from this table. */
export const SWAP_ENDPOINTS: readonly ServedEndpoint<SwapEndpointDeps>[] = [
  {
    method: 'get',
    path: '/api/v1/tokens',
    limit: limitOf('tokens', 'SWAP_READS_PER_MINUTE'),
    handler: tokensHandler,
    group: 'Gasless swaps',
    summary: 'Tokens that may be quoted',
    query: { chainId: { schema: z.string().regex(/^\d+$/), description: 'the chain that is served', example: 8453 } },
    answer: tokensSchema,
    refusals: { 400: 'BAD_REQUEST: another chain', 429: RATE_LIMITED, 503: 'NOT_READY: no token is listed yet' },
  },
  {
    method: 'post',
    path: '/api/v1/quote',
    limit: limitOf('quotes', 'SWAP_QUOTES_PER_MINUTE'),
    handler: (deps) => quoteHandler(deps, deps.store, deps.permits, deps.joined),
    group: 'Gasless swaps',
    summary: 'A price, and the typed data to sign for it',
    description:
      'Sign permit2.typedData unchanged. The sell token must be approved to permit2.allowanceTarget, by a transaction or, where approval.typedData is there, by its signature.',
    body: quoteRequestSchema,
    answer: quoteSchema,
    refusals: {
      400: 'BAD_REQUEST or INSUFFICIENT_LIQUIDITY, with every problem named; UNPROVEN_ACCOUNT or TOO_MANY_REVERTS: no order of this owner would be sent by any route that there is, or new accounts have burnt what they may in an hour, until the time in the message',
      413: 'BAD_REQUEST: the body is too long',
      429: RATE_LIMITED,
      503: `NOT_READY or EXECUTOR_UNFUNDED: no quotes at the moment; TOKEN_QUARANTINED: none in one of these tokens; ${SILENT}`,
    },
  },
  {
    method: 'get',
    path: '/api/v1/price',
    limit: limitOf('quotes', 'SWAP_QUOTES_PER_MINUTE'),
    handler: priceHandler,
    group: 'Gasless swaps',
    summary: 'A price, for whoever has no wallet yet',
    description: 'What a quote would say. Nothing is stored or reserved; an answer may be kept for a second.',
    query: {
      chainId: { schema: z.string().regex(/^\d+$/), description: 'the chain that is served', example: 8453 },
      sellToken: { schema: address, description: 'on the token list', required: true },
      buyToken: { schema: address, description: 'on the token list', required: true },
      kind: { schema: z.enum(['sell', 'buy']), description: 'exact input or exact output', required: true },
      sellAmountBeforeFee: { schema: amount, description: 'when kind is sell, base units' },
      buyAmountAfterFee: { schema: amount, description: 'when kind is buy, base units' },
      slippageBps: { schema: z.string().regex(/^\d+$/), description: '0 to 2000, default 50' },
      routingPreference: {
        schema: z.enum(['auto', 'preferService', 'onlyService']),
        description: 'default auto',
      },
      partnerBps: {
        schema: z.string().regex(/^\d+$/),
        description: "a partner's part of what is bought, 0 to SWAP_PARTNER_MAX_BPS; the other amounts are without it",
      },
      appData: {
        schema: z.string().regex(/^0x[0-9a-fA-F]{64}$/),
        description: 'a hash that is to be signed with the order, whose fee is higher for it',
      },
    },
    answer: priceSchema,
    refusals: {
      400: 'BAD_REQUEST or INSUFFICIENT_LIQUIDITY, with every problem named; UNPROVEN_ACCOUNT: a new account could not trade so much',
      429: RATE_LIMITED,
      503: `NOT_READY or EXECUTOR_UNFUNDED: no prices at the moment; TOKEN_QUARANTINED: none in one of these tokens; ${SILENT}`,
    },
  },
  {
    method: 'get',
    path: '/api/v1/orders',
    limit: limitOf('orders', 'SWAP_READS_PER_MINUTE'),
    handler: ordersHandler,
    group: 'Gasless swaps',
    summary: "An owner's orders, newest first",
    description:
      'Orders are public by owner, as fills are. `next` is the `cursor` of the answer that follows, null at the end.',
    query: {
      owner: { schema: address, description: 'who signed them', required: true },
      limit: { schema: z.string().regex(/^\d+$/), description: '1 to 50, default 20' },
      cursor: { schema: z.string(), description: '`next` of an earlier answer' },
    },
    answer: z.strictObject({ orders: z.array(orderSchema), next: z.string().nullable() }).meta({ id: 'SwapOrders' }),
    refusals: { 400: 'BAD_REQUEST: no owner, or a limit or cursor that is none', 429: RATE_LIMITED },
  },
  {
    method: 'post',
    path: '/api/v1/orders',
    limit: limitOf('submissions', 'SWAP_ORDERS_PER_MINUTE'),
    handler: (deps) => submitHandler(deps, deps.permits),
    group: 'Gasless swaps',
    summary: 'Submits the signature of a quote',
    description: 'A repeated clientOrderId of the same owner answers with the order that there is already.',
    body: submissionSchema,
    answer: submissionAnswerSchema,
    refusals: {
      400: 'BAD_REQUEST: expired or used quote, wrong signature, balance or allowance missing, an approval that the token refuses',
      413: 'BAD_REQUEST: the body is too long',
      429: RATE_LIMITED,
      503: `TOO_MANY_ORDERS or TOO_MANY_LIMIT_ORDERS: as many as there may be wait already; ${SILENT}`,
    },
  },
  {
    method: 'get',
    path: '/api/v1/orders/{orderId}',
    limit: limitOf('orders', 'SWAP_READS_PER_MINUTE'),
    handler: orderHandler,
    group: 'Gasless swaps',
    summary: 'How an order fares',
    description: 'Poll every 1 to 2 seconds, then every 5, until the status is filled, failed or expired.',
    params: { orderId: { schema: z.string().min(1).max(64), description: 'from POST /api/v1/orders' } },
    answer: orderSchema,
    refusals: { 404: 'NOT_FOUND: no such order', 429: RATE_LIMITED },
  },
  {
    method: 'delete',
    path: '/api/v1/orders/{orderId}',
    limit: limitOf('submissions', 'SWAP_ORDERS_PER_MINUTE'),
    handler: cancelHandler,
    group: 'Gasless swaps',
    summary: 'Takes an order back',
    description:
      "By the owner's EIP-712 signature over `OrderCancellation(string orderId)`, for nothing, unless a transaction that was sent for the order may still fill it.",
    params: { orderId: { schema: z.string().min(1).max(64), description: 'from POST /api/v1/orders' } },
    body: cancellationSchema,
    answer: submissionAnswerSchema,
    refusals: {
      400: 'BAD_REQUEST: not the signature of the owner',
      404: 'NOT_FOUND: no such order',
      409: 'ORDER_SENT: it may be filled; ORDER_ENDED: it is filled, failed or expired',
      413: 'BAD_REQUEST: the body is too long',
      429: RATE_LIMITED,
      503: SILENT,
    },
  },
];

/**
 * The swap API: tokens, quotes, signed orders and their status. `deploymentId` separates our Permit2 nonces from other uses; `guard` as in
 * `routesOf`.
 */
export function swapRoutes(deps: SwapDeps, deploymentId: string, guard: Middleware | null = null): Router {
  const domain = { chainId: deps.chainId, permit2: deps.permit2, spender: deps.settler };
  const store = createQuoteStore(deps.db, domain, deploymentId);
  const joined = joinedReads(deps.eth);
  const permits = createPermits({ ...deps, joined });
  return routesOf(SWAP_ENDPOINTS, { ...deps, store, joined, permits }, [notKept, chainFaults], guard);
}
