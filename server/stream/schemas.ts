/** Schemas of messages on /ws. Client messages are validated by them; tests check every server frame against them. */
import { z } from 'zod';
import { INTERVALS } from '../../core/market-data/intervals.js';
import { fillSchema as chainFillSchema } from '../read/fills.js';
import { curveRowSchema, statusSchema } from '../read/status.js';
import {
  INFO_REPLIES,
  address,
  bboSchema,
  bookSchema,
  candleSchema,
  fillSchema,
  frontendOrderSchema,
  ledgerUpdateSchema,
  midsSchema,
  orderSchema,
  orderStateSchema,
  spotContextSchema,
  spotStateSchema,
  time,
  tradeSchema,
} from '../orders/info/schemas.js';
import { orderSchema as swapOrderSchema } from '../swap/endpoints.js';

const userSchema = z
  .string()
  .regex(/^(0x)?[0-9a-fA-F]{40}$/)
  .meta({ description: "a master's address; its agents have no updates of their own" });
const pairName = z.string().max(64).meta({ description: 'as GET /v0/pairs names it, such as WETH-USDC' });
const coinSchema = z.string().max(64).meta({ description: 'name of the coin in spotMeta, such as @0' });

const fastSchema = z
  .boolean()
  .nullish()
  .meta({ description: 'the best 5 levels of each side, with `fast` in the data' });

/** One frame is sent to all subscribers, so it has no user. */
const NOBODY = `0x${'0'.repeat(40)}` as const;

const plainSubscriptionSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('orderUpdates'), user: userSchema }),
  z.looseObject({
    type: z.literal('userFills'),
    user: userSchema,
    aggregateByTime: z.boolean().nullish().meta({ description: 'parts of one order in one block as one' }),
  }),
  z.looseObject({
    type: z.literal('l2Book'),
    coin: coinSchema,
    nSigFigs: z.literal([2, 3, 4, 5]).nullish().meta({ description: 'levels are gathered by so many figures' }),
    mantissa: z.null().optional(),
    fast: fastSchema,
  }),
  z.looseObject({ type: z.literal('bbo'), coin: coinSchema }),
  z.looseObject({ type: z.literal('trades'), coin: coinSchema }),
  z.looseObject({ type: z.literal('candle'), coin: coinSchema, interval: z.enum(INTERVALS) }),
  z.looseObject({ type: z.literal('activeAssetCtx'), coin: coinSchema }),
  z.looseObject({ type: z.literal('spotAssetCtxs') }),
  z.looseObject({
    type: z.literal('webData2'),
    user: z.literal(NOBODY).meta({ description: 'what a client sends that has no user' }),
  }),
  z.looseObject({ type: z.literal('userEvents'), user: userSchema }),
  z.looseObject({ type: z.literal('userHistoricalOrders'), user: userSchema }),
  z.looseObject({ type: z.literal('userNonFundingLedgerUpdates'), user: userSchema }),
  z.looseObject({ type: z.enum(['spotState', 'swapOrders']), user: userSchema }),
  z.looseObject({
    type: z.literal('openOrders'),
    user: userSchema,
    dex: z.literal('').nullish().meta({ description: 'there are no perpetual dexes' }),
  }),
  z.looseObject({
    type: z
      .enum(['userFundings', 'notification'])
      .meta({ description: 'there are none here, and there is nothing to tell' }),
    user: userSchema,
  }),
  z.looseObject({
    type: z.literal('allMids'),
    dex: z.literal('').nullish().meta({ description: 'there are no perpetual dexes' }),
  }),
  z.looseObject({ type: z.enum(['fills', 'curves']), pair: pairName }),
  z.looseObject({ type: z.literal('status') }),
]);

const widenedBookSchema = z.looseObject({
  type: z.literal('l2Book'),
  coin: coinSchema,
  nSigFigs: z.literal(5),
  mantissa: z.literal([1, 2, 5]).meta({ description: 'steps of so many' }),
  fast: fastSchema,
});

/** Of a fast subscription, the book says so. */
const bookFrameSchema = bookSchema.extend({ fast: z.literal(true).optional() }).meta({ id: 'L2BookFrame' });

/** What may be subscribed to. Fields that are not known are ignored, and echoed in the acknowledgement. */
export const subscriptionSchema = z.union([plainSubscriptionSchema, widenedBookSchema]).meta({ id: 'Subscription' });

/** Types of subscriptions. */
export const SUBSCRIPTION_TYPES: readonly string[] = plainSubscriptionSchema.options.flatMap(({ shape: { type } }) =>
  'options' in type ? type.options : [type.value],
);

/** Names the answer to a post. */
export const postIdSchema = z.int().nonnegative();

