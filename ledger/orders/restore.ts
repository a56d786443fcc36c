/**
 * Puts back what a lost database knew and an archive still has: publications with their books, so that every fill is explained, and numbers
 * that were given away, so that none is given away again. What the lost part of the order log said is gone; orders in it are closed.
 */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import { encodeSnapshot } from '../../core/json.js';
import { snapshotHash, snapshotSide } from '../../core/snapshot.js';
import type { Address, MarketSnapshot, OrderEffect, Side } from '../../core/types.js';
import { chunks, insertAbsent, toColumn } from '../db/columns.js';
import { readCompactionPosition, type StoredOrder } from './compacted-book.js';
import { compactStep } from './compaction.js';
import { lastGeneration } from '../chain/generations.js';

import { appendOrderRows, lastOrderSeq } from './order-log.js';
import { insertPublications, readPublication } from '../publications/publication-log.js';
import { rereadFrom, type ReversalRequest } from '../chain/reversals.js';
import type { Publication, Queryable, Writer } from '../types.js';

/** Order ids that a lost log may have given away after the newest book that an archive knows of. */
const OID_MARGIN = 1_000_000;
const STEP = { effects: 2_000, generations: 0 };
const MAKERS_PER_TX = 200;

/** `meta` key: signed actions with an older nonce, in milliseconds, are refused, because the log that would know them was lost. */
const NONCES_AFTER = 'nonces_after_ms';

/** A publication of the database that an archive has otherwise. */
export class RestoreConflictError extends Error {
  override readonly name = 'RestoreConflictError';
  readonly code = 'RESTORE_CONFLICT';
}

/** Signed actions with a nonce up to this are refused; 0 when nothing was ever restored. */
export async function readNoncesAfterMs(q: Queryable): Promise<number> {
  const row = await q<{ key: string; value: string }>('meta').where({ key: NONCES_AFTER }).first('value');
  return row === undefined ? 0 : toSafeInt(row.value);
}

/**
 * Which publications the database lacks. Throws RestoreConflictError for one that it has with another book, other words or another
 * deadline under the same number.
 */
export async function missingPublications(q: Queryable, archived: readonly Publication[]): Promise<Publication[]> {
  const missing: Publication[] = [];
  for (const one of archived) {
    const known = await readPublication(q, one.market, one.seq);
    if (known === null) missing.push(one);
    else if (
      known.snapshotHash !== one.snapshotHash ||
      known.wordsHash !== one.wordsHash ||
      known.deadlineSec !== one.deadlineSec
    ) {
      throw new RestoreConflictError(
        `publication ${one.seq} of market ${one.market} is another one in the database than in the archive`,
      );
    }
  }
  return missing;
}

/** What an archive says about orders, as far as its books name them. */
export interface ArchivedOrders {
  /** Takes note of the orders of a book, and of what was trimmed off them. */
  note(publication: Publication, snapshot: MarketSnapshot): void;
  rows(afterOid: number, nowMs: number): StoredOrder[];
}

/** Collects orders from books. Of each the largest size that any of them had is kept, so that no fill takes more than it had. */
export function collectOrders(): ArchivedOrders {
  const orders = new Map<number, Omit<StoredOrder, 'state' | 'closed_ms' | 'has_fill' | 'filled_units'>>();
  const sizes = new Map<number, bigint>();
  const SIDES: readonly Side[] = ['ask', 'bid'];
  return {
    note(publication, snapshot) {
      const trimmed = new Map(publication.trims.map(({ oid, lots }) => [oid, lots]));
      for (const side of SIDES) {
        for (const { oid, maker, priceTicks, sizeLots, cloid } of snapshotSide(snapshot, side)) {
          const lots = sizeLots + (trimmed.get(oid) ?? 0n);
          if ((sizes.get(oid) ?? 0n) < lots) sizes.set(oid, lots);
          if (orders.has(oid)) continue;
          orders.set(oid, {
            oid,
            market: publication.market,
            placed_ms: publication.cut.timeMs,
            maker,
            side,
            tif: 'Gtc',
            price_ticks: toColumn(priceTicks),
            size_lots: '0',
            cloid: cloid ?? null,
          });
        }
      }
    },
    rows: (afterOid, nowMs) =>
      [...orders.values()]
        .filter(({ oid }) => oid > afterOid)
        .map((order) => ({
          ...order,
          size_lots: toColumn(sizes.get(order.oid) ?? 0n),
          filled_units: '0',
          // Kept for good: a fill of it may be read from the chain at any time.
          has_fill: 1,
          state: 'canceled',
          closed_ms: nowMs,
        })),
  };
}

export interface OrderRestart {
  /** Newest row and highest id that the archive knows of. */
  highs: { orderSeq: number; oid: number };
  orders: ArchivedOrders;
  /** In whose name the row stands that says so. */
  operator: Address;
  nowMs: number;
  /** Closed orders without a fill that stay known per maker. */
  closedOrders: number;
}

/**
 * Lets the order log go on behind everything that was lost of it: what it has is compacted, its numbers go on above the archive's, orders that
 * only the archive knows are kept as closed, open ones are closed, since their makers may have cancelled them in the lost part, and nonces
 * up to now are refused. Every book that may still be needed must have been stored before. Doing it again does no harm. Returns how
 * many open orders were closed, and of how many makers.
 */
