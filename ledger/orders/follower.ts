import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Book } from '../../core/book.js';
import { createBook } from '../../core/book/create-book.js';
import type { Cut, Market, OrderLogRow } from '../../core/types.js';
import { LogCompactedError } from '../errors.js';
import { readCompactedBook, readCompactionPosition, readProgressAt } from './compacted-book.js';
import { readGenerationEffects } from '../chain/ledger-log.js';
import { readOrderRows } from './order-log.js';
import type { MarketProgress, Queryable } from '../types.js';

/**
 * Rows read at a time. A page bounds the memory for a long log, and between two pages the event loop runs, which a query on SQLite blocks.
 */
const PAGE = 1_000;
/** How often the compacted book is read again when compaction moved it during the reading. */
const COMPACTED_BOOK_TRIES = 5;

/** A book replayed from the logs, exactly up to a cut. It only moves forward. */
export interface Follower {
  readonly book: Book;
  /** Order row and generation that the book includes. */
  position(): { orderSeq: number; generation: number };
  /** Fill counter and volumes of a market after the last generation included; zeros before its first fill. */
  progress(market: number): MarketProgress;
  /**
   * Applies the rows up to the cut. Throws RangeError for a cut behind the position, or one that the logs do not reach, LedgerReversedError
   * when the cut lies beyond a reorganisation that reversed part of the position, and LogCompactedError when rows after the position were
   * compacted meanwhile; the caller then needs a new follower. For a cut before the compacted book a new one throws LogCompactedError, too.
   */
  advance(q: Queryable, cut: Pick<Cut, 'orderSeq' | 'generation'>): Promise<void>;
}

/**
 * A follower that begins with the compacted book, or with both logs while there is none. `markets` may grow while it lives; `onRow`
 * sees each order row after it was applied.
 */
export function createFollower(markets: readonly Market[], onRow?: (row: OrderLogRow) => void): Follower {
  let book = createBook(markets);
  const progress = new Map<number, MarketProgress>();
  let started = false;
  let orderSeq = 0;
  let generation = 0;

  /** Outside a read transaction the compacted book may move between two reads, which then don't belong together. */
  async function start(q: Queryable, cut: Pick<Cut, 'orderSeq' | 'generation'>): Promise<void> {
    for (let tries = 1; tries <= COMPACTED_BOOK_TRIES; tries += 1) {
      const compacted = await readCompactionPosition(q);
      const restored = await readCompactedBook(q, compacted);
      const counters = await readProgressAt(q, markets, compacted.generation);
      const after = await readCompactionPosition(q);
      if (after.orderSeq !== compacted.orderSeq || after.generation !== compacted.generation) continue;
      book = createBook(markets, restored);
      for (const one of counters) progress.set(one.market, one);
      ({ orderSeq, generation } = compacted);
      if (cut.orderSeq < orderSeq || cut.generation < compacted.cutGeneration)
        throw new LogCompactedError(`cut (${cut.orderSeq}, ${cut.generation})`);
      started = true;
      return;
    }
    throw new LogCompactedError('what was read of the compacted book');
  }

  async function missingRow(q: Queryable, upTo: number): Promise<Error> {
    const compacted = await readCompactionPosition(q);
    if (compacted.orderSeq > orderSeq) return new LogCompactedError(`order row ${orderSeq + 1}`);
    return new RangeError(`the order log has no row ${orderSeq + 1}, before the cut at ${upTo}`);
  }

  async function advanceOrders(q: Queryable, upTo: number): Promise<void> {
    while (orderSeq < upTo) {
      const rows = await readOrderRows(q, { after: orderSeq, upTo, limit: PAGE });
      if (rows.length === 0) throw await missingRow(q, upTo);
      for (const row of rows) {
        if (row.orderSeq !== orderSeq + 1) throw await missingRow(q, upTo);
        book.apply(row);
        orderSeq = row.orderSeq;
        onRow?.(row);
      }
      if (rows.length === PAGE) await nextTurn();
    }
  }

  async function advanceGenerations(q: Queryable, upTo: number): Promise<void> {
    while (generation < upTo) {
      const rows = await readGenerationEffects(q, { after: generation, upTo, limit: PAGE });
      if (rows.length === 0) throw new RangeError(`the ledger log ends at ${generation}, before the cut at ${upTo}`);
      for (const row of rows) {
        book.applyFills(row.orderFills);
        for (const one of row.progress) progress.set(one.market, one);
        generation = row.generation;
      }
      if (rows.length === PAGE) await nextTurn();
    }
  }

  return {
    get book() {
      return book;
    },
    position: () => ({ orderSeq, generation }),
    progress: (market) => progress.get(market) ?? { market, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n },
    async advance(q, cut) {
      if (!started) await start(q, cut);
      if (cut.orderSeq < orderSeq || cut.generation < generation) {
        throw new RangeError(
          `cut (${cut.orderSeq}, ${cut.generation}) lies behind the follower at (${orderSeq}, ${generation})`,
        );
      }
      await advanceOrders(q, cut.orderSeq);
      await advanceGenerations(q, cut.generation);
    },
  };
}