export const clientMessages = {
  ping: z.looseObject({ method: z.literal('ping') }),
  subscribe: z.looseObject({ method: z.literal('subscribe'), subscription: subscriptionSchema }),
  unsubscribe: z.looseObject({ method: z.literal('unsubscribe'), subscription: subscriptionSchema }),
  post: z.looseObject({
    method: z.literal('post'),
    id: postIdSchema,
    request: z.looseObject({
      type: z.enum(['action', 'info']),
      payload: z.looseObject({}).meta({ description: 'the body of POST /exchange, or of POST /info' }),
    }),
  }),
};

const infoPayloadSchema = z
  .union(Object.entries(INFO_REPLIES).map(([type, data]) => z.strictObject({ type: z.literal(type), data })))
  .meta({ id: 'InfoPayload', description: 'what POST /info answers to the type' });

const actionReplySchema = z.union([
  z.strictObject({
    status: z.literal('ok'),
    response: z.strictObject({ type: z.string(), data: z.unknown().optional() }),
  }),
  z.strictObject({ status: z.literal('err'), response: z.string() }),
]);

const frame = <C extends string, T extends z.ZodType>(channel: C, data: T) =>
  z.strictObject({ channel: z.literal(channel), data });

export const serverFrames = {
  pong: z.strictObject({ channel: z.literal('pong') }),
  error: frame('error', z.string()),
  subscriptionResponse: frame(
    'subscriptionResponse',
    z.strictObject({ method: z.enum(['subscribe', 'unsubscribe']), subscription: subscriptionSchema }),
  ),
  post: frame(
    'post',
    z.strictObject({
      id: postIdSchema,
      response: z.discriminatedUnion('type', [
        z.strictObject({
          type: z.literal('info'),
          payload: infoPayloadSchema,
        }),
        z.strictObject({ type: z.literal('action'), payload: actionReplySchema }),
        z.strictObject({ type: z.literal('error'), payload: z.string() }),
      ]),
    }),
  ),
  orderUpdates: frame(
    'orderUpdates',
    z.array(
      z.strictObject({ order: orderSchema, status: z.string(), statusTimestamp: time }).meta({ id: 'OrderUpdate' }),
    ),
  ),
  userFills: frame(
    'userFills',
    z.strictObject({ isSnapshot: z.literal(true).optional(), user: address, fills: z.array(fillSchema) }),
  ),
  user: frame('user', z.strictObject({ fills: z.array(fillSchema) })),
  userHistoricalOrders: frame(
    'userHistoricalOrders',
    z.strictObject({ isSnapshot: z.literal(true).optional(), user: address, orderHistory: z.array(orderStateSchema) }),
  ),
  userNonFundingLedgerUpdates: frame(
    'userNonFundingLedgerUpdates',
    z.strictObject({
      isSnapshot: z.literal(true).optional(),
      user: address,
      nonFundingLedgerUpdates: z.array(ledgerUpdateSchema),
    }),
  ),
  userFundings: frame(
    'userFundings',
    z.strictObject({ isSnapshot: z.literal(true), user: address, fundings: z.array(z.never()) }),
  ),
  notification: frame('notification', z.strictObject({ notification: z.string() })),
  openOrders: frame(
    'openOrders',
    z.strictObject({ dex: z.literal(''), user: address, orders: z.array(frontendOrderSchema) }),
  ),
  spotState: frame('spotState', z.strictObject({ user: address, spotState: spotStateSchema })),
  swapOrders: frame('swapOrders', z.strictObject({ user: address, orders: z.array(swapOrderSchema) })),
  l2Book: frame('l2Book', bookFrameSchema),
  fills: frame(
    'fills',
    z.strictObject({ isSnapshot: z.literal(true).optional(), pair: z.string(), fills: z.array(chainFillSchema) }),
  ),
  curves: frame('curves', curveRowSchema),
  status: frame('status', statusSchema),
  bbo: frame('bbo', bboSchema),
  trades: frame('trades', z.array(tradeSchema).min(1)),
  candle: frame('candle', candleSchema),
  activeSpotAssetCtx: frame('activeSpotAssetCtx', z.strictObject({ coin: z.string(), ctx: spotContextSchema })),
  spotAssetCtxs: frame('spotAssetCtxs', z.array(spotContextSchema)),
  webData2: frame(
    'webData2',
    z.strictObject({
      user: address,
      spotAssetCtxs: z.array(spotContextSchema),
      meta: z.strictObject({ universe: z.array(z.never()) }),
      assetCtxs: z.array(z.never()),
    }),
  ),
  allMids: frame('allMids', z.strictObject({ mids: midsSchema, dex: z.literal('').optional() })),
};

export type ClientMessage = keyof typeof clientMessages;
export type ServerFrame = keyof typeof serverFrames;
