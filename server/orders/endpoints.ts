import { z } from 'zod';
import { INTERVALS } from '../../core/market-data/intervals.js';
import type Router from '@koa/router';
import type { Middleware } from 'koa';
import { routesOf, type ServedEndpoint } from '../openapi/endpoint.js';
import { exchangeEndpoint, exchangeHandler, infoEndpoint, type OrderEndpointDeps } from './handlers.js';
import type { InfoDeps } from './info/types.js';
import { INFO_TYPES } from './info/registry.js';
import { INFO_REPLIES } from './info/schemas.js';

/**
 * Schemas of the wire for the OpenAPI document. Requests are validated by the readers of `core/wire`; tests check recorded requests against
 * these schemas.
 */
const uint = z.int().nonnegative();
const address = z.string().regex(/^(0x)?[0-9a-fA-F]{40}$/);
const cloid = z.string().regex(/^0x[0-9a-fA-F]{32}$/);
const decimal = z.string().regex(/^\d+(\.\d{1,8}0*)?$/);
const flag = z.boolean().nullish();

const order = z
  .looseObject({
    a: uint.meta({ description: 'asset: 10000 plus the place of the pair in /v0/pairs' }),
    b: z.boolean().meta({ description: 'is a buy' }),
    p: decimal.meta({ description: 'price' }),
    s: decimal.meta({ description: 'size' }),
    r: z.boolean().meta({ description: 'reduce only: false' }),
    t: z.looseObject({}).meta({ description: '{"limit": {"tif": "Gtc"}} or Alo; anything else is refused' }),
    c: cloid.nullish().meta({ description: 'client order id' }),
  })
  .meta({ id: 'WireOrder' });
const oid = z.union([uint, cloid]);

const actions = [
  z.strictObject({
    type: z.literal('order'),
    orders: z.array(order).max(1_000),
    grouping: z.unknown().meta({ description: 'na' }),
    brokerCode: uint.nullish().meta({ description: 'of older clients; signed, and of no effect' }),
    builder: z.looseObject({ b: address, f: uint }).nullish(),
  }),
  z.strictObject({ type: z.literal('modify'), oid, order, a: flag }),
  z.strictObject({
    type: z.literal('batchModify'),
    modifies: z.array(z.looseObject({ oid, order })).max(1_000),
    a: flag,
  }),
  z.strictObject({
    type: z.literal('cancel'),
    cancels: z.array(z.looseObject({ a: uint, o: uint })).max(1_000),
    f: flag,
  }),
  z.strictObject({
    type: z.literal('cancelByCloid'),
    cancels: z.array(z.looseObject({ asset: uint, cloid })).max(1_000),
    f: flag,
  }),
  z.strictObject({ type: z.literal('scheduleCancel'), time: uint.nullish() }),
  z.strictObject({
    type: z.literal('approveAgent'),
    signatureChainId: z.string(),
    hyperliquidChain: z.enum(['Mainnet', 'Testnet']),
    agentAddress: address,
    agentName: z.string().nullish(),
    nonce: uint,
  }),
  z.strictObject({ type: z.literal('noop') }),
] as const;

/** Types of actions that are admitted. */
export const ACTION_TYPES: readonly string[] = actions.map(({ shape }) => shape.type.value);

export const exchangeRequestSchema = z
  .looseObject({
    action: z.discriminatedUnion('type', actions),
    nonce: uint.meta({ description: 'Unix milliseconds' }),
    signature: z.looseObject({ r: z.string(), s: z.string(), v: z.literal([27, 28]) }),
    vaultAddress: z.null().optional(),
    expiresAfter: uint.nullish().meta({ description: 'Unix milliseconds' }),
  })
  .meta({ id: 'ExchangeRequest' });

const statusSchema = z.union([
  z.literal('success').meta({ description: 'of a cancel' }),
  z.strictObject({ resting: z.strictObject({ oid: uint, cloid: cloid.optional() }) }),
  z.strictObject({ error: z.string().meta({ description: '<code>: <text>, see docs/orders.md' }) }),
]);

export const exchangeReplySchema = z
  .union([
    z.strictObject({
      status: z.literal('ok'),
      response: z.union([
        z
          .strictObject({
            type: z.enum(['order', 'cancel']),
            data: z.strictObject({ statuses: z.array(statusSchema) }),
          })
          .meta({ description: 'of order, batchModify, cancel and cancelByCloid: one status per entry' }),
        z
          .strictObject({ type: z.literal('default') })
          .meta({ description: 'of modify, scheduleCancel, approveAgent and noop' }),
      ]),
    }),
    z
      .strictObject({ status: z.literal('err'), response: z.string() })
      .meta({ description: 'refused as a whole: <code>: <text>' }),
  ])
  .meta({ id: 'ExchangeReply' });

