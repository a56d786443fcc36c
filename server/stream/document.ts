import { z } from 'zod';
import type { DocumentInfo } from '../openapi/document.js';
import { clientMessages, serverFrames, type ClientMessage, type ServerFrame } from './schemas.js';

type Json = Record<string, unknown>;

interface AsyncApiDocument extends Json {
  asyncapi: '3.0.0';
  channels: Record<string, Json>;
  operations: Record<string, Json>;
  components: { messages: Record<string, Json>; schemas: Record<string, Json> };
}

const CLIENT_SUMMARIES: Record<ClientMessage, string> = {
  ping: 'Asks for a pong; a connection that sends nothing for a minute is closed',
  subscribe: 'Asks for updates; at most 32 subscriptions per connection',
  unsubscribe: 'Ends a subscription, named as it was made',
  post: 'An action or a query, as POST /exchange and POST /info take it',
};

const SERVER_SUMMARIES: Record<ServerFrame, string> = {
  pong: 'Answers a ping',
  error: 'What was wrong with a message; the text ends with the subscription that it is about, if it is about one',
  subscriptionResponse: 'Acknowledges a subscription or its end, as it was sent',
  post: 'Answers a post, by its id',
  orderUpdates: 'Orders of a user that changed, after the change is durable',
  userFills: 'The latest 2,000 fills of a user, newest first, then every new one, after it is durable',
  user: 'New fills of a user, after they are durable; what userEvents subscribes to',
  userHistoricalOrders:
    'The latest 2,000 orders of a user, newest first, then every change of one, after it is durable',
  userNonFundingLedgerUpdates:
    'The latest 2,000 deposits and executed withdrawals of a user, oldest first, then every new one, after it is durable',
  userFundings: 'That there are none: once, after the subscription',
  notification: 'A text; nothing of this kind is told so far',
  openOrders:
    'All open orders of a user, newest first, when they change: at most once a second, a long list every 5 seconds',
  spotState: 'All balances of a user, when they change: at most once a second',
  swapOrders:
    'The newest 20 gasless orders of an owner, as GET /api/v1/orders has them, when one of them changes: at most once a second',
  bbo: 'The best bid and ask, when they change',
  trades: 'The newest 30 trades of a market, oldest first, then every new one, after it is durable',
  candle: 'A candle, when it changes, also after its end, and when one begins',
  activeSpotAssetCtx:
    'Prices and volumes of a market, when they change and every 5 seconds; what activeAssetCtx subscribes to',
  spotAssetCtxs: 'The same of all markets',
  webData2: 'The same, in the shape that an older client reads',
  l2Book: 'A whole book, at most 20 levels per side: after changes, and every 5 seconds',
  allMids: 'Middle prices by coin, without coins that have an empty side',
  fills:
    'The newest 50 fills of a market, newest last, then every new one, as GET /v0/fills has them, after they are durable',
  curves: 'The newest curve of a market, as GET /v0/status has it: when it changes, and every 5 seconds',
  status: 'What GET /v0/status answers: when anything but an age changes, and every 5 seconds',
};

/** What the server answers to each message. */
const REPLIES: Record<ClientMessage, ServerFrame[]> = {
  ping: ['pong'],
  subscribe: ['subscriptionResponse', 'error'],
  unsubscribe: ['subscriptionResponse', 'error'],
  post: ['post', 'error'],
};

/** Frames that subscriptions bring. */
export const PUSHED: readonly ServerFrame[] = [
  ...([
    'orderUpdates',
    'userFills',
    'user',
    'l2Book',
    'bbo',
    'allMids',
    'openOrders',
    'spotState',
    'swapOrders',
  ] as const),
  ...(['userHistoricalOrders', 'userNonFundingLedgerUpdates', 'userFundings', 'notification'] as const),
  ...(['trades', 'candle', 'activeSpotAssetCtx', 'spotAssetCtxs', 'webData2', 'fills', 'curves', 'status'] as const),
];

/** The AsyncAPI 3.0 document of /ws. `receive` is what the server receives. Schemas with an id are shared under `components`. */
export function asyncApiDocument(info: DocumentInfo): AsyncApiDocument {
  const url = new URL(info.url ?? 'http://127.0.0.1:8080');
  const schemas: Record<string, Json> = {};
  const messages: Record<string, Json> = {};
  const add = (name: string, summary: string, schema: z.ZodType, io: 'input' | 'output'): void => {
    messages[name] = { name, summary, contentType: 'application/json', payload: jsonSchema(schema, io, schemas) };
  };
  for (const name of keys(clientMessages)) add(`${name}Request`, CLIENT_SUMMARIES[name], clientMessages[name], 'input');
  for (const name of keys(serverFrames)) add(name, SERVER_SUMMARIES[name], serverFrames[name], 'output');
  const channel = { $ref: '#/channels/ws' };
  const message = (name: string) => ({ $ref: `#/channels/ws/messages/${name}` });
  const operations: Record<string, Json> = {};
  for (const name of keys(clientMessages)) {
    operations[name] = {
      action: 'receive',
      channel,
      summary: CLIENT_SUMMARIES[name],
      messages: [message(`${name}Request`)],
      reply: { channel, messages: REPLIES[name].map(message) },
    };
  }
  operations.push = { action: 'send', channel, summary: 'What was subscribed to', messages: PUSHED.map(message) };
  return {
    asyncapi: '3.0.0',
    info: { title: info.title, version: info.version, description: 'The WebSocket of the order interface.' },
    servers: { server: { host: url.host, protocol: url.protocol === 'https:' ? 'wss' : 'ws' } },
    defaultContentType: 'application/json',
    channels: {
      ws: {
        address: '/ws',
        description:
          'JSON text frames. Codes 4000 to 4003 of a close say: idle, output queue full, behind retained events, too many messages beyond the budget.',
        messages: Object.fromEntries(
          Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
        ),
      },
    },
    operations,
    components: { messages, schemas },
  };
}

const keys = <K extends string>(object: Record<K, unknown>): K[] => Object.keys(object) as K[];

/** AsyncAPI's own schemas are those of JSON Schema draft 7. What zod puts under `definitions` moves to the components. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', shared: Record<string, Json>): Json {
  const { $schema: _dialect, definitions, ...own } = z.toJSONSchema(schema, { io, target: 'draft-7' }) as Json;
  for (const [name, definition] of Object.entries((definitions ?? {}) as Record<string, Json>)) {
    shared[name] = repoint(definition) as Json;
  }
  return repoint(own) as Json;
}

/** Ids stay names of components; as `$id` they would change what references mean. */
function repoint(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(repoint);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, item]) => !((key === '$id' || key === 'id') && typeof item === 'string'))
      .map(([key, item]) => [
        key,
        key === '$ref' && typeof item === 'string'
          ? item.replace('#/definitions/', '#/components/schemas/')
          : repoint(item),
      ]),
  );
}
