import { WireError } from '../../core/wire/errors.js';
import { asObject, asText } from '../../core/wire/shape.js';
import type { Gateway } from '../orders/engine.js';
import { answerInfo } from '../orders/info/registry.js';
import type { InfoDeps } from '../orders/info/types.js';
import { answerWeight, queryWeight } from '../orders/info/weights.js';
import { MAX_INFO_BYTES } from '../orders/limits.js';
import { GatewayUnavailableError, RateLimitedError, refuse } from '../orders/refusals.js';
import type { GatewayLogger } from '../orders/types.js';
import type { ConnectionHint } from '../orders/verify.js';
import type { AccountFeed } from './account-feed.js';
import type { BookFeed } from './books.js';
import { acknowledgement, errorFrame, PONG, postFrame, type SendQueue, type UpdateListener } from './send-queue.js';
import type { StreamLimits } from './limits.js';
import type { PlatformFeed } from './platform.js';
import type { MarketFeed } from './market-feed.js';
import type { Quota } from './quota.js';
import { postIdSchema } from './schemas.js';
import type { Sessions } from './sessions.js';
import { readSubscription, type Subscription } from './subscription.js';
import type { UpdateFeed } from './updates.js';

export interface ConnectionDeps {
  gateway: Gateway;
  info: InfoDeps;
  books: BookFeed;
  market: MarketFeed;
  accounts: AccountFeed;
  updates: UpdateFeed;
  platform: PlatformFeed;
  /** Counts the subscriptions of an address to what an account has. */
  accountQuota: Quota;
  sessions: Sessions;
  limits: Pick<StreamLimits, 'maxSubscriptions' | 'maxPendingPosts' | 'maxRefused'>;
  logger: GatewayLogger;
}

/** One client: what it subscribed to and what it waits for. */
export interface Connection {
  /** Serves a text message. It never throws; errors are answered. */
  onMessage(text: string): void;
  /** Refuses a binary message. */
  onBinary(): void;
  /** Counts a ping or pong of the protocol, which the socket answers itself. */
  onProbe(): void;
  onClose(): void;
}

/** Longest part of a message that an error names. */
const ECHO_CHARS = 1_000;
/** Levels of a subscription, which is echoed: the serialiser gives up where the parser does not. */
const MAX_NESTING = 8;

/** Pause of a connection whose address has spent its budget. */
const SLOW_MS = 1_000;
/** Points of a subscription that begins with a long list, whose rows come on top, or that has a frame per user. */
const SNAPSHOT_POINTS = 20;
const COSTLY: ReadonlySet<unknown> = new Set([
  ...[
    'userFills',
    'webData2',
    'userHistoricalOrders',
    'userNonFundingLedgerUpdates',
    'openOrders',
    'spotState',
    'swapOrders',
  ],
]);
/** Points of one that begins with a read that all clients share. */
const PLATFORM_POINTS = 4;

/** What a message costs the budget of its address. */
function costOf(method: string, subscription: unknown): number {
  if (method !== 'subscribe') return 1;
  const type = (subscription as { type?: unknown } | null | undefined)?.type;
  if (COSTLY.has(type)) return SNAPSHOT_POINTS;
  return type === 'fills' || type === 'curves' || type === 'status' ? PLATFORM_POINTS : 1;
}

/** What a connection may ask of its socket. */
interface ConnectionSocket {
  /** IP address of the client. */
  address: string;
  /** Nothing more is read until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends the connection, because updates of it could not be read. */
  lost(): void;
  /** Ends the connection, because it goes on sending beyond its budget. */
  flooded(): void;
}

