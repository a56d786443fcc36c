/** Pushes an account's open orders, its balances and its gasless orders, each as a whole state after each change. */
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
  type: 'openOrders' | 'spotState' | 'swapOrders';
  user: Address;
}

/** Gasless orders by their owners, for a server that serves the swap API. */
export interface SwapOrdersSource {
  /** The newest ones, as the swap API answers them. */
  newest(owner: Address): Promise<object[]>;
  /** A mark per owner, which changes with any of its orders. */
  marks(owners: readonly Address[]): Promise<ReadonlyMap<Address, string>>;
}

/** Each state is computed once, however many connections get it. */
export interface AccountFeed {
  /** Sends the present state, and every later one. */
  subscribe(key: string, source: AccountSource, listener: UpdateListener): void;
  unsubscribe(key: string, listener: UpdateListener): void;
  /** Whether such states are known here; those of the swap API are not where it is not served. */
  serves(type: AccountSource['type']): boolean;
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
  /** Of an owner's gasless orders, as of the last look. */
  mark: string;
}

/** What is pushed by topic; one that could not be read is missing. */
type States = ReadonlyMap<Topic, object>;

/** Least time between two pushes of a state. */
const PAUSE_MS = 1_000;
/** A longer state than this is pushed at most once per `repeatMs`. */
const LONG_BYTES = 32 * 1024;
/** States that are computed before the event loop runs. */
const TURN_STATES = 100;

interface AccountFeedDeps extends Pick<InfoDeps, 'gateway' | 'db' | 'clock'> {
  limits: Pick<StreamLimits, 'coalesceMs' | 'repeatMs'>;
  logger: GatewayLogger;
  /** Null where the swap API is not served. */
  swapOrders: SwapOrdersSource | null;
}

