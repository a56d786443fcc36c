import { createBook, type Book } from '../core/book.js';
import type { Cut, Market, OrderLogRow } from '../core/types.js';
import { readGenerationEffects } from './ledger-log.js';
import { readOrderRows } from './order-log.js';
import type { MarketProgress, Queryable } from './types.js';

/** Rows read at a time, so that a long log never sits in memory whole. */
const PAGE = 1_000;

/** A book folded from the logs, exactly up to a cut. It only moves forward. */
export interface Follower {
  readonly book: Book;
  /** Order row and generation that the book includes. */
  position(): { orderSeq: number; generation: number };
  /** Fill counter and volumes of a market after the last generation included; zeros before its first fill. */
  progress(market: number): MarketProgress;
  /**
   * Applies the rows up to the cut. Throws RangeError for a cut behind the position, or one that the logs do not reach, and
   * LedgerReversedError when the cut lies beyond a reorganisation that took part of the position back; then a new follower is due.
   */
  advance(q: Queryable, cut: Pick<Cut, 'orderSeq' | 'generation'>): Promise<void>;
}

/** A follower at the beginning of both logs. `markets` may grow while it lives; `onRow` sees each order row after it was applied. */
export function createFollower(markets: readonly Market[], onRow?: (row: OrderLogRow) => void): Follower {
  const book = createBook(markets);
  const progress = new Map<number, MarketProgress>();
  let orderSeq = 0;
  let generation = 0;

  async function advanceOrders(q: Queryable, upTo: number): Promise<void> {
    while (orderSeq < upTo) {
      const rows = await readOrderRows(q, { after: orderSeq, upTo, limit: PAGE });
      if (rows.length === 0) throw new RangeError(`the order log ends at ${orderSeq}, before the cut at ${upTo}`);
      for (const row of rows) {
        book.apply(row);
        orderSeq = row.orderSeq;
        onRow?.(row);
      }
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
    }
  }

  return {
    book,
    position: () => ({ orderSeq, generation }),
    progress: (market) => progress.get(market) ?? { market, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n },
    async advance(q, cut) {
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
