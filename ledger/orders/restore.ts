/**
 * Restores from an archive what a lost database had: publications with their books, so that every fill is explained, and the numbers
 * already used, so that none is used again. The lost rows of the order log can't be restored; their orders are closed.
 */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import { snapshotHash, snapshotSide } from '../../core/snapshot.js';
import type { Address, Hex, MarketSnapshot, OrderEffect, Side } from '../../core/types.js';
import { chunks, fromColumn, insertAbsent, toColumn } from '../db/columns.js';
import { readCompactionPosition } from './compacted-book.js';
import { compactStep } from './compaction.js';
import { lastGeneration } from '../chain/generations.js';
import { packBook } from '../chain/packed-book.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from './order-log.js';
import { insertPublications, readPublication } from '../publications/publication-log.js';
import { rereadFrom, type ReversalRequest } from '../chain/reversals.js';
import type { Publication, Queryable, Writer } from '../types.js';
import type { Stored } from '../db/tables.js';

/** Order ids that the lost log may have used after the newest book in the archive. */
const OID_MARGIN = 1_000_000;
const STEP = { effects: 2_000, generations: 0 };
const MAKERS_PER_TX = 200;
const ORDER_PAGE = 1_000;

/** `meta` key: signed actions with an older nonce, in milliseconds, are refused, because the log that would know them was lost. */
const NONCES_AFTER = 'nonces_after_ms';

/** Database and archive have different publications under one number, and nothing decides which of them was sent. */
export class RestoreConflictError extends Error {
  override readonly name = 'RestoreConflictError';
  readonly code = 'RESTORE_CONFLICT';
}

/** Signed actions with a nonce up to this are refused; 0 when nothing was ever restored. */
export async function readNoncesAfterMs(q: Queryable): Promise<number> {
  const row = await q<{ key: string; value: string }>('meta').where({ key: NONCES_AFTER }).first('value');
  return row === undefined ? 0 : toSafeInt(row.value);
}

/** Two publications under one number, and where they are unless the first is in the database and the other one in the archive. */
export interface Rivals {
  own: Publication;
  archived: Publication;
  places?: readonly [own: string, archived: string];
}

/** What tells publications under one number apart: book, words, deadline, and of a touch the curve that it prolongs. */
export function publicationIdentity({ snapshotHash, wordsHash, deadlineSec, kind, baseSeq }: Publication): string {
  return [snapshotHash, wordsHash, deadlineSec, kind === 'touch' ? baseSeq : ''].join(' ');
}

/** Whether two publications under one number are the same one. */
export function isSamePublication(a: Publication, b: Publication): boolean {
  return publicationIdentity(a) === publicationIdentity(b);
}

/** Which publications the database lacks, and for which it has another one under the same number. */
export async function comparePublications(
  q: Queryable,
  archived: readonly Publication[],
): Promise<{ missing: Publication[]; rivals: Rivals[] }> {
  const missing: Publication[] = [];
  const rivals: Rivals[] = [];
  for (const one of archived) {
    const own = await readPublication(q, one.market, one.seq);
    if (own === null) missing.push(one);
    else if (!isSamePublication(own, one)) rivals.push({ own, archived: one });
  }
  return { missing, rivals };
}

/** A post that landed under a number, as far as it is known and the endpoints that name it do not differ. */
interface LandedPost {
  /** Of a touch those of the curve that it prolongs. */
  wordsHash: Hex | null;
  /** The curve that a touch prolongs; null for a post with words. */
  baseSeq?: number | null;
  deadlineSec?: number | null;
  /** Whether most endpoints agree on it. */
  isAgreed: boolean;
}

/** Whether a publication is what landed under its number, but for its deadline. */
export function isLandedAs(
  { kind, baseSeq, wordsHash }: Pick<Publication, 'kind' | 'baseSeq' | 'wordsHash'>,
  { baseSeq: touched = null, wordsHash: landed }: Omit<LandedPost, 'isAgreed'>,
): boolean {
  if (touched === null) return kind !== 'touch' && wordsHash === landed;
  return kind === 'touch' && baseSeq === touched && (landed === null || wordsHash === landed);
}

