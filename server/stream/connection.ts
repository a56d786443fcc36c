import { WireError } from '../../core/wire/errors.js';
import { asObject, asText } from '../../core/wire/shape.js';
import type { Gateway } from '../orders/engine.js';
import { answerInfo } from '../orders/info/registry.js';
import type { InfoDeps } from '../orders/info/types.js';
import { GatewayUnavailableError, RateLimitedError, refuse } from '../orders/refusals.js';
import type { GatewayLogger } from '../orders/types.js';
import type { ConnectionHint } from '../orders/verify.js';
import type { BookFeed } from './books.js';
import { acknowledgement, errorFrame, PONG, postFrame } from './frames.js';
import type { StreamLimits } from './limits.js';
import type { Outbox } from './outbox.js';
import { postIdSchema } from './schemas.js';
import type { Sessions } from './sessions.js';
import { readSubscription } from './subscription.js';
import type { Subscription } from './subscription.js';
import type { UpdateFeed, UpdateListener } from './updates.js';

export interface ConnectionDeps {
  gateway: Gateway;
  info: InfoDeps;
  books: BookFeed;
  updates: UpdateFeed;
  sessions: Sessions;
  limits: Pick<StreamLimits, 'maxSubscriptions' | 'maxPendingPosts'>;
  logger: GatewayLogger;
}

/** One client: what it subscribed to and what it waits for. */
export interface Connection {
  /** Serves a text message. It never throws; whatever is wrong is answered. */
  onMessage(text: string): void;
  onClose(): void;
}

/** Longest part of a message that an error names. */
const ECHO_CHARS = 1_000;
/** Levels of a subscription, which is echoed: the serialiser gives up where the parser does not. */
const MAX_NESTING = 8;

/** `lost` ends the connection when updates of it could not be read. */
export function createConnection(deps: ConnectionDeps, outbox: Outbox, address: string, lost: () => void): Connection {
  const { gateway, books, updates, sessions, limits, logger } = deps;
  const subscriptions = new Map<string, Subscription>();
  const hint: ConnectionHint = { address };
  const self: UpdateListener = { outbox, lost };
  let pendingPosts = 0;
  let closed = false;

  function onMessage(text: string): void {
    let method: string;
    let message: Readonly<Record<string, unknown>>;
    try {
      message = asObject(JSON.parse(text), 'message');
      method = asText(message.method, 'method', 64);
    } catch {
      return malformed(text);
    }
    if (method === 'ping') outbox.reply(PONG);
    else if (nestsDeeper(message.subscription, MAX_NESTING)) malformed(text);
    else if (method === 'subscribe') subscribe(message.subscription);
    else if (method === 'unsubscribe') unsubscribe(message.subscription);
    else if (method === 'post') post(message, text);
    else malformed(text);
  }

  function malformed(text: string): void {
    outbox.reply(errorFrame(`Error parsing JSON into valid websocket request: ${text.slice(0, ECHO_CHARS)}`));
  }

  /** The text ends with the subscription as it was sent: clients find their request by it. */
  function complain(what: string, subscription: unknown): void {
    outbox.reply(errorFrame(`${what} ${JSON.stringify(subscription) ?? 'null'}`));
  }

  function read(value: unknown): Subscription | null {
    try {
      return readSubscription(value, gateway.markets());
    } catch (error) {
      if (error instanceof WireError) return null;
      throw error;
    }
  }

  function subscribe(value: unknown): void {
    const subscription = read(value);
    if (subscription === null) return complain('Invalid subscription', value);
    if (subscriptions.has(subscription.key)) return complain('Already subscribed:', value);
    if (subscriptions.size >= limits.maxSubscriptions) return complain('Invalid subscription', value);
    subscriptions.set(subscription.key, subscription);
    outbox.reply(acknowledgement('subscribe', value));
    // The acknowledgement may have been one frame too many.
    if (closed) return;
    if ('user' in subscription) updates.subscribe(subscription.type, subscription.user, self);
    else books.subscribe(subscription.key, subscription, outbox);
  }

  function unsubscribe(value: unknown): void {
    const subscription = read(value);
    if (subscription === null || !subscriptions.delete(subscription.key))
      return complain('Already unsubscribed:', value);
    end(subscription);
    outbox.reply(acknowledgement('unsubscribe', value));
  }

  function end(subscription: Subscription): void {
    if ('user' in subscription) updates.unsubscribe(subscription.type, subscription.user, self);
    else books.unsubscribe(subscription.key, outbox);
  }

  function post(message: Readonly<Record<string, unknown>>, text: string): void {
    const { data: id } = postIdSchema.safeParse(message.id);
    if (id === undefined) return malformed(text);
    if (pendingPosts >= limits.maxPendingPosts) {
      return outbox.reply(errorFrame(`too many pending post requests id=${id}`));
    }
    pendingPosts += 1;
    void respond(message.request)
      .then((response) => outbox.reply(postFrame(id, response)))
      .finally(() => (pendingPosts -= 1));
  }

  /**
   * A refused action is answered as an action: some clients take every other answer for a success. Only what never became an
   * action or a query is an `error`.
   */
  async function respond(value: unknown): Promise<{ type: string; payload: unknown }> {
    let isAction = false;
    try {
      const request = asObject(value, 'request');
      const type = asText(request.type, 'request.type', 64);
      if (type === 'info') {
        const payload = asObject(request.payload, 'request.payload');
        return { type, payload: { type: payload.type, data: await answerInfo(payload, deps.info) } };
      }
      if (type !== 'action') throw new WireError('request.type', 'must be info or action');
      isAction = true;
      return { type, payload: await act(request.payload) };
    } catch (error) {
      if (error instanceof WireError) return { type: 'error', payload: `${SHAPE_TEXT}: ${error.message}` };
      const refused = error instanceof GatewayUnavailableError || error instanceof RateLimitedError;
      if (!refused) logger.error({ err: error }, 'a posted request failed');
      const text = refused ? error.message : 'internal_error: Internal error';
      return isAction ? { type: 'action', payload: refuse(text) } : { type: 'error', payload: text };
    }
  }

  async function act(payload: unknown): Promise<unknown> {
    const { reply, maker } = await gateway.submit(payload, hint);
    if (maker !== null && !closed) sessions.accepted(self, maker);
    return reply;
  }

  return {
    onMessage,
    onClose() {
      closed = true;
      sessions.closed(self);
      subscriptions.forEach(end);
      subscriptions.clear();
    },
  };
}

/** Whether a parsed value has lists or objects inside each other on more levels than these. */
function nestsDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => nestsDeeper(inner, levels - 1));
}

const SHAPE_TEXT = 'Failed to deserialize the JSON body into the target type';
