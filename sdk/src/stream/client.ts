import { CurvebookError } from '../errors.js';
import { answerIn, frameIn, type Answer, type Method } from './answers.js';
import { createGuard } from './guard.js';
import type { components } from './schema.js';

/** Shapes of what comes over the stream, by their names in the AsyncAPI document. */
export type StreamSchemas = components['schemas'];

/** Every frame that the server may send. */
export type Frame = StreamSchemas['ServerFrame'];

type FrameOf<C extends Frame['channel']> = Extract<Frame, { channel: C }>;

/** What may be subscribed to, as the wire has it. */
export type Subscription = StreamSchemas['Subscription'];

/** Subscriptions that are answered on a channel of another name. */
interface OtherChannels {
  activeAssetCtx: 'activeSpotAssetCtx';
  userEvents: 'user';
}

type ChannelOf<T extends Subscription['type']> = T extends keyof OtherChannels
  ? OtherChannels[T]
  : T & Frame['channel'];

/** What arrives for a subscription. */
export type DataOf<S extends Subscription> = FrameOf<ChannelOf<S['type']>> extends { data: infer D } ? D : never;

/** `open`: subscriptions are sent; `connecting`: for the first time or again; `closed`: by `close`, for good. */
export type StreamState = 'connecting' | 'open' | 'closed';

export interface StreamOptions {
  /** Another implementation than the global one. */
  WebSocket?: typeof WebSocket;
  onState?(state: StreamState): void;
  /** Called with each error that the server sends and each that a listener throws; neither ends the stream. */
  onError?(error: Error): void;
}

export interface Stream {
  readonly url: string;
  state(): StreamState;
  /**
   * Calls `onData` with whatever arrives, over all reconnects, until the returned function is called. `onResume` is called each time that the
   * server has taken the subscription, before anything arrives for it: what was missed before must be read from the read API, and whatever happens
   * from then on arrives. `onLoss` is called each time that an open connection is lost: nothing arrives until `onResume`. What the
   * server refuses because it was asked too much is asked for again, later each time; `onError` is told all the same. Throws CurvebookError `TOO_MANY` beyond 32 subscriptions; `ONE_USER` for order updates or events of a second user, since their frames don't name the
   * user; and `ONE_AGGREGATION` for a coin's book or a user's fills with a second kind of aggregation, since their frames don't name it.
   */
  subscribe<S extends Subscription>(
    subscription: S,
    onData: (data: DataOf<S>) => void,
    onResume?: () => void,
    onLoss?: () => void,
  ): () => void;
  /** Ends the stream; nothing is called any more. */
  close(): void;
}

/** The server's limit per connection. */
const MAX_SUBSCRIPTIONS = 32;
const PING_MS = 20_000;
/** Silence after which a connection is taken for dead: two pings without an answer. */
const SILENCE_MS = 45_000;
const OPEN_MS = 10_000;
const RETRY_MS = [250, 500, 1_000, 2_000, 5_000, 10_000] as const;
/** After a connection that lasted this long, the waits between retries start from the shortest one again. */
const STABLE_MS = 10_000;
/** Waits until what the server refused for now is asked for again. */
const ASK_AGAIN_MS = [1_000, 2_000, 5_000, 10_000] as const;

interface Topic {
  key: string;
  subscription: Subscription;
  listeners: Set<Listener>;
}

interface Listener {
  onData: (data: never) => void;
  onResume: (() => void) | undefined;
  onLoss: (() => void) | undefined;
}

