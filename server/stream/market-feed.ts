import { openOf } from '../../core/market-data/intervals.js';
import type { Market } from '../../core/types.js';
import { tradesBetween, marketTrades, type Trade } from '../../ledger/views/trades.js';
import type { Db } from '../../ledger/types.js';
import { tradeRow } from '../market-data/wire.js';
import type { GatewayEvent } from '../orders/events.js';
import type { GatewayLogger } from '../orders/types.js';
import { createRemembered } from '../rendered.js';
import { channelFrame, type UpdateListener } from './send-queue.js';
import type { StreamLimits } from './limits.js';
import { MAX_STATES, mayChange, sharedContexts, statesOf } from './market-source.js';
import type { MarketSource, SharedContexts, State, StateDeps } from './market-source.js';

/** Pushes candles, tickers, best prices and every trade; each state is computed once, however many connections get it. */
export interface MarketFeed {
  /** Sends the present state, if there is one, and every later one. */
  subscribe(key: string, source: MarketSource, listener: UpdateListener): void;
  unsubscribe(key: string, listener: UpdateListener): void;
  /** Sends the newest trades, oldest first, and then every later one. */
  subscribeTrades(market: number, listener: UpdateListener): void;
  unsubscribeTrades(market: number, listener: UpdateListener): void;
  onEvent(event: GatewayEvent): void;
  stop(): void;
}

interface Topic {
  source: MarketSource;
  listeners: Set<UpdateListener>;
  /** Of the last push; empty before. */
  text: string;
  /** Keys under which frames may wait in a queue, and the text last pushed under each; it is empty before. */
  texts: Map<string, string>;
  state: 'idle' | 'making' | 'again';
  /** Of a candle, the time of the oldest trade since its states were last computed; null when there is none. */
  sinceMs: number | null;
  /** What is computed next is pushed whether or not it changed. */
  repeats: boolean;
  /** The last read found no trade ever; only a trade changes that. */
  isEmpty: boolean;
}

/** Newest generation that a subscription to trades was sent; null while the first trades are being read. */
interface TradeCursor {
  upTo: number | null;
  waiting: TradeEvent[];
}

interface TradeEvent {
  generation: number;
  frame: Buffer;
}

type Generations = Extract<GatewayEvent, { type: 'generations' }>;

/** Trades that a subscription begins with. */
const FIRST_TRADES = 30;
/** How often ended candles are looked for, and least time between two pushes of contexts to a user. */
const TICK_MS = 1_000;
/** Trades of the generations that are read at a time. */
const PAGE = 5_000;

export interface MarketFeedDeps extends StateDeps {
  db: Db;
  limits: Pick<StreamLimits, 'coalesceMs' | 'repeatMs'>;
  logger: GatewayLogger;
  /** Numbers events over all feeds of the process. */
  nextSeq: () => number;
}

