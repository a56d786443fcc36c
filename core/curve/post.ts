/** The packed form of posts: a block reference, then one record per market. */
import { toSafeInt } from '../amounts.js';
import { bytesToHex, hexToBytes } from '../hash.js';
import type { Hex } from '../types.js';
import { CurveError } from './errors.js';
import { bigHex, MAX_WORDS, VOLUME_MODULUS, wordsUsed } from './words.js';

/** The block that the posted curves were computed from; the post reverts when the chain has another one at its height. */
export interface BlockRef {
  number: number;
  hash: Hex;
}

interface PostHead {
  marketId: Hex;
  seq: number;
  /** Seconds of chain time, exclusive. */
  deadlineSec: number;
}

/** What full and partial posts say of the snapshot behind the curve that is live after the post. */
interface PostSnapshot {
  /** Cumulative base units taken that the snapshot already reflects; they go on-chain modulo 2^92. */
  snapAskUnits: bigint;
  snapBidUnits: bigint;
  /** Leading segments of each side that equal the book, 0..15: consumption that ends within them is not raised. */
  exactAskKnots: number;
  exactBidKnots: number;
}

/** A new curve. */
export interface FullPost extends PostHead, PostSnapshot {
  kind: 'full';
  askWords: readonly bigint[];
  bidWords: readonly bigint[];
}

/** A new deadline for the live curve `baseSeq`. */
interface TouchPost extends PostHead {
  kind: 'touch';
  baseSeq: number;
}

/** New words of a side, best first: null leaves a word as it is, and words beyond the end of the list stay, too. */
export type WordChanges = readonly (bigint | null)[];

/** The live curve `baseSeq` with some words exchanged. */
export interface PartialPost extends PostHead, PostSnapshot {
  kind: 'partial';
  baseSeq: number;
  askChanges: WordChanges;
  bidChanges: WordChanges;
}

export type PostRecord = FullPost | TouchPost | PartialPost;

/** Most that a post may raise the sequence number by; the contract has the same limit. */
export const MAX_SEQ_STEP = 65_536;

const KINDS = { full: 1n, touch: 2n, partial: 3n } as const;
const HASH_BYTES = 12;

/** Bytes of a post of one or more records, for `post` (one) and `postBatch`. Throws CurveError when something does not fit. */
export function encodePost(block: BlockRef, records: readonly PostRecord[]): Hex {
  if (records.length === 0) throw new CurveError('empty_post', 'a post needs at least one record');
  if (!/^0x[0-9a-fA-F]{64}$/.test(block.hash)) throw new CurveError('bad_hash', `not a block hash: ${block.hash}`);
  const reference = bigHex(BigInt(block.number), 6) + block.hash.slice(2, 2 + HASH_BYTES * 2).toLowerCase();
  return `0x${reference}${records.map(encodeRecord).join('')}`;
}

function encodeRecord(record: PostRecord): string {
  if (!/^0x[0-9a-fA-F]{64}$/.test(record.marketId))
    throw new CurveError('bad_market', `not a market id: ${record.marketId}`);
  const head =
    bigHex(KINDS[record.kind], 1) +
    record.marketId.slice(2).toLowerCase() +
    bigHex(BigInt(record.seq), 4) +
    bigHex(BigInt(record.deadlineSec), 4);
  if (record.kind === 'full') return head + fullBody(record);
  const base = bigHex(BigInt(record.baseSeq), 4);
  return head + base + (record.kind === 'partial' ? partialBody(record) : '');
}

function fullBody({ askWords, bidWords, ...snapshot }: FullPost): string {
  checkWordCounts(askWords, bidWords);
  const counts = askWords.length * 16 + bidWords.length;
  return snapshotAndNibbles(snapshot, counts) + wordsHex([...askWords, ...bidWords]);
}

function partialBody({ askChanges, bidChanges, ...snapshot }: PartialPost): string {
  checkWordCounts(askChanges, bidChanges);
  const masks = maskOf(askChanges) * 16 + maskOf(bidChanges);
  const changed = [...askChanges, ...bidChanges].filter((word) => word !== null);
  return snapshotAndNibbles(snapshot, masks) + wordsHex(changed);
}

function checkWordCounts(...sides: (readonly unknown[])[]): void {
  if (sides.some((side) => side.length > MAX_WORDS)) {
    throw new CurveError('too_many_words', `at most ${MAX_WORDS} words a side`);
  }
}

const maskOf = (changes: WordChanges): number =>
  changes.reduce<number>((mask, word, i) => mask + (word === null ? 0 : 2 ** i), 0);