export function createAccountFeed(deps: AccountFeedDeps): AccountFeed {
  const { gateway, db, clock, limits, logger, swapOrders } = deps;
  const topics = new Map<string, Topic>();
  let isStopped = false;
  let isLooking = false;
  /** Number of markets at the last event: a newly listed token is a row of every account. */
  let listed = gateway.markets().length;

  /** Balances of all that are due are read at once. */
  async function accountStates(due: readonly Topic[]): Promise<States> {
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

  /** Read owner by owner, so that one whose orders can't be read is missing alone. */
  async function swapStates(due: readonly Topic[]): Promise<States> {
    const states = new Map<Topic, object>();
    for (const topic of due) {
      const { user } = topic.source;
      try {
        states.set(topic, { user, orders: (await swapOrders?.newest(user)) ?? [] });
      } catch (error) {
        logger.error({ err: error, user }, 'the orders of an owner could not be read for its followers');
      }
    }
    return states;
  }

  const mostPauseMs = Math.max(PAUSE_MS, limits.repeatMs);
  /** A remaining pause longer than any possible one means that the clock was set back. */
  const isOver = (nextMs: number, nowMs: number): boolean => nextMs <= nowMs || nextMs > nowMs + mostPauseMs;
  const isDue = ({ isDirty, joining, nextMs }: Topic, nowMs: number): boolean =>
    joining.size > 0 || (isDirty && isOver(nextMs, nowMs));

  /** Pushes states of some types. Gasless orders take longest to read, and hold up nothing else. */
  function createLane(
    isOf: (type: AccountSource['type']) => boolean,
    statesOf: (due: readonly Topic[]) => Promise<States>,
  ) {
    let gathering: NodeJS.Timeout | null = null;
    let isFlushing = false;

    async function flush(): Promise<void> {
      gathering = null;
      if (isFlushing) return;
      isFlushing = true;
      try {
        for (;;) {
          const due = [...topics].filter(([, topic]) => isOf(topic.source.type) && isDue(topic, clock()));
          if (due.length === 0 || isStopped) break;
          for (const part of chunks(due, TURN_STATES)) {
            await push(part, statesOf);
            await nextTurn();
            if (isStopped) return;
          }
        }
      } finally {
        isFlushing = false;
      }
    }

    return {
      flush: () => void flush(),
      soon(): void {
        gathering ??= setTimeout(() => void flush(), limits.coalesceMs);
      },
      stop(): void {
        if (gathering !== null) clearTimeout(gathering);
      },
    };
  }

  /** Whoever follows a state that can't be read is lost, and asks anew. */
  async function push(
    due: readonly (readonly [string, Topic])[],
    statesOf: (due: readonly Topic[]) => Promise<States>,
  ): Promise<void> {
    // Changes from here on are in the next push, and listeners that join from here on get that one.
    const joined = new Map(due.map(([, topic]) => [topic, topic.joining]));
    for (const [, topic] of due) {
      topic.isDirty = false;
      topic.joining = new Set();
    }
    try {
      const states = await statesOf(due.map(([, topic]) => topic));
      for (const [key, topic] of due) {
        const state = states.get(topic);
        if (state === undefined) {
          loseAll(topic);
          continue;
        }
        const frame = channelFrame(topic.source.type, state);
        const text = frame.toString('utf8');
        const isNews = text !== topic.text;
        topic.text = text;
        topic.nextMs = clock() + (frame.length > LONG_BYTES ? limits.repeatMs : PAUSE_MS);
        for (const listener of topic.listeners)
          if (isNews || joined.get(topic)?.has(listener) === true) listener.queue.latest(key, frame);
      }
    } catch (error) {
      logger.error({ err: error }, 'accounts could not be read for their subscribers');
      for (const [, topic] of due) loseAll(topic);
    }
  }

  const loseAll = ({ listeners }: Topic): void => listeners.forEach((listener) => listener.lost());

  const isSwap = (type: AccountSource['type']): boolean => type === 'swapOrders';
  const accounts = createLane((type) => !isSwap(type), accountStates);
  const swaps = createLane(isSwap, swapStates);
  const laneOf = (type: AccountSource['type']) => (isSwap(type) ? swaps : accounts);

  /**
   * Executors and other servers append to the swap log without an event here, so each second and each generation asks for the marks of all owners. One look at
   * a time.
   */
  async function lookAtSwaps(): Promise<void> {
    const followed = [...topics.values()].filter(({ source }) => source.type === 'swapOrders');
    if (swapOrders === null || followed.length === 0 || isLooking || isStopped) return;
    isLooking = true;
    try {
      const marks = await swapOrders.marks(followed.map(({ source }) => source.user));
      for (const topic of followed) {
        const mark = marks.get(topic.source.user) ?? '';
        topic.isDirty ||= mark !== topic.mark;
        topic.mark = mark;
      }
      if (!isStopped) swaps.soon();
    } catch (error) {
      // The next look finds what this one has missed.
      logger.error({ err: error }, 'the orders of owners could not be looked at');
    } finally {
      isLooking = false;
    }
  }

  const ticking = setInterval(() => {
    if (topics.size > 0) {
      accounts.flush();
      swaps.flush();
    }
    void lookAtSwaps();
  }, PAUSE_MS);
  ticking.unref();

  return {
    subscribe(key, source, listener) {
      const topic: Topic = topics.get(key) ?? {
        ...{ source, listeners: new Set(), joining: new Set() },
        ...{ text: '', isDirty: false, nextMs: 0, mark: '' },
      };
      topics.set(key, topic);
      topic.listeners.add(listener);
      topic.joining.add(listener);
      laneOf(source.type).flush();
    },
    unsubscribe(key, listener) {
      const topic = topics.get(key);
      if (topic === undefined) return;
      topic.listeners.delete(listener);
      topic.joining.delete(listener);
      listener.queue.drop(key);
      if (topic.listeners.size === 0) topics.delete(key);
    },
    serves: (type) => type !== 'swapOrders' || swapOrders !== null,
    onEvent(event) {
      const { length } = gateway.markets();
      const isListing = length !== listed;
      listed = length;
      if (topics.size === 0) return;
      const makers: ReadonlySet<Account> =
        event.type === 'rows' ? new Set(event.changes.map(({ known }) => known.order.maker)) : event.makers;
      const paid: ReadonlySet<Account> = event.type === 'rows' ? new Set() : event.accounts;
      const isChanged = ({ type, user }: AccountSource): boolean => {
        if (type === 'swapOrders') return false;
        return type === 'spotState' ? isListing || paid.has(user) : makers.has(user);
      };
      if (event.type === 'generations') void lookAtSwaps();
      for (const topic of topics.values()) topic.isDirty ||= isChanged(topic.source);
      accounts.soon();
    },
    stop() {
      isStopped = true;
      clearInterval(ticking);
      accounts.stop();
      swaps.stop();
    },
  };
}