export function createMarketFeed(deps: MarketFeedDeps): MarketFeed {
  const { gateway, db, clock, limits, logger, nextSeq } = deps;
  const topics = new Map<string, Topic>();
  const trades = new Map<number, Map<UpdateListener, TradeCursor>>();
  let dirtyMarkets = new Set<number>();
  let tradedMarkets = new Set<number>();
  let isLedgerDirty = false;
  /** The contexts changed since users were told. */
  let areUsersDirty = false;
  /** Key of the contexts: it differs after each event and each second. */
  let events = 0;
  const remembered = createRemembered<SharedContexts>();
  let gathering: NodeJS.Timeout | null = null;
  let telling: Promise<void> = Promise.resolve();

  /** The present contexts, computed once until the next event. */
  const contexts = (): Promise<SharedContexts> =>
    remembered.get(`${events}:${Math.floor(clock() / 1_000)}`, () => sharedContexts(deps));

  /** Computes a topic's state and sends it if it changed; one at a time per topic. */
  async function refresh(key: string, topic: Topic, repeat = false): Promise<void> {
    topic.repeats ||= repeat;
    if (topic.state !== 'idle') {
      topic.state = 'again';
      return;
    }
    do {
      topic.state = 'making';
      const { sinceMs, repeats } = topic;
      [topic.sinceMs, topic.repeats] = [null, false];
      try {
        const states = await statesOf(topic.source, deps, contexts, sinceMs);
        topic.isEmpty = states.length === 0;
        for (const state of states)
          if (repeats || state.text !== topic.texts.get(keyOf(key, state))) push(key, topic, state);
      } catch (error) {
        logger.error({ err: error, key }, 'market data could not be read for its subscribers');
        topic.listeners.forEach((listener) => listener.lost());
      }
    } while ((topic.state as Topic['state']) === 'again');
    topic.state = 'idle';
  }

  const keyOf = (key: string, { name }: State): string => `${key}:${name}`;

  function push(key: string, topic: Topic, state: State): void {
    topic.text = state.text;
    const name = keyOf(key, state);
    keep(topic, name, state.text);
    const frame = state.frame();
    for (const { queue } of topic.listeners) queue.latest(name, frame);
  }

  function keep({ texts }: Topic, name: string, text: string): void {
    texts.delete(name);
    texts.set(name, text);
    // Frames under older names were sent long ago, or their connection is closed.
    if (texts.size > MAX_STATES) texts.delete(texts.keys().next().value as string);
  }

  /** Makes the topic's states from this time on be computed next. */
  function widen(topic: Topic, fromMs: number | null): void {
    if (fromMs !== null) topic.sinceMs = Math.min(topic.sinceMs ?? Infinity, fromMs);
  }

  async function sendFirst(key: string, topic: Topic, listener: UpdateListener): Promise<void> {
    try {
      const [state] = await statesOf(topic.source, deps, contexts, null);
      if (state === undefined || !topic.listeners.has(listener)) return;
      const name = keyOf(key, state);
      if (!topic.texts.has(name)) keep(topic, name, '');
      listener.queue.latest(name, state.frame());
      // Another state may have been pushed while this one was computed.
      if (topic.text === '' || topic.text === state.text) return;
      widen(topic, state.fromMs);
      void refresh(key, topic, true);
    } catch (error) {
      logger.error({ err: error, key }, 'market data could not be read for a subscriber');
      listener.lost();
    }
  }

  function flush(): void {
    gathering = null;
    const changes = { markets: dirtyMarkets, traded: tradedMarkets, isLedger: isLedgerDirty };
    [dirtyMarkets, tradedMarkets, isLedgerDirty] = [new Set(), new Set(), false];
    areUsersDirty = true;
    for (const [key, topic] of topics) {
      const { type } = topic.source;
      if (type === 'webData2' || !mayChange(topic.source, changes)) continue;
      // Which candles changed is known once the trades have been read.
      if (type === 'candle') void telling.then(() => refresh(key, topic));
      else void refresh(key, topic);
    }
  }

  const candlesIn = (market: number): Topic[] =>
    [...topics.values()].filter(({ source }) => source.type === 'candle' && source.market === market);

  /** Sends the trades of generations, after those of earlier ones, and notes for candles how old they are. */
  async function tell({ from, to, markets }: Generations): Promise<void> {
    if (trades.size === 0 && ![...markets].some((market) => candlesIn(market).length > 0)) return;
    try {
      for (let skip = 0; ; skip += PAGE) {
        const page = await tradesBetween(db.reads, { from, to, limit: PAGE, skip });
        for (const [market, own] of Map.groupBy(page, (trade) => trade.market)) {
          tellMarket(market, own);
          const oldestMs = Math.min(...own.map(({ timestampMs }) => timestampMs));
          for (const topic of candlesIn(market)) widen(topic, oldestMs);
        }
        if (page.length < PAGE) return;
      }
    } catch (error) {
      logger.error({ err: error }, 'trades could not be read for their subscribers, who are disconnected');
      const listeners = [...trades.values()].flatMap((own) => [...own.keys()]);
      for (const topic of [...markets].flatMap(candlesIn)) listeners.push(...topic.listeners);
      new Set(listeners).forEach((listener) => listener.lost());
    }
  }

  function tellMarket(market: number, own: readonly (Trade & { generation: number })[]): void {
    const listeners = trades.get(market);
    if (listeners === undefined) return;
    for (const [generation, group] of Map.groupBy(own, (trade) => trade.generation)) {
      const frame = tradesFrame(market, group);
      const event = { frame, seq: nextSeq(), timeMs: clock() };
      for (const [listener, cursor] of listeners) {
        if (cursor.upTo === null) cursor.waiting.push({ generation, frame });
        else if (generation > cursor.upTo) listener.queue.event(event);
      }
    }
  }

  const tradesFrame = (market: number, own: readonly Trade[]): Buffer =>
    channelFrame(
      'trades',
      own.map((trade) => tradeRow(gateway.markets()[market] as Market, trade)),
    );

  async function sendTrades(market: number, listener: UpdateListener, cursor: TradeCursor): Promise<void> {
    const upTo = gateway.generation();
    try {
      const first = await marketTrades(db.reads, market, FIRST_TRADES, upTo);
      if (trades.get(market)?.get(listener) !== cursor) return;
      if (first.length > 0) listener.queue.reply(tradesFrame(market, first.reverse()));
    } catch (error) {
      logger.error({ err: error, market }, 'the newest trades could not be read');
      return listener.lost();
    }
    cursor.upTo = upTo;
    for (const { generation, frame } of cursor.waiting.splice(0))
      if (generation > upTo) listener.queue.event({ frame, seq: nextSeq(), timeMs: clock() });
  }

  const ticking = setInterval(() => {
    const nowMs = clock();
    const isForUsers = areUsersDirty;
    areUsersDirty = false;
    for (const [key, topic] of topics) {
      const { source, texts, isEmpty } = topic;
      if (source.type === 'webData2' && isForUsers) void refresh(key, topic);
      if (isEmpty) continue;
      // A new interval has a candle even without a trade.
      if (source.type === 'candle' && !texts.has(`${key}:${openOf(source.interval, nowMs)}`)) void refresh(key, topic);
    }
  }, TICK_MS);
  const repeating = setInterval(() => {
    for (const [key, topic] of topics)
      if (topic.source.type !== 'candle' && topic.source.type !== 'bbo') void refresh(key, topic, true);
  }, limits.repeatMs);
  ticking.unref();
  repeating.unref();

  return {
    subscribe(key, source, listener) {
      const topic: Topic = topics.get(key) ?? {
        source,
        listeners: new Set(),
        text: '',
        texts: new Map(),
        state: 'idle',
        sinceMs: null,
        repeats: false,
        isEmpty: false,
      };
      topics.set(key, topic);
      topic.listeners.add(listener);
      void sendFirst(key, topic, listener);
    },
    unsubscribe(key, listener) {
      const topic = topics.get(key);
      if (topic === undefined) return;
      topic.listeners.delete(listener);
      for (const name of topic.texts.keys()) listener.queue.drop(name);
      if (topic.listeners.size === 0) topics.delete(key);
    },
    subscribeTrades(market, listener) {
      const cursor: TradeCursor = { upTo: null, waiting: [] };
      const listeners = trades.get(market) ?? new Map<UpdateListener, TradeCursor>();
      trades.set(market, listeners.set(listener, cursor));
      void sendTrades(market, listener, cursor);
    },
    unsubscribeTrades(market, listener) {
      const listeners = trades.get(market);
      listeners?.delete(listener);
      if (listeners?.size === 0) trades.delete(market);
    },
    onEvent(event) {
      events += 1;
      if (event.type === 'generations') {
        isLedgerDirty = true;
        for (const market of event.markets) tradedMarkets.add(market);
        telling = telling.then(() => tell(event));
      }
      if (topics.size === 0) {
        dirtyMarkets.clear();
        tradedMarkets.clear();
        return;
      }
      for (const market of event.markets) dirtyMarkets.add(market);
      if (event.type === 'generations' || event.markets.size > 0) gathering ??= setTimeout(flush, limits.coalesceMs);
    },
    stop() {
      clearInterval(ticking);
      clearInterval(repeating);
      if (gathering !== null) clearTimeout(gathering);
    },
  };
}
