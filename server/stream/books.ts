import type { Market } from '../../core/types.js';
import { bookOf, midsOf } from '../orders/info/markets.js';
import type { Gateway } from '../orders/engine.js';
import { channelFrame } from './frames.js';
import type { StreamLimits } from './limits.js';
import type { Outbox } from './outbox.js';

type Gathers = Pick<StreamLimits, 'coalesceMs' | 'repeatMs'>;

/** Pushes of books and mids: the whole state after a change, several changes at once, and again from time to time. */
export interface BookFeed {
  /** Sends the state now, and every later one. */
  subscribe(key: string, source: BookSource, outbox: Outbox): void;
  unsubscribe(key: string, outbox: Outbox): void;
  /** Books of these markets changed. */
  changed(markets: ReadonlySet<number>): void;
  stop(): void;
}

/** A market's book, or the mids of all, with the `dex` that was asked for. */
export type BookSource = { market: number } | { dex: string | null };

interface Topic {
  source: BookSource;
  outboxes: Set<Outbox>;
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
      return channelFrame('l2Book', bookOf(gateway.markets()[source.market] as Market, gateway, clock()));
    }
    const mids = midsOf(gateway);
    return channelFrame('allMids', source.dex === null ? { mids } : { mids, dex: source.dex });
  }

  function push(isDue: (source: BookSource) => boolean): void {
    for (const [key, { source, outboxes }] of topics) {
      if (!isDue(source)) continue;
      const frame = frameOf(source);
      for (const outbox of outboxes) outbox.latest(key, frame);
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
    subscribe(key, source, outbox) {
      const topic = topics.get(key) ?? { source, outboxes: new Set<Outbox>() };
      topics.set(key, topic);
      topic.outboxes.add(outbox);
      outbox.latest(key, frameOf(source));
    },
    unsubscribe(key, outbox) {
      const topic = topics.get(key);
      topic?.outboxes.delete(outbox);
      if (topic?.outboxes.size === 0) topics.delete(key);
      outbox.drop(key);
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