/** The WebSocket of the server at `url`, opened with the first subscription and again, later each time, whenever it is lost. */
export function createStream(url: string, options: StreamOptions = {}): Stream {
  const { WebSocket: Socket = WebSocket, onState, onError } = options;
  const address = `${url.replace(/^http/, 'ws').replace(/\/+$/, '')}/ws`;
  const topics = new Map<string, Topic>();
  /** What was sent over this connection and is not answered yet, in its order. */
  const sent: { method: Method; key: string }[] = [];
  /** What the server sends over this connection, by key. */
  const held = new Map<string, Subscription>();
  /** Keys that are to be asked for again. */
  const again = new Set<string>();
  let asking: ReturnType<typeof setTimeout> | null = null;
  let refusals = 0;
  let state: StreamState = 'connecting';
  let socket: WebSocket | null = null;
  let attempts = 0;
  let heardMs = 0;
  let openedMs = 0;
  let retrying: ReturnType<typeof setTimeout> | null = null;
  let beating: ReturnType<typeof setInterval> | null = null;
  let opening: ReturnType<typeof setTimeout> | undefined;
  const toldError = (error: unknown): void => onError?.(error instanceof Error ? error : new Error(String(error)));
  const guard = createGuard(toldError, () => state === 'closed');

  function become(next: StreamState): void {
    if (state === next) return;
    state = next;
    guard.call(() => onState?.(next));
  }

  /** Calls the listeners of topics, but for those that another one of them ends. */
  function callEach(of: readonly Topic[], call: (listener: Listener) => unknown): void {
    for (const { listeners } of of)
      for (const one of [...listeners]) if (listeners.has(one)) guard.call(() => call(one));
  }

  function connect(): void {
    retrying = null;
    if (state === 'closed' || socket !== null || topics.size === 0) return;
    const mine = new Socket(address);
    socket = mine;
    const isMine = (): boolean => socket === mine;
    opening = setTimeout(() => isMine() && lose(mine), OPEN_MS);
    mine.onopen = () => {
      if (!isMine()) return;
      clearTimeout(opening);
      heardMs = openedMs = Date.now();
      beating = setInterval(() => beat(mine), PING_MS);
      become('open');
      // Whoever was told of the state may have let the connection go, or asked for something over it.
      for (const topic of topics.values()) if (isMine() && !isAsked(topic.key)) announce(mine, topic);
    };
    mine.onmessage = ({ data }) => {
      if (!isMine()) return;
      heardMs = Date.now();
      if (typeof data === 'string') receive(data);
    };
    mine.onerror = () => undefined;
    mine.onclose = () => {
      if (isMine()) lose(mine);
    };
  }

  function beat(mine: WebSocket): void {
    if (Date.now() - heardMs > SILENCE_MS) return lose(mine);
    send(mine, 'ping');
  }

  /** Drops a socket that ended, for whatever reason, and schedules the next connection. */
  function lose(mine: WebSocket): void {
    release(mine);
    if (state === 'closed' || topics.size === 0) return;
    if (openedMs > 0 && Date.now() - openedMs > STABLE_MS) attempts = 0;
    openedMs = 0;
    const waitMs = RETRY_MS[Math.min(attempts, RETRY_MS.length - 1)] ?? 0;
    attempts += 1;
    // A random part of the wait keeps the clients of a restarted server from connecting at the same moment. It begins before
    // anybody is told of the loss: whoever then closes the stream, or ends its subscriptions, ends the wait, too.
    retrying ??= setTimeout(connect, waitMs * (0.5 + Math.random() / 2));
    const lost = state === 'open' ? [...topics.values()] : [];
    become('connecting');
    callEach(lost, ({ onLoss }) => onLoss?.());
  }

  function stopRetrying(): void {
    if (retrying !== null) clearTimeout(retrying);
    retrying = null;
  }

  function release(mine: WebSocket): void {
    if (beating !== null) clearInterval(beating);
    beating = null;
    // Left running, it would keep the program of whoever closed this while it connected.
    clearTimeout(opening);
    socket = null;
    if (asking !== null) clearTimeout(asking);
    asking = null;
    refusals = sent.length = 0;
    held.clear();
    again.clear();
    mine.onopen = mine.onmessage = mine.onclose = null;
    mine.close();
  }

  function send(mine: WebSocket, method: Method, subscription?: Subscription): void {
    sent.push({ method, key: subscription === undefined ? '' : keyOf(subscription) });
    mine.send(JSON.stringify({ method, subscription }));
  }

  function announce(mine: WebSocket, { key, subscription }: Topic): void {
    again.delete(key);
    send(mine, 'subscribe', subscription);
  }

  const isAsked = (key: string): boolean => sent.some((one) => one.method === 'subscribe' && one.key === key);

  /**
   * The server answers in the order in which it was asked: what stands before what it answers was refused without being named. A subscription is
   * taken when nothing is under way for its key, since an earlier one was another one when it was sent again.
   */
  function answered({ method, subscription, outcome }: Answer): void {
    const named = subscription === null ? '' : keyOf(subscription);
    const at = method === null ? 0 : sent.findIndex((one) => one.method === method && one.key === named);
    const settled = at < 0 ? [] : sent.splice(0, at + 1);
    const last = settled.pop();
    for (const one of settled) later(one.key);
    const key = last?.key ?? named;
    if (outcome === 'again') later(key);
    if (subscription !== null && method === 'unsubscribe') held.delete(key);
    if (subscription === null || method !== 'subscribe' || outcome === 'refused') return;
    held.set(key, subscription);
    if (outcome === 'again' || last === undefined || isAsked(key)) return;
    again.delete(key);
    if (again.size === 0) refusals = 0;
    const topic = topics.get(key);
    if (topic !== undefined) callEach([topic], ({ onResume }) => onResume?.());
  }

  /** Asks again for what was refused, later each time. */
  function later(key: string): void {
    if (key === '') return;
    again.add(key);
    if (asking !== null) return;
    const waitMs = ASK_AGAIN_MS[Math.min(refusals, ASK_AGAIN_MS.length - 1)] ?? 0;
    refusals += 1;
    asking = setTimeout(askAgain, waitMs);
  }

  function askAgain(): void {
    asking = null;
    const keys = [...again];
    again.clear();
    for (const key of keys) {
      const topic = topics.get(key);
      const kept = held.get(key);
      if (socket === null || isAsked(key)) continue;
      if (topic !== undefined) resend(socket, topic);
      else if (kept !== undefined) send(socket, 'unsubscribe', kept);
    }
  }

  function receive(text: string): void {
    let frame: Frame;
    try {
      frame = frameIn(text);
    } catch {
      return guard.tell(new CurvebookError('NOT_JSON', 'what the server sent is no frame'));
    }
    const answer = answerIn(frame);
    if (answer !== null) answered(answer);
    if (frame.channel === 'error') return guard.tell(new CurvebookError('STREAM_ERROR', frame.data));
    if (answer !== null || !('data' in frame) || frame.channel === 'post') return;
    const meant = [...topics.values()].filter(({ subscription }) => isFor(subscription, frame));
    callEach(meant, ({ onData }) => onData(frame.data as never));
  }

  return {
    url: address,
    state: () => state,
    subscribe(subscription, onData, onResume, onLoss) {
      if (state === 'closed') throw new CurvebookError('CLOSED', 'the stream was closed');
      const key = keyOf(subscription);
      let topic = topics.get(key);
      const isNew = topic === undefined;
      if (topic === undefined) {
        if (topics.size >= MAX_SUBSCRIPTIONS) {
          throw new CurvebookError('TOO_MANY', `at most ${MAX_SUBSCRIPTIONS} subscriptions per stream`);
        }
        const group = groupOf(subscription);
        if (group !== null && [...topics.values()].some((one) => groupOf(one.subscription) === group)) {
          throw isOfUser(subscription)
            ? new CurvebookError(
                'ONE_USER',
                `${subscription.type} of one user per stream: they do not say whose they are`,
              )
            : new CurvebookError(
                'ONE_AGGREGATION',
                `${group} in one way per stream: it does not say how it is gathered`,
              );
        }
        topic = { key, subscription, listeners: new Set() };
        topics.set(key, topic);
      }
      const listener = { onData: onData as (data: never) => void, onResume, onLoss };
      topic.listeners.add(listener);
      if (state === 'open' && socket !== null) {
        if (isNew) announce(socket, topic);
        else resend(socket, topic);
      } else if (socket === null && retrying === null) {
        connect();
      }
      return () => {
        if (!topic.listeners.delete(listener) || topic.listeners.size > 0) return;
        topics.delete(key);
        if (state === 'open' && socket !== null) send(socket, 'unsubscribe', subscription);
        if (topics.size > 0) return;
        stopRetrying();
        if (socket !== null) {
          release(socket);
          if (state === 'open') become('connecting');
        }
      };
    },
    close() {
      stopRetrying();
      for (const { listeners } of topics.values()) listeners.clear();
      topics.clear();
      become('closed');
      if (socket !== null) release(socket);
    },
  };

  /**
   * Subscribes anew for a second listener, so that it, too, gets the state or the latest fills that a subscription starts with. All listeners
   * resume: something may happen in between.
   */
  function resend(mine: WebSocket, topic: Topic): void {
    if (held.has(topic.key) || isAsked(topic.key)) send(mine, 'unsubscribe', topic.subscription);
    announce(mine, topic);
  }
}