const wordsHex = (words: readonly bigint[]): string => words.map((word) => bigHex(word, 32)).join('');

const snapshotAndNibbles = (snapshot: PostSnapshot, nibbles: number): string =>
  snapshotHex(snapshot.snapAskUnits, snapshot.exactAskKnots) +
  snapshotHex(snapshot.snapBidUnits, snapshot.exactBidKnots) +
  bigHex(BigInt(nibbles), 1);

/** A volume with the count of exact segments in the four bits above it. */
const snapshotHex = (volumeUnits: bigint, exactKnots: number): string =>
  bigHex(BigInt(exactKnots) * VOLUME_MODULUS + (volumeUnits % VOLUME_MODULUS), 12);

/** The changes that turn the words of a side into others, as a partial post needs them: an emptied side is a zero first word. */
export function wordChanges(before: readonly bigint[], after: readonly bigint[]): WordChanges {
  if (after.length === 0) return before.length === 0 ? [] : [0n];
  return trimmed(after.map((word, i) => (word === before[i] ? null : word)));
}

/**
 * The words of a side after a partial post. Throws CurveError `malformed_post` where the chain would revert: the first word must count
 * the words, none beyond them may change, and each that the side did not have before must be there.
 */
export function amendedWords(before: readonly bigint[], changes: WordChanges): bigint[] {
  const first = changes[0] ?? before[0] ?? 0n;
  const used = wordsUsed(first);
  const sent = trimmed(changes).length;
  if (used > MAX_WORDS || (used === 0 && first !== 0n) || sent > Math.max(used, 1)) {
    throw new CurveError('malformed_post', `a side of ${used} words can't take these ${sent} changes`);
  }
  return Array.from({ length: used }, (_, i) => {
    const word = changes[i] ?? before[i];
    if (word === undefined) throw new CurveError('malformed_post', `word ${i} of the side is missing`);
    return word;
  });
}

function trimmed(changes: WordChanges): WordChanges {
  return changes.slice(0, changes.findLastIndex((word) => word !== null) + 1);
}

/** A post read back; `hash` has the 12 bytes that a post carries. */
interface DecodedPost {
  block: BlockRef;
  records: PostRecord[];
}

/** Inverse of encodePost. Throws CurveError `malformed_post` with the offset of the record that can't be read. */
export function decodePost(data: Hex): DecodedPost {
  const bytes = hexToBytes(data);
  let at = 0;
  let recordAt = 0;
  const hex = (length: number): Hex => {
    if (at + length > bytes.length) throw new CurveError('malformed_post', `record at byte ${recordAt} is cut short`);
    at += length;
    return bytesToHex(bytes.subarray(at - length, at));
  };
  const int = (length: number): number => toSafeInt(BigInt(hex(length)));
  const words = (count: number): bigint[] => Array.from({ length: count }, () => BigInt(hex(32)));
  const changes = (mask: number): WordChanges =>
    trimmed(Array.from({ length: MAX_WORDS }, (_, i) => ((mask >> i) & 1 ? BigInt(hex(32)) : null)));
  const record = (): PostRecord => {
    const kind = BigInt(hex(1));
    const head = { marketId: hex(32), seq: int(4), deadlineSec: int(4) };
    if (kind === KINDS.touch) return { kind: 'touch', ...head, baseSeq: int(4) };
    if (kind !== KINDS.full && kind !== KINDS.partial)
      throw new CurveError('malformed_post', `record at byte ${recordAt} has the unknown kind ${kind}`);
    const baseSeq = kind === KINDS.partial ? int(4) : 0;
    const [ask, bid] = [BigInt(hex(12)), BigInt(hex(12))];
    const snapshot: PostSnapshot = {
      snapAskUnits: ask % VOLUME_MODULUS,
      snapBidUnits: bid % VOLUME_MODULUS,
      exactAskKnots: toSafeInt(ask / VOLUME_MODULUS),
      exactBidKnots: toSafeInt(bid / VOLUME_MODULUS),
    };
    const nibbles = int(1);
    const [high, low] = [nibbles >> 4, nibbles & 15];
    if (kind === KINDS.full) return { kind: 'full', ...head, ...snapshot, askWords: words(high), bidWords: words(low) };
    return { kind: 'partial', ...head, baseSeq, ...snapshot, askChanges: changes(high), bidChanges: changes(low) };
  };
  const block = { number: int(6), hash: hex(HASH_BYTES) };
  const records: PostRecord[] = [];
  while (at < bytes.length) {
    recordAt = at;
    records.push(record());
  }
  return { block, records };
}
