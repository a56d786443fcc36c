/** The packed form of posts: a block reference, then one record per market. */
import { toSafeInt } from '../amounts.js';
import { bytesToHex, hexToBytes } from '../hash.js';
import type { Hex } from '../types.js';
import { CurveError } from './errors.js';
import { bigHex, MAX_WORDS, VOLUME_MODULUS } from './words.js';

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

/** A new curve. Volumes are cumulative base units taken that the snapshot already reflects; they go on-chain modulo 2^92. */
export interface FullPost extends PostHead {
  kind: 'full';
  snapAskUnits: bigint;
  snapBidUnits: bigint;
  askWords: readonly bigint[];
  bidWords: readonly bigint[];
}

/** A new deadline for the live curve `baseSeq`. */
export interface TouchPost extends PostHead {
  kind: 'touch';
  baseSeq: number;
}

export type PostRecord = FullPost | TouchPost;

const KIND_FULL = 1n;
const KIND_TOUCH = 2n;
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
  const kind = record.kind === 'full' ? KIND_FULL : KIND_TOUCH;
  const head =
    bigHex(kind, 1) +
    record.marketId.slice(2).toLowerCase() +
    bigHex(BigInt(record.seq), 4) +
    bigHex(BigInt(record.deadlineSec), 4);
  return head + (record.kind === 'full' ? fullBody(record) : bigHex(BigInt(record.baseSeq), 4));
}

function fullBody({ snapAskUnits, snapBidUnits, askWords, bidWords }: FullPost): string {
  if (askWords.length > MAX_WORDS || bidWords.length > MAX_WORDS) {
    throw new CurveError('too_many_words', `at most ${MAX_WORDS} words a side`);
  }
  return (
    bigHex(snapAskUnits % VOLUME_MODULUS, 12) +
    bigHex(snapBidUnits % VOLUME_MODULUS, 12) +
    bigHex(BigInt(askWords.length * 16 + bidWords.length), 1) +
    [...askWords, ...bidWords].map((word) => bigHex(word, 32)).join('')
  );
}

/** A post read back; `hash` has the 12 bytes that a post carries. */
export interface DecodedPost {
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
  const record = (): PostRecord => {
    const kind = BigInt(hex(1));
    const head = { marketId: hex(32), seq: int(4), deadlineSec: int(4) };
    if (kind === KIND_TOUCH) return { kind: 'touch', ...head, baseSeq: int(4) };
    if (kind !== KIND_FULL)
      throw new CurveError('malformed_post', `record at byte ${recordAt} has the unknown kind ${kind}`);
    const volumes = { snapAskUnits: BigInt(hex(12)), snapBidUnits: BigInt(hex(12)) };
    const counts = int(1);
    return { kind: 'full', ...head, ...volumes, askWords: words(counts >> 4), bidWords: words(counts & 15) };
  };
  const block = { number: int(6), hash: hex(HASH_BYTES) };
  const records: PostRecord[] = [];
  while (at < bytes.length) {
    recordAt = at;
    records.push(record());
  }
  return { block, records };
}