/**
 * Which of two publications under one number was sent. It is the one whose words landed, since a number can land only once. If both have
 * them, and the same book, it is the one with the deadline that landed, the database's own where that does not tell: an earlier deadline
 * than the chain's would have the ledger take a curve for over that takers can still execute. If none landed and both have expired, neither
 * matters, and the database keeps its own. `nowSec` is the time that most endpoints have reached, null where too few of them answered.
 * Throws RestoreConflictError when equal words have different books, when one of them may still land, or when most endpoints do not agree,
 * because the publication that is not chosen is deleted.
 */
export function sentOf(
  { own, archived, places: [place, other] = ['the database', 'the archive'] }: Rivals,
  landed: LandedPost | null,
  nowSec: number | null,
): 'own' | 'archived' {
  const conflict = (why: string): RestoreConflictError =>
    new RestoreConflictError(
      `publication ${own.seq} of market ${own.market} is another one in ${place} than in ${other}, and ${why}`,
    );
  if (landed === null) {
    if (nowSec === null) throw conflict('too few endpoints answer to say that neither has landed');
    const untilSec = Math.max(own.deadlineSec, archived.deadlineSec);
    if (untilSec >= nowSec) throw conflict(`either may land for ${untilSec - nowSec + 1} s more; try again after that`);
    return 'own';
  }
  if (!landed.isAgreed)
    throw conflict('not most of the endpoints name the same curve under that number, so that none is believed');
  const [isOwn, isArchived] = [isLandedAs(own, landed), isLandedAs(archived, landed)];
  if (!isOwn && !isArchived) throw conflict('the chain has neither under that number');
  if (!isArchived) return 'own';
  if (!isOwn) return 'archived';
  if (own.wordsHash !== archived.wordsHash)
    throw conflict(
      'they prolong a curve whose words are not known, so that the chain does not say which of them it is',
    );
  if (own.snapshotHash !== archived.snapshotHash)
    throw conflict('they have the same words, so that the chain does not say which of their books is behind it');
  return landed.deadlineSec === archived.deadlineSec && landed.deadlineSec !== own.deadlineSec ? 'archived' : 'own';
}

/**
 * Checks that the orders in the archive's books equal the database's orders with the same ids. Two databases that took orders after the
 * same backup gave equal ids to different orders, and a fill can't name both: throws RestoreConflictError then.
 */
export async function checkOrders(q: Queryable, archived: readonly Stored<'folded_orders'>[]): Promise<void> {
  const wanted = new Map(archived.map((row) => [row.oid, row]));
  const check = (
    oid: number,
    own: Pick<Stored<'folded_orders'>, 'maker' | 'market' | 'side' | 'price_ticks'>,
  ): void => {
    const one = wanted.get(oid);
    if (one === undefined) return;
    const isSame =
      one.maker === own.maker &&
      one.market === own.market &&
      one.side === own.side &&
      fromColumn(one.price_ticks) === fromColumn(own.price_ticks);
    if (!isSame) {
      throw new RestoreConflictError(
        `order ${oid} is of ${own.maker} in the database and of ${one.maker} in the archive, or otherwise another one: both took orders after they parted`,
      );
    }
  };
  for (const part of chunks([...wanted.keys()], 500)) {
    const rows = await q<Stored<'folded_orders'>>('folded_orders').whereIn('oid', part).select();
    for (const row of rows) check(row.oid, row);
  }
  for (let after = 0; ;) {
    const rows = await readOrderRows(q, { after, limit: ORDER_PAGE });
    for (const { maker, effects } of rows) {
      for (const effect of effects) {
        if (effect.type === 'open') check(effect.oid, { ...effect, maker, price_ticks: toColumn(effect.priceTicks) });
      }
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < ORDER_PAGE) return;
    after = last.orderSeq;
  }
}