const OF_USER = [
  ...['openOrders', 'frontendOpenOrders', 'historicalOrders', 'userFills', 'spotClearinghouseState'],
  ...['clearinghouseState', 'extraAgents', 'userRole', 'userFees', 'userRateLimit', 'userAbstraction'],
];
const DETAILED = ['candleSnapshot', 'orderStatus', 'userFillsByTime', 'l2Book', 'recentTrades', 'maxBuilderFee'];
const BARE = INFO_TYPES.filter((type) => !OF_USER.includes(type) && !DETAILED.includes(type));
const namesOf = (types: readonly string[]) => z.enum(types as [string, ...string[]]);

export const infoRequestSchema = z
  .union([
    z.looseObject({ type: namesOf(OF_USER), user: address }),
    z.looseObject({ type: z.literal('orderStatus'), user: address, oid }),
    z.looseObject({
      type: z.literal('userFillsByTime'),
      user: address,
      startTime: uint,
      endTime: uint.nullish(),
    }),
    z.looseObject({ type: z.literal('l2Book'), coin: z.string().meta({ description: 'a name of spotMeta: @0' }) }),
    z.looseObject({ type: z.literal('recentTrades'), coin: z.string() }),
    z.looseObject({
      type: z.literal('candleSnapshot'),
      req: z.looseObject({
        coin: z.string(),
        interval: z.enum(INTERVALS),
        startTime: uint.nullish(),
        endTime: uint.nullish(),
      }),
    }),
    z.looseObject({ type: z.literal('maxBuilderFee') }),
    z.looseObject({ type: namesOf(BARE) }),
  ])
  .meta({ id: 'InfoRequest' });

/** Types with the same answer are grouped, so that the document has each shape once. */
const repliesByShape = new Map<z.ZodType, string[]>();
for (const [type, reply] of Object.entries(INFO_REPLIES))
  repliesByShape.set(reply, [...(repliesByShape.get(reply) ?? []), type]);

const infoReplySchema = z
  .union([...repliesByShape].map(([reply, types]) => reply.clone().meta({ title: `of ${types.join(', ')}` })))
  .meta({
    id: 'InfoReply',
    description: 'the shape depends on the type of the query; each names the types that it is of',
  });

const TEXT_REFUSALS = {
  400: 'The body is not JSON',
  413: 'The body is too long',
  415: 'The content type is not application/json',
  422: 'Another shape, or an unknown type; the text names the field',
};

/** The order interface: routes and the OpenAPI document come from this table. */
export const ORDER_ENDPOINTS: readonly ServedEndpoint<OrderEndpointDeps>[] = [
  {
    method: 'post',
    path: '/exchange',
    limit: { setting: 'ORDER_FAILURES_PER_MINUTE', count: null },
    handler: exchangeEndpoint,
    group: 'Orders',
    summary: 'A signed action',
    description:
      'Signing, every refusal and what each action means are in docs/orders.md of the repository. A reply comes after what it says is durable.',
    body: exchangeRequestSchema,
    answer: exchangeReplySchema,
    isWire: true,
    refusals: {
      ...TEXT_REFUSALS,
      429: 'The signature names nobody, like too many others from this address; the body is null',
      503: 'standby, write_failed or outcome_unknown: whether anything was stored is in the text',
    },
  },
  {
    method: 'post',
    path: '/info',
    limit: { setting: 'QUERIES_PER_MINUTE', count: null },
    handler: infoEndpoint,
    group: 'Orders',
    summary: 'A query',
    description:
      'The type says what is asked for, and what comes back: the shapes are those that clients of the exchange wire read.',
    body: infoRequestSchema,
    answer: infoReplySchema,
    isWire: true,
    refusals: { ...TEXT_REFUSALS, 429: 'Too many queries from this address; the body is null' },
  },
];

/** POST /exchange and POST /info. */
export const ordersRoutes = (deps: InfoDeps, guard: Middleware | null = null): Router =>
  routesOf(ORDER_ENDPOINTS, { ...deps, exchange: exchangeHandler(deps.gateway) }, [], guard);
