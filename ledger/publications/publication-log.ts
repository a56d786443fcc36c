import type { Knex } from 'knex';
import {
  decodeAddresses,
  decodeTrims,
  decodeWords,
  encodeAddresses,
  encodeTrims,
  encodeWords,
} from '../../core/json.js';
import { highest } from '../db/aggregates.js';
import { MAX_PAGE, checkLimit, fromColumn, insertAll, toColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { PostSeen, Publication, Queryable } from '../types.js';
import { lastSeqReset } from './seq-resets.js';
import type { Stored } from '../db/tables.js';

/** Appends prepared publications inside a transaction of the publication log's writer. A used (market, seq) violates a unique key. */
export async function insertPublications(tx: Knex.Transaction, publications: readonly Publication[]): Promise<void> {
  await insertAll(tx, 'publications', publications.map(toRow));
}

/** One publication, or null when this database never prepared it. */
export async function readPublication(q: Queryable, market: number, seq: number): Promise<Publication | null> {
  const sql = 'select * from publications where market = ? and seq = ?';
  const [row] = await sendForRows<Stored<'publications'>>(q, sql, [market, seq]);
  return row === undefined ? null : fromRow(row);
}

/** What one transaction was to publish, by market; none for another transaction. */
export async function readPublicationsOf(q: Queryable, txKey: string): Promise<Publication[]> {
  return (await q('publications').where({ tx_key: txKey }).orderBy(['market', 'seq']).select()).map(fromRow);
}

/** Publications of a market with `afterSeq` < seq <= `upToSeq`, lowest seq first, at most `limit` (1..10000). */
export async function readPublications(
  q: Queryable,
  range: { market: number; afterSeq: number; upToSeq?: number; limit: number },
): Promise<Publication[]> {
  const query = q('publications')
    .where({ market: range.market })
    .where('seq', '>', range.afterSeq)
    .orderBy('seq')
    .limit(checkLimit(range.limit));
  if (range.upToSeq !== undefined) void query.where('seq', '<=', range.upToSeq);
  return (await query.select()).map(fromRow);
}

/** Highest seq ever prepared for the market, or since its numbers were given back; 0 before the first. */
export async function lastPublicationSeq(q: Queryable, market: number): Promise<number> {
  const reset = await lastSeqReset(q, market);
  const query = q('publications').where({ market });
  // Publications prepared after the reset name its block or a later one.
  if (reset !== null) void query.where('seq', '>', reset.seq).where('block_number', '>=', reset.blockNumber);
  return (await highest(query, 'seq')) ?? 0;
}

/** Highest seq ever prepared for the market, whether its numbers were given back since or not; 0 before the first. */
export async function highestPublicationSeq(q: Queryable, market: number): Promise<number> {
  return (await highest(q('publications').where({ market }), 'seq')) ?? 0;
}

/** The newest publication of a market at some moment: which numbering it belongs to, and its number, 0 before the first of that numbering. */
export interface PublicationMark {
  era: number;
  seq: number;
}

export async function publicationMark(q: Queryable, market: number): Promise<PublicationMark> {
  const reset = await lastSeqReset(q, market);
  return { era: reset?.era ?? 0, seq: await lastPublicationSeq(q, market) };
}

/**
 * What was prepared for a market after a mark, lowest number first, at most `limit` (1..10000). Null when the market's numbers were given back
 * since: numbers then don't say what came later. What was prepared in an older numbering is not among them, however high its numbers are.
 */
export async function publicationsSince(
  q: Queryable,
  range: { market: number; mark: PublicationMark; limit: number },
): Promise<Publication[] | null> {
  const { market, mark } = range;
  const reset = await lastSeqReset(q, market);
  if ((reset?.era ?? 0) !== mark.era) return null;
  const query = q('publications')
    .where({ market })
    .where('seq', '>', Math.max(mark.seq, reset?.seq ?? 0))
    .orderBy('seq')
    .limit(checkLimit(range.limit));
  if (reset !== null) void query.where('block_number', '>=', reset.blockNumber);
  return (await query.select()).map(fromRow);
}

/**
 * A curve or a touch in a scanned block: the newest one with this number, or without a number the newest one of the market. Null when there
 * is none, or none since the market's numbers were given back.
 */
export async function readPostSeen(q: Queryable, market: number, seq?: number): Promise<PostSeen | null> {
  const [which, value] =
    seq === undefined
      ? (['era = ? order by seq', (await lastSeqReset(q, market))?.era ?? 0] as const)
      : (['seq = ? order by era', seq] as const);
  const newest = `select * from posts_seen where market = ? and ${which} desc limit 1`;
  const [row] = await sendForRows<Stored<'posts_seen'>>(q, newest, [market, value]);
  if (row === undefined) return null;
  return {
    market: row.market,
    seq: row.seq,
    era: row.era,
    baseSeq: row.base_seq,
    postedSeq: row.posted_seq,
    deadlineSec: row.deadline_sec,
    snapAskUnits: fromColumn(row.snap_ask_units),
    snapBidUnits: fromColumn(row.snap_bid_units),
    wordsHash: row.words_hash,
    blockNumber: row.block_number,
    blockTimestampSec: row.block_timestamp_sec,
    txHash: row.tx_hash,
  };
}

/** The market's number on the chain as of the last scanned block: that of the newest curve, or the one that the owner set; 0 before the first. */
export async function landedSeq(q: Queryable, market: number): Promise<number> {
  const reset = await lastSeqReset(q, market);
  const seen = q('posts_seen').where({ market, era: reset?.era ?? 0 });
  return (await highest(seen, 'seq')) ?? reset?.seq ?? 0;
}

/**
 * Publications that a taker can still hit, or that can still land: their deadline is after `atSec`, the time of the last scanned
 * block, and no publication of a higher seq has landed in a scanned block, or since numbers were given back, after which older ones may land
 * after all. Lowest seq first. Both facts come from the ledger log,
 * so call it within `readTx` or the same transaction as other reads of that log. Throws RangeError beyond 10000 rows.
 */
export async function executablePublications(
  q: Queryable,
  at: { market: number; atSec: number },
): Promise<Publication[]> {
  const landed = await landedSeq(q, at.market);
  const rows = await q('publications')
    .where({ market: at.market })
    .where('seq', '>=', landed)
    .where('deadline_sec', '>', at.atSec)
    .orderBy('seq')
    .limit(MAX_PAGE + 1)
    .select();
  if (rows.length > MAX_PAGE)
    throw new RangeError(`more than ${MAX_PAGE} executable publications of market ${at.market}`);
  return rows.map(fromRow);
}

/** A publication as it is stored, every value a number or a text; what an archive keeps. */
export type PublicationRow = Stored<'publications'>;

/** The stored form of a publication. */
export function publicationRow(publication: Publication): PublicationRow {
  return toRow(publication);
}

/** Inverse of publicationRow. Throws PayloadError and RangeError for lists and amounts that are none. */
export function publicationOf(row: PublicationRow): Publication {
  return fromRow(row);
}

function toRow(publication: Publication): Stored<'publications'> {
  return {
    market: publication.market,
    seq: publication.seq,
    base_seq: publication.baseSeq,
    kind: publication.kind,
    block_number: publication.blockNumber,
    block_hash: publication.blockHash,
    excluded: encodeAddresses(publication.excluded),
    ask_knots: publication.askKnots,
    bid_knots: publication.bidKnots,
    compression: publication.compression,
    max_error_milli_bps: publication.maxErrorMilliBps,
    exact_ask_knots: publication.exactAskKnots,
    exact_bid_knots: publication.exactBidKnots,
    ask_error_ppb: publication.askErrorPpb,
    bid_error_ppb: publication.bidErrorPpb,
    cut_order_seq: publication.cut.orderSeq,
    cut_generation: publication.cut.generation,
    cut_time_ms: publication.cut.timeMs,
    fill_seq: publication.fillSeq,
    ask_volume_units: toColumn(publication.askVolumeUnits),
    bid_volume_units: toColumn(publication.bidVolumeUnits),
    trims: encodeTrims(publication.trims),
    snapshot_hash: publication.snapshotHash,
    ask_words: encodeWords(publication.askWords),
    bid_words: encodeWords(publication.bidWords),
    words_hash: publication.wordsHash,
    deadline_sec: publication.deadlineSec,
    prepared_ms: publication.preparedMs,
    tx_key: publication.txKey,
  };
}

function fromRow(row: Stored<'publications'>): Publication {
  return {
    market: row.market,
    seq: row.seq,
    baseSeq: row.base_seq,
    kind: row.kind,
    blockNumber: row.block_number,
    blockHash: row.block_hash,
    excluded: decodeAddresses(row.excluded),
    askKnots: row.ask_knots,
    bidKnots: row.bid_knots,
    compression: row.compression,
    maxErrorMilliBps: row.max_error_milli_bps,
    exactAskKnots: row.exact_ask_knots,
    exactBidKnots: row.exact_bid_knots,
    askErrorPpb: row.ask_error_ppb,
    bidErrorPpb: row.bid_error_ppb,
    cut: { orderSeq: row.cut_order_seq, generation: row.cut_generation, timeMs: row.cut_time_ms },
    fillSeq: row.fill_seq,
    askVolumeUnits: fromColumn(row.ask_volume_units),
    bidVolumeUnits: fromColumn(row.bid_volume_units),
    trims: decodeTrims(row.trims),
    snapshotHash: row.snapshot_hash,
    askWords: decodeWords(row.ask_words),
    bidWords: decodeWords(row.bid_words),
    wordsHash: row.words_hash,
    deadlineSec: row.deadline_sec,
    preparedMs: row.prepared_ms,
    txKey: row.tx_key,
  };
}

/**
 * Whether the post on the chain equals the publication under its number. Of a touch only the number of the curve that it prolongs is
 * compared.
 */
export function isPrepared(
  { kind, baseSeq, wordsHash }: Pick<Publication, 'kind' | 'baseSeq' | 'wordsHash'>,
  post: Pick<PostSeen, 'seq' | 'baseSeq' | 'wordsHash'>,
): boolean {
  const isTouch = post.baseSeq !== post.seq;
  if (isTouch !== (kind === 'touch')) return false;
  return isTouch ? baseSeq === post.baseSeq : wordsHash === post.wordsHash;
}