/** Orders of an archive, as far as its books contain them. */
export interface ArchivedOrders {
  /** Adds the orders of a book, including what was trimmed off them. */
  note(publication: Publication, snapshot: MarketSnapshot): void;
  rows(afterOid: number, nowMs: number): Stored<'folded_orders'>[];
}

/** Collects orders from books. For each the largest size in any book is kept, so that no fill exceeds it. */
export function collectOrders(): ArchivedOrders {
  const orders = new Map<number, Omit<Stored<'folded_orders'>, 'state' | 'closed_ms' | 'has_fill' | 'filled_units'>>();
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

interface OrderRestart {
  /** Newest row and highest order id in the archive. */
  highs: { orderSeq: number; oid: number };
  orders: ArchivedOrders;
  /** Maker of the row that closes the orders. */
  operator: Address;
  nowMs: number;
  /** Closed orders without a fill that stay known per maker. */
  closedOrders: number;
}

/**
 * Restarts the order log after its lost part: its rows are compacted, numbers continue above the archive's, orders that only the archive
 * has are stored as closed, open orders are closed, since their makers may have cancelled them in the lost part, and nonces up to now are
 * refused. Every book that may still be needed must have been stored before. It may be repeated. Returns how many open orders were closed,
 * and of how many makers.
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
      cut_generation: at.cutGeneration,
    };
    await tx('fold_position').insert(position).onConflict('id').merge();
    const value = String(nowMs);
    await tx('meta').insert({ key: NONCES_AFTER, value }).onConflict('key').merge();
    const open = await tx<Stored<'folded_orders'>>('folded_orders')
      .where({ state: 'open' })
      .orderBy('oid')
      .select('oid', 'maker');
    const effects = new Map<Address, OrderEffect[]>();
    for (const { oid, maker } of open) {
      effects.set(maker, [...(effects.get(maker) ?? []), { type: 'close', oid, reason: 'canceled' }]);
    }
    const timeMs = Math.max(nowMs, at.timeMs);
    const own = { timeMs, signer: null, nonce: null };
    const rows = [...effects].map(([maker, closes]) => ({ ...own, maker, kind: 'close', effects: closes }));
    // The log must not be empty, or numbering would start again.
    const all = [...rows, { ...own, maker: restart.operator, kind: 'restore', effects: [] }];
    await appendOrderRows(
      tx,
      all.map((row, i) => ({ ...row, orderSeq: position.order_seq + 1 + i })),
    );
    return { closed: open.length, makers: effects.size };
  });
}

/** Publications that may still be hit, or were hit since a block: their books have to be stored before the order log is compacted. */
export async function publicationsSince(q: Queryable, blockNumber: number): Promise<Publication[]> {
  const block = await q('blocks').where('number', '<=', blockNumber).orderBy('number', 'desc').first();
  const rows = await q('publications')
    .where('deadline_sec', '>', block?.timestamp_sec ?? 0)
    .orderBy(['market', 'seq'])
    .select<{ market: number; seq: number }[]>('market', 'seq');
  const found: Publication[] = [];
  for (const { market, seq } of rows) found.push((await readPublication(q, market, seq))!);
  return found;
}

/**
 * Stores publications that the database lacks, and books, inside a transaction of the publication log's writer. Their cuts refer to the
 * lost database's logs, so each cut's generation is lowered to this database's newest at most. The database's own publications that never
 * landed are deleted where another one landed under their number.
 */
export async function storeArchived(
  tx: Knex.Transaction,
  {
    publications,
    books,
    superseded,
  }: {
    publications: readonly Publication[];
    books: readonly BookOf[];
    superseded: readonly Pick<Publication, 'market' | 'seq'>[];
  },
): Promise<void> {
  for (const { market, seq } of superseded) {
    for (const table of ['publications', 'snapshots']) await tx(table).where({ market, seq }).delete();
  }
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
    payload: packBook(snapshot),
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
 * The reversal by which curves are read again that were scanned before their publications were restored; null when there are none.
 * `unreadable` is the block of the first such curve, when the ledger has no older generation to return to.
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