export function createConnection(deps: ConnectionDeps, queue: SendQueue, socket: ConnectionSocket): Connection {
  const { gateway, books, market, accounts, updates, platform, sessions, limits, logger } = deps;
  const subscriptions = new Map<string, Subscription>();
  const hint: ConnectionHint = { address: socket.address };
  const self: UpdateListener = { queue, lost: () => socket.lost() };
  /** Messages that came after a waiting one; null while none waits. */
  let behind: string[] | null = null;
  let pendingPosts = 0;
  /** Runs while reading is paused because the address has spent its budget. */
  let slowed: NodeJS.Timeout | null = null;
  /** Messages that were refused since it runs. */
  let refused = 0;
  let closed = false;

  function onMessage(text: string): void {
    if (behind !== null) return void behind.push(text);
    // Those of a whole chunk come after a pause began. None is worth its parsing but a post, which may be a signed action.
    if (slowed !== null && !text.includes('"post"') && charged() !== null) return refuseBeyond();
    let parsed: unknown;
    try {
      parsed = gateway.parse(text, hint);
    } catch {
      return malformed(text);
    }
    if (parsed instanceof Promise) void waitFor(parsed, text);
    else serve(parsed, text);
  }

  /** Serves a waiting message, and then those that came in the meantime. */
  async function waitFor(parsed: Promise<unknown>, text: string): Promise<void> {
    const waiting: string[] = [];
    behind = waiting;
    socket.pause();
    const answer = await parsed.then(
      (value) => () => serve(value, text),
      (error: unknown) => () =>
        error instanceof RateLimitedError ? queue.reply(errorFrame(error.message)) : malformed(text),
    );
    behind = null;
    try {
      if (!closed) answer();
      while (waiting.length > 0 && !closed && behind === null) onMessage(waiting.shift()!);
    } catch (error) {
      logger.error({ err: error }, 'a message could not be served');
      return socket.lost();
    }
    // Another waiting message came next; the rest stays behind it.
    if (isWaiting()) behind!.push(...waiting);
    else if (slowed === null) socket.resume();
  }

  const isWaiting = (): boolean => behind !== null;

  /** `value` is the parsed text. */
  function serve(value: unknown, text: string): void {
    let method: string;
    let message: Readonly<Record<string, unknown>>;
    try {
      message = asObject(value, 'message');
      method = asText(message.method, 'method', 64);
    } catch {
      return malformed(text);
    }
    if (method !== 'post' && !spend(costOf(method, message.subscription))) return;
    if (method === 'ping') queue.reply(PONG);
    else if (nestsDeeper(message.subscription, MAX_NESTING)) malformed(text);
    else if (method === 'subscribe') subscribe(message.subscription);
    else if (method === 'unsubscribe') unsubscribe(message.subscription);
    else if (method === 'post') post(message, text);
    else malformed(text);
  }

  /**
   * Counts an unsigned message. Once the budget of the address is spent it is not served, which is told once, and reading pauses for a while;
   * an action that comes after it is served all the same.
   */
  function spend(points = 1): boolean {
    try {
      charged()?.take(points);
      return true;
    } catch (error) {
      if (!(error instanceof RateLimitedError)) throw error;
      if (slowed === null) queue.reply(errorFrame(error.message));
      refuseBeyond();
      return false;
    }
  }

  /** Reading pauses from the first message on that is beyond the budget; more than some that came in the pause end the connection. */
  function refuseBeyond(): void {
    if (closed) return;
    refused = slowed === null ? 1 : refused + 1;
    slowDown();
    if (refused > limits.maxRefused) socket.flooded();
  }

  /** The budget that messages of this client take from; null while it is a maker's own connection. */
  function charged(): { take(points: number): void; add(points: number): void } | null {
    const { address, isProven } = hint;
    const { queries } = deps.info;
    if (isProven === true || address === undefined || queries === undefined) return null;
    return { take: (points) => queries.take(address, points), add: (points) => queries.add(address, points) };
  }

  function slowDown(): void {
    if (slowed !== null || closed) return;
    socket.pause();
    slowed = setTimeout(() => {
      slowed = null;
      if (!closed && !isWaiting()) socket.resume();
    }, SLOW_MS);
    slowed.unref();
  }

  function malformed(text: string): void {
    if (!spend()) return;
    queue.reply(errorFrame(`Error parsing JSON into valid websocket request: ${text.slice(0, ECHO_CHARS)}`));
  }

  /** The text ends with the subscription as sent, by which clients match their request. */
  function complain(what: string, subscription: unknown): void {
    queue.reply(errorFrame(`${what} ${JSON.stringify(subscription) ?? 'null'}`));
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
    if (subscription.kind === 'account' && !accounts.serves(subscription.source.type))
      return complain('Invalid subscription', value);
    if (subscription.kind === 'account' && !deps.accountQuota.take(socket.address))
      return complain('Invalid subscription', value);
    subscriptions.set(subscription.key, subscription);
    queue.reply(acknowledgement('subscribe', value));
    // The acknowledgement may have closed a slow connection.
    if (closed) return;
    begin(subscription);
  }

  function begin(subscription: Subscription): void {
    const { kind, key } = subscription;
    if (kind === 'user')
      updates.subscribe(subscription, self, (rows) => charged()?.add(answerWeight(subscription, rows)));
    else if (kind === 'trades') market.subscribeTrades(subscription.market, self);
    else if (kind === 'account') accounts.subscribe(key, subscription.source, self);
    else if (kind === 'state') market.subscribe(key, subscription.source, self);
    else if (kind === 'platform') platform.subscribe(subscription.of, queue);
    else books.subscribe(key, subscription, queue);
  }

  function unsubscribe(value: unknown): void {
    const subscription = read(value);
    if (subscription === null || !subscriptions.delete(subscription.key))
      return complain('Already unsubscribed:', value);
    end(subscription);
    queue.reply(acknowledgement('unsubscribe', value));
  }

  function end(subscription: Subscription): void {
    const { kind, key } = subscription;
    if (kind === 'user') updates.unsubscribe(subscription, self);
    else if (kind === 'trades') market.unsubscribeTrades(subscription.market, self);
    else if (kind === 'account') endAccount(key);
    else if (kind === 'state') market.unsubscribe(key, self);
    else if (kind === 'platform') platform.unsubscribe(subscription.of, queue);
    else books.unsubscribe(key, queue);
  }

  function endAccount(key: string): void {
    accounts.unsubscribe(key, self);
    deps.accountQuota.give(socket.address);
  }

  function post(message: Readonly<Record<string, unknown>>, text: string): void {
    const { data: id } = postIdSchema.safeParse(message.id);
    if (id === undefined) return malformed(text);
    if (pendingPosts >= limits.maxPendingPosts) {
      if (spend()) queue.reply(errorFrame(`too many pending post requests id=${id}`));
      return;
    }
    pendingPosts += 1;
    void respond(message.request, text.length)
      .then((response) => queue.reply(postFrame(id, response)))
      .finally(() => (pendingPosts -= 1));
  }

  /**
   * A refused action is answered with type `action`, because some clients take every other answer for a success. Only a message that is
   * neither an action nor a query is answered with `error`.
   */
  async function respond(value: unknown, bytes: number): Promise<{ type: string; payload: unknown }> {
    let isAction = false;
    let isCounted = false;
    try {
      const request = asObject(value, 'request');
      const type = asText(request.type, 'request.type', 64);
      if (type === 'info') {
        if (bytes > MAX_INFO_BYTES) throw new WireError('request', `is longer than ${MAX_INFO_BYTES} bytes`);
        const payload = asObject(request.payload, 'request.payload');
        const charge = charged();
        isCounted = true;
        charge?.take(queryWeight(payload));
        const data = await answerInfo(payload, deps.info);
        charge?.add(answerWeight(payload, data));
        return { type, payload: { type: payload.type, data } };
      }
      if (type !== 'action') throw new WireError('request.type', 'must be info or action');
      isAction = true;
      return { type, payload: await act(request.payload, bytes) };
    } catch (error) {
      if (error instanceof WireError) {
        if (!isCounted) spend();
        return { type: 'error', payload: `${SHAPE_TEXT}: ${error.message}` };
      }
      const refused = error instanceof GatewayUnavailableError || error instanceof RateLimitedError;
      if (error instanceof RateLimitedError && !isAction) refuseBeyond();
      if (!refused) logger.error({ err: error }, 'a posted request failed');
      const text = refused ? error.message : 'internal_error: Internal error';
      return isAction ? { type: 'action', payload: refuse(text) } : { type: 'error', payload: text };
    }
  }

  async function act(payload: unknown, bytes: number): Promise<unknown> {
    const { reply, maker } = await gateway.submit(payload, hint, bytes);
    if (maker !== null && !closed) sessions.accepted(self, maker);
    // Of a connection that no maker has signed over, it was an action of nobody, or one that is refused to everybody.
    if (maker === null) spend();
    return reply;
  }

  return {
    onMessage,
    onBinary: () => malformed('binary message'),
    onProbe() {
      if (slowed === null) spend();
      else if (charged() !== null) refuseBeyond();
    },
    onClose() {
      closed = true;
      if (slowed !== null) clearTimeout(slowed);
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