export async function restartOrderLog(
  writer: Writer,
  restart: OrderRestart,
): Promise<{ closed: number; makers: number }> {
  const { highs, nowMs, closedOrders } = restart;
  const bounds = async (tx: Knex.Transaction, leave: number) => ({
    orderSeq: (await lastOrderSeq(tx)) - leave,
    generation: 0,
    beforeMs: Number.MAX_SAFE_INTEGER,
  });
  for (let rows = 1; rows > 0;) {
    rows = await writer.tx(
      async (tx) => (await compactStep(tx, await bounds(tx, 1), { ...STEP, closedOrders })).orderRows,
    );
  }
  return writer.tx(async (tx) => {
    await compactStep(tx, await bounds(tx, 0), { ...STEP, closedOrders });
    const at = await readCompactionPosition(tx);
    const known = restart.orders.rows(at.oid, nowMs);
    for (const part of chunks(known, MAKERS_PER_TX)) await tx('folded_orders').insert(part).onConflict('oid').ignore();
    const lastOid = Math.max(at.oid, highs.oid, ...known.map(({ oid }) => oid));
    const position = {
      id: 1,
      // One beyond, so that every book of the archive lies before it.
      order_seq: Math.max(at.orderSeq, highs.orderSeq) + 1,
      generation: at.generation,
      oid: lastOid + OID_MARGIN,
      time_ms: at.timeMs,
    };
    await tx('fold_position').insert(position).onConflict('id').merge();
    const value = String(nowMs);
    await tx('meta').insert({ key: NONCES_AFTER, value }).onConflict('key').merge();
    const open = await tx<StoredOrder>('folded_orders').where({ state: 'open' }).orderBy('oid').select('oid', 'maker');
    const effects = new Map<Address, OrderEffect[]>();
    for (const { oid, maker } of open) {
      effects.set(maker, [...(effects.get(maker) ?? []), { type: 'close', oid, reason: 'canceled' }]);
    }
    const timeMs = Math.max(nowMs, at.timeMs);
    const own = { timeMs, signer: null, nonce: null };
    const rows = [...effects].map(([maker, closes]) => ({ ...own, maker, kind: 'close', effects: closes }));
    // The log never looks empty, which is how it would begin anew.
    const all = [...rows, { ...own, maker: restart.operator, kind: 'restore', effects: [] }];
    await appendOrderRows(
      tx,
      all.map((row, i) => ({ ...row, orderSeq: position.order_seq + 1 + i })),
    );
    return { closed: open.length, makers: effects.size };
  });
}

/** Publications that may still be hit, or were since a block, whose books have to be stored before the order log is compacted. */
export async function publicationsSince(q: Queryable, blockNumber: number): Promise<Publication[]> {
  const block = (await q('blocks').where('number', '<=', blockNumber).orderBy('number', 'desc').first()) as
    { timestamp_sec: number } | undefined;
  const rows = await q('publications')
    .where('deadline_sec', '>', block?.timestamp_sec ?? 0)
    .orderBy(['market', 'seq'])
    .select<{ market: number; seq: number }[]>('market', 'seq');
  const found: Publication[] = [];
  for (const { market, seq } of rows) found.push((await readPublication(q, market, seq))!);
  return found;
}

/**
 * Stores publications that the database lacks, and books, inside a transaction of the publication log's writer. What they were cut from is
 * not in this database's logs, so that their cut names its newest generation at most.
 */
export async function storeArchived(
  tx: Knex.Transaction,
  { publications, books }: { publications: readonly Publication[]; books: readonly BookOf[] },
): Promise<void> {
  const head = await lastGeneration(tx);
  const generation = head?.generation ?? 0;
  const own = publications.map((one) => ({
    ...one,
    cut: { ...one.cut, generation: Math.min(one.cut.generation, generation) },
  }));
  for (const part of chunks(own, 100)) await insertPublications(tx, part);
  const rows = books.map(({ market, seq, snapshot }) => ({
    market,
    seq,
    generation,
    payload: encodeSnapshot(snapshot),
  }));
  for (const part of chunks(rows, 20)) await insertAbsent(tx, 'snapshots', ['market', 'seq'], part);
}

/** The book behind a publication. */
export interface BookOf {
  market: number;
  seq: number;
  snapshot: MarketSnapshot;
}

/** Whether a book is the one that a publication was prepared with. */
export function isBookOf(publication: Publication, snapshot: MarketSnapshot): boolean {
  return publication.market === snapshot.market && publication.snapshotHash === snapshotHash(snapshot);
}

/**
 * What to take back so that curves are read anew which were scanned before the database knew what they were; null when there are none.
 * `unreadable` is the block of the first of them, where the ledger has nothing older to go back to.
 */
export async function rereadingOf(
  q: Queryable,
  publications: readonly Pick<Publication, 'market' | 'seq'>[],
): Promise<ReversalRequest | { unreadable: number } | null> {
  const head = await lastGeneration(q);
  if (head === null) return null;
  let first: number | null = null;
  for (const { market, seq } of publications) {
    const seen = await q<{ market: number; seq: number; block_number: number }>('posts_seen')
      .where({ market, seq })
      .first('block_number');
    if (seen !== undefined) first = Math.min(first ?? seen.block_number, seen.block_number);
  }
  if (first === null) return null;
  return (await rereadFrom(q, first)) ?? { unreadable: first };
}
