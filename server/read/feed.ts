import type { Book } from '../../core/book.js';
import type { Address } from '../../core/types.js';
import type { FeedStatus } from './deps.js';

type QuotedBook = Pick<Book, 'makersIn' | 'version' | 'lastOrderSeq'>;

interface FeedSources {
  /** Acknowledged orders only. */
  book(): QuotedBook;
  /** Time of the maker's newest accepted action, null when it never had one. */
  lastActionMs(maker: Address): number | null;
  sessions: { isOpen(maker: Address): boolean; version(): number };
  /** When this process began; the age of a market without quotes counts from here. */
  startedMs: number;
}

interface Known extends FeedStatus {
  book: QuotedBook;
  /** Versions on which the result depends: accepted actions, fills that close orders, and sessions. */
  orderSeq: number;
  version: number;
  sessions: number;
}

/**
 * Freshness of a market's quotes, from the makers that have open orders in it. Without any, the market is not live, and its age counts from
 * the start of the process. Goes through the makers once per change.
 */
export function createFeed(sources: FeedSources): (market: number) => FeedStatus {
  const known = new Map<number, Known>();

  function look(market: number): Known {
    const book = sources.book();
    const orderSeq = book.lastOrderSeq();
    const version = book.version(market);
    const sessions = sources.sessions.version();
    const last = known.get(market);
    if (last?.book === book && last.orderSeq === orderSeq && last.version === version && last.sessions === sessions) {
      return last;
    }
    let heardMs: number | null = null;
    let isLive = false;
    for (const maker of book.makersIn(market)) {
      heardMs = Math.max(heardMs ?? 0, sources.lastActionMs(maker) ?? sources.startedMs);
      isLive ||= sources.sessions.isOpen(maker);
    }
    const found = { book, orderSeq, version, sessions, isLive, heardMs: heardMs ?? sources.startedMs };
    known.set(market, found);
    return found;
  }

  return look;
}