/** Equal for subscriptions that mean the same. */
function keyOf(subscription: Subscription): string {
  return Object.entries(subscription)
    .filter(([name, value]) => value !== undefined && value !== null && !isDefault(name, value))
    .map(([name, value]) => `${name}=${name === 'user' ? userOf(value) : String(value)}`)
    .sort()
    .join('&');
}

/** What means the same as leaving it out. */
const isDefault = (name: string, value: unknown): boolean =>
  (name === 'aggregateByTime' && value === false) || (name === 'mantissa' && value === 1);

/** Users are written in any case, with or without 0x. */
const userOf = (value: unknown): string => String(value).toLowerCase().replace(/^0x/, '');

const isOfUser = ({ type }: Subscription): boolean => type === 'orderUpdates' || type === 'userEvents';

/** The group of subscriptions whose frames can't be told apart from this one's; null if its frames name what they belong to. */
function groupOf(subscription: Subscription): string | null {
  switch (subscription.type) {
    case 'orderUpdates':
    case 'userEvents':
      return subscription.type;
    case 'l2Book':
      return `l2Book of ${subscription.coin}`;
    case 'userFills':
      return `userFills of ${userOf(subscription.user)}`;
    default:
      return null;
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** By type: the channel of its frames, and where their data says what a subscription asked for, if it does. */
const FRAMES: { [T in Subscription['type']]: { channel: ChannelOf<T>; fields: Readonly<Record<string, string>> } } = {
  orderUpdates: { channel: 'orderUpdates', fields: {} },
  userFills: { channel: 'userFills', fields: { user: 'user' } },
  userEvents: { channel: 'user', fields: {} },
  userHistoricalOrders: { channel: 'userHistoricalOrders', fields: { user: 'user' } },
  userNonFundingLedgerUpdates: { channel: 'userNonFundingLedgerUpdates', fields: { user: 'user' } },
  userFundings: { channel: 'userFundings', fields: { user: 'user' } },
  notification: { channel: 'notification', fields: {} },
  openOrders: { channel: 'openOrders', fields: { user: 'user' } },
  spotState: { channel: 'spotState', fields: { user: 'user' } },
  swapOrders: { channel: 'swapOrders', fields: { user: 'user' } },
  l2Book: { channel: 'l2Book', fields: { coin: 'coin' } },
  bbo: { channel: 'bbo', fields: { coin: 'coin' } },
  trades: { channel: 'trades', fields: { coin: 'coin' } },
  candle: { channel: 'candle', fields: { coin: 's', interval: 'i' } },
  activeAssetCtx: { channel: 'activeSpotAssetCtx', fields: { coin: 'coin' } },
  spotAssetCtxs: { channel: 'spotAssetCtxs', fields: {} },
  webData2: { channel: 'webData2', fields: { user: 'user' } },
  allMids: { channel: 'allMids', fields: { dex: 'dex' } },
  fills: { channel: 'fills', fields: { pair: 'pair' } },
  curves: { channel: 'curves', fields: { pair: 'pair' } },
  status: { channel: 'status', fields: {} },
};

/** Whether a frame belongs to a subscription. All items of data that is a list are of one market, so the first one is enough. */
function isFor(subscription: Subscription, frame: Frame & { data: unknown }): boolean {
  const { channel, fields } = FRAMES[subscription.type];
  if (frame.channel !== channel) return false;
  const said = (Array.isArray(frame.data) ? (frame.data as unknown[])[0] : frame.data) as Fields | null | undefined;
  return Object.entries(fields).every(([name, at]) => {
    const asked = (subscription as Fields)[name];
    return name === 'user' ? userOf(asked) === userOf(said?.[at]) : (asked ?? null) === (said?.[at] ?? null);
  });
}
