import type { Aggregation } from '../../core/market-data/aggregate.js';
import type { Market } from '../../core/types.js';
import { bookOf } from '../orders/info/books.js';
import { midsOf } from '../orders/info/markets.js';
import type { Gateway } from '../orders/engine.js';
import { channelFrame, type SendQueue } from './send-queue.js';
import type { StreamLimits } from './limits.js';

type Gathers = Pick<StreamLimits, 'coalesceMs' | 'repeatMs'>;

/** Pushes books and mids: the whole state after changes, several changes at once, and a repetition from time to time. */
export interface BookFeed {
  /** Sends the state now, and every later one. */
  subscribe(key: string, source: BookSource, queue: SendQueue): void;
  unsubscribe(key: string, queue: SendQueue): void;
  /** Books of these markets changed. */
  changed(markets: ReadonlySet<number>): void;
  stop(): void;
}

/** A market's book, or the mids of all, with the `dex` that was asked for. */
type BookSource = { market: number; by: Aggregation | null; isFast?: boolean } | { dex: string | null };

interface Topic {
  source: BookSource;
  queues: Set<SendQueue>;
}

/** Each state is serialised once, however many connections get it. */
export function createBookFeed(
  gateway: Pick<Gateway, 'book' | 'markets'>,
  limits: Gathers,
  clock: () => number,
): BookFeed {
  const topics = new Map<string, Topic>();
  const dirty = new Set<number>();
  let gathering: NodeJS.Timeout | null = null;

  function frameOf(source: BookSource): Buffer {
    if ('market' in source) {
      return channelFrame('l2Book', bookOf(gateway.markets()[source.market] as Market, gateway, clock(), source));
    }
    const mids = midsOf(gateway);
    return channelFrame('allMids', source.dex === null ? { mids } : { mids, dex: source.dex });
  }

  function push(isDue: (source: BookSource) => boolean): void {
    for (const [key, { source, queues }] of topics) {
      if (!isDue(source)) continue;
      const frame = frameOf(source);
      for (const queue of queues) queue.latest(key, frame);
    }
  }

  function flush(): void {
    gathering = null;
    const markets = new Set(dirty);
    dirty.clear();
    push((source) => !('market' in source) || markets.has(source.market));
  }

  const repeating = setInterval(() => push(() => true), limits.repeatMs);
  repeating.unref();

  return {
    subscribe(key, source, queue) {
      const topic = topics.get(key) ?? { source, queues: new Set<SendQueue>() };
      topics.set(key, topic);
      topic.queues.add(queue);
      queue.latest(key, frameOf(source));
    },
    unsubscribe(key, queue) {
      const topic = topics.get(key);
      topic?.queues.delete(queue);
      if (topic?.queues.size === 0) topics.delete(key);
      queue.drop(key);
    },
    changed(markets) {
      if (markets.size === 0 || topics.size === 0) return;
      for (const market of markets) dirty.add(market);
      gathering ??= setTimeout(flush, limits.coalesceMs);
    },
    stop() {
      clearInterval(repeating);
      if (gathering !== null) clearTimeout(gathering);
    },
  };
}
