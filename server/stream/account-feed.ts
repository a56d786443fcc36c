/** What an account has, pushed whole whenever it changes: its open orders, and its balances. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Address } from '../../core/types.js';
import { chunks } from '../../ledger/db/columns.js';
import type { Account } from '../../ledger/types.js';
import { spotStatesOf } from '../orders/info/account.js';
import { frontendOrdersOf } from '../orders/info/orders.js';
import type { InfoDeps } from '../orders/info/types.js';
import type { GatewayEvent } from '../orders/events.js';
import type { GatewayLogger } from '../orders/types.js';
import { channelFrame, type UpdateListener } from './send-queue.js';
import type { StreamLimits } from './limits.js';

export interface AccountSource {
  type: 'openOrders' | 'spotState';
  user: Address;
}

/** Each state is made once, however many connections get it. */
export interface AccountFeed {
  /** Sends how it stands now, and every later state. */
  subscribe(key: string, source: AccountSource, listener: UpdateListener): void;
  unsubscribe(key: string, listener: UpdateListener): void;
  onEvent(event: GatewayEvent): void;
  stop(): void;
}

interface Topic {
  source: AccountSource;
  listeners: Set<UpdateListener>;
  /** Those that were sent nothing yet. */
  joining: Set<UpdateListener>;
  /** Of the last push; empty before. */
  text: string;
  isDirty: boolean;
  /** When it may be pushed again. */
  nextMs: number;
}

/** A state is pushed at most once in this time. */
const PAUSE_MS = 1_000;
/** One that is longer than this, at most as often as it is repeated elsewhere. */
const LONG_BYTES = 32 * 1024;
/** States that are made before others have their turn. */
const TURN_STATES = 100;

interface AccountFeedDeps extends Pick<InfoDeps, 'gateway' | 'db' | 'clock'> {
  limits: Pick<StreamLimits, 'coalesceMs' | 'repeatMs'>;
  logger: GatewayLogger;
}

export function createAccountFeed(deps: AccountFeedDeps): AccountFeed {
  const { gateway, db, clock, limits, logger } = deps;
  const topics = new Map<string, Topic>();
  let gathering: NodeJS.Timeout | null = null;
  let isFlushing = false;
  let isStopped = false;
  /** At the last event: a token that is listed later is a row of every account. */
  let listed = gateway.markets().length;

  /** Balances of all that are due are read at once. */
  async function statesOf(due: readonly Topic[]): Promise<Map<Topic, object>> {
    const ofBalances = due.filter(({ source }) => source.type === 'spotState');
    const users = [...new Set(ofBalances.map(({ source }) => source.user))];
    const states = users.length === 0 ? [] : await spotStatesOf(db, gateway.markets(), users);
    const spotState = new Map(users.map((user, i) => [user, states[i]] as const));
    return new Map(
      due.map((topic): [Topic, object] => {
        const { type, user } = topic.source;
        if (type === 'spotState') return [topic, { user, spotState: spotState.get(user) }];
        return [topic, { dex: '', user, orders: frontendOrdersOf(user, gateway) }];
      }),
    );
  }

  const mostPauseMs = Math.max(PAUSE_MS, limits.repeatMs);
  /** A pause that is longer than any is one of before the clock was set back. */
  const isOver = (nextMs: number, nowMs: number): boolean => nextMs <= nowMs || nextMs > nowMs + mostPauseMs;
  const isDue = ({ isDirty, joining, nextMs }: Topic, nowMs: number): boolean =>
    joining.size > 0 || (isDirty && isOver(nextMs, nowMs));

  async function flush(): Promise<void> {
    gathering = null;
    if (isFlushing) return;
    isFlushing = true;
    try {
      for (;;) {
        const due = [...topics].filter(([, topic]) => isDue(topic, clock()));
        if (due.length === 0 || isStopped) break;
        for (const part of chunks(due, TURN_STATES)) {
          await push(part);
          await nextTurn();
          if (isStopped) return;
        }
      }
    } finally {
      isFlushing = false;
    }
  }

  async function push(due: readonly (readonly [string, Topic])[]): Promise<void> {
    // What changes from here on is told by the next push; who joins from here on gets the next one, too.
    const joined = new Map(due.map(([, topic]) => [topic, topic.joining]));
    for (const [, topic] of due) {
      topic.isDirty = false;
      topic.joining = new Set();
    }
    try {
      const states = await statesOf(due.map(([, topic]) => topic));
      for (const [key, topic] of due) {
        const frame = channelFrame(topic.source.type, states.get(topic));
        const text = frame.toString('utf8');
        const isNews = text !== topic.text;
        topic.text = text;
        topic.nextMs = clock() + (frame.length > LONG_BYTES ? limits.repeatMs : PAUSE_MS);
        for (const listener of topic.listeners)
          if (isNews || joined.get(topic)?.has(listener) === true) listener.queue.latest(key, frame);
      }
    } catch (error) {
      logger.error({ err: error }, 'an account could not be read for its subscribers');
      for (const [, { listeners }] of due) listeners.forEach((listener) => listener.lost());
    }
  }

  const soon = (): void => {
    gathering ??= setTimeout(() => void flush(), limits.coalesceMs);
  };
  const ticking = setInterval(() => {
    if (topics.size > 0) void flush();
  }, PAUSE_MS);
  ticking.unref();

  return {
    subscribe(key, source, listener) {
      const topic: Topic = topics.get(key) ?? {
        ...{ source, listeners: new Set(), joining: new Set() },
        ...{ text: '', isDirty: false, nextMs: 0 },
      };
      topics.set(key, topic);
      topic.listeners.add(listener);
      topic.joining.add(listener);
      void flush();
    },
    unsubscribe(key, listener) {
      const topic = topics.get(key);
      if (topic === undefined) return;
      topic.listeners.delete(listener);
      topic.joining.delete(listener);
      listener.queue.drop(key);
      if (topic.listeners.size === 0) topics.delete(key);
    },
    onEvent(event) {
      const { length } = gateway.markets();
      const isListing = length !== listed;
      listed = length;
      if (topics.size === 0) return;
      const makers: ReadonlySet<Account> =
        event.type === 'rows' ? new Set(event.changes.map(({ known }) => known.order.maker)) : event.makers;
      const accounts: ReadonlySet<Account> = event.type === 'rows' ? new Set() : event.accounts;
      const isChanged = ({ type, user }: AccountSource): boolean =>
        type === 'spotState' ? isListing || accounts.has(user) : makers.has(user);
      for (const topic of topics.values()) topic.isDirty ||= isChanged(topic.source);
      soon();
    },
    stop() {
      isStopped = true;
      clearInterval(ticking);
      if (gathering !== null) clearTimeout(gathering);
    },
  };
}
