/** The shapes of messages on /ws. Those of clients validate what comes; those of the server hold, in tests, for every frame that it sends. */
import { z } from 'zod';

const userSchema = z
  .string()
  .regex(/^(0x)?[0-9a-fA-F]{40}$/)
  .meta({ description: "a master's address; its agents have no updates of their own" });
const absent = (description: string) => z.null().optional().meta({ description });

/** What may be subscribed to. Fields that are not known are ignored, and echoed in the acknowledgement. */
export const subscriptionSchema = z
  .discriminatedUnion('type', [
    z.looseObject({ type: z.literal('orderUpdates'), user: userSchema }),
    z.looseObject({
      type: z.literal('userFills'),
      user: userSchema,
      aggregateByTime: z.literal(false).nullish().meta({ description: 'fills are never merged' }),
    }),
    z.looseObject({
      type: z.literal('l2Book'),
      coin: z.string().max(64).meta({ description: 'name of the coin in spotMeta, such as @0' }),
      nSigFigs: absent('levels are never aggregated'),
      mantissa: absent('levels are never aggregated'),
    }),
    z.looseObject({
      type: z.literal('allMids'),
      dex: z.literal('').nullish().meta({ description: 'there are no perpetual dexes' }),
    }),
  ])
  .meta({ id: 'Subscription' });

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

const decimal = z.string().regex(/^-?\d+\.\d+$/);
const time = z.int().nonnegative().meta({ description: 'Unix milliseconds' });
const address = z.string().regex(/^0x[0-9a-f]{40}$/);
const side = z.enum(['B', 'A']).meta({ description: 'bid or ask' });
const cloid = z.string().regex(/^0x[0-9a-fA-F]{32}$/);

const orderSchema = z
  .strictObject({
    coin: z.string(),
    side,
    limitPx: decimal,
    sz: decimal.meta({ description: 'what remains' }),
    oid: z.int().positive(),
    timestamp: time,
    origSz: decimal,
    cloid: cloid.optional(),
  })
  .meta({ id: 'OrderRow' });

const fillSchema = z
  .strictObject({
    coin: z.string(),
    px: decimal,
    sz: decimal,
    side,
    time,
    startPosition: decimal,
    dir: z.enum(['Buy', 'Sell']),
    closedPnl: decimal,
    hash: z.string().regex(/^0x[0-9a-f]{64}$/),
    oid: z.int().positive(),
    crossed: z.literal(false),
    fee: decimal,
    feeToken: z.string(),
    tid: z.int().nonnegative().meta({ description: 'deduplicate by user and tid' }),
    cloid: cloid.optional(),
    twapId: z.null(),
  })
  .meta({ id: 'UserFill' });

const levelsSchema = z
  .array(z.strictObject({ px: decimal, sz: decimal, n: z.int().positive() }))
  .max(20)
  .meta({ description: 'best first' });

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
          payload: z.strictObject({ type: z.unknown(), data: z.unknown() }),
        }),
        z.strictObject({ type: z.literal('action'), payload: actionReplySchema }),
        z.strictObject({ type: z.literal('error'), payload: z.string() }),
      ]),
    }),
  ),
  orderUpdates: frame(
    'orderUpdates',
    z.array(z.strictObject({ order: orderSchema, status: z.string(), statusTimestamp: time })),
  ),
  userFills: frame(
    'userFills',
    z.strictObject({ isSnapshot: z.literal(true).optional(), user: address, fills: z.array(fillSchema) }),
  ),
  l2Book: frame(
    'l2Book',
    z.strictObject({
      coin: z.string(),
      time,
      levels: z.tuple([levelsSchema, levelsSchema]).meta({ description: 'bids, then asks' }),
    }),
  ),
  allMids: frame('allMids', z.strictObject({ mids: z.record(z.string(), decimal), dex: z.literal('').optional() })),
};

export type ClientMessage = keyof typeof clientMessages;
export type ServerFrame = keyof typeof serverFrames;
