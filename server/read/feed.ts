import type { Book } from '../../core/book.js';
import type { Address } from '../../core/types.js';
import type { FeedStatus } from './deps.js';

export interface FeedSources {
  /** Acknowledged orders only. */
  book(): Pick<Book, 'makersWithOrders' | 'openOrders'>;
  /** Time of the maker's newest accepted action, null when it never had one. */
  lastActionMs(maker: Address): number | null;
  sessions: { isOpen(maker: Address): boolean };
  clock(): number;
  /** When this process began; the age of a market without quotes counts from here. */
  startedMs: number;
}

/**
 * Freshness of a market's quotes, from the makers that have standing ones. Without any, the market is not live, and its age is the
 * process's: nothing has been heard for at least that long.
 */
export function createFeed(sources: FeedSources): FeedStatus {
  const quoting = (market: number): Address[] => {
    const book = sources.book();
    return book.makersWithOrders().filter((maker) => book.openOrders(maker).some((order) => order.market === market));
  };
  return {
    feedLive: (market) => quoting(market).some((maker) => sources.sessions.isOpen(maker)),
    ageMs: (market) => {
      const times = quoting(market).map((maker) => sources.lastActionMs(maker) ?? sources.startedMs);
      const newestMs = times.length > 0 ? times.reduce((a, b) => Math.max(a, b)) : sources.startedMs;
      return Math.max(sources.clock() - newestMs, 0);
    },
  };
}
