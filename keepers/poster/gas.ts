/**
 * Estimates by how much the gas of full and partial posts of the same curve differs. The figures are measured, `npm run bench:curve` prints
 * them beside this model: a cold slot that is written as it was costs 2,200 gas and one that changes 5,000, each with its part of the loop;
 * a partial post also reads the words that stay, and hashes and checks the curve from storage.
 */
import {
  encodePost,
  wordChanges,
  type BlockRef,
  type FullPost,
  type PartialPost,
  type PostRecord,
} from '../../core/curve/post.js';
import { MAX_WORDS } from '../../core/curve/words.js';

const FULL_WORD = 2_272;
const FULL_CHANGED_WORD = 2_800;
const PARTIAL_RECORD = 2_655;
const PARTIAL_WORD = 2_452;
const PARTIAL_CHANGED_WORD = 3_099;
/**
 * What a rollup charges for a byte of call data beside its gas, as gas: on chain 8453 about 0.036 gwei where gas costs 0.005 gwei, less
 * what compression saves. It only decides between two posts of one effect.
 */
const DATA_BYTE_GAS = 5;
const ZERO_BYTE = 4;
const OTHER_BYTE = 16;

/** Gas for the bytes of call data. */
function calldataGas(hex: string): number {
  let gas = 0;
  for (let i = 2; i < hex.length; i += 2) gas += hex.startsWith('00', i) ? ZERO_BYTE : OTHER_BYTE;
  return gas;
}

/** A curve, and the live one that it may amend. */
interface WordsBefore {
  seq: number;
  askWords: readonly bigint[];
  bidWords: readonly bigint[];
}

/** The partial post that has the effect of a full one over the live curve `before`. */
export function partialOf(full: FullPost, before: WordsBefore): PartialPost {
  const { askWords, bidWords, ...head } = full;
  return {
    ...head,
    kind: 'partial',
    baseSeq: before.seq,
    askChanges: wordChanges(before.askWords, askWords),
    bidChanges: wordChanges(before.bidWords, bidWords),
  };
}

/** The cheaper of a full post and a partial one over the live curve, by the estimate of gas and the price of data. */
export function cheaperPost(block: BlockRef, full: FullPost, before: WordsBefore): FullPost | PartialPost {
  const partial = partialOf(full, before);
  const words = Math.max(1, full.askWords.length) + Math.max(1, full.bidWords.length);
  const changed = [...partial.askChanges, ...partial.bidChanges].filter((word) => word !== null).length;
  const savedGas = fullGas(block, full, words, changed) - partialGas(block, partial, words, changed);
  return savedGas + DATA_BYTE_GAS * (bytesOf(block, full) - bytesOf(block, partial)) > 0 ? partial : full;
}

/** Bytes of the call data that posts this record alone. */
function bytesOf(block: BlockRef, record: FullPost | PartialPost): number {
  return (encodePost(block, [record]).length - 2) / 2;
}

/** Gas of a full post of `words` words, `changed` of them other than before, less what both kinds cost alike. */
export function fullGas(block: BlockRef, full: FullPost, words: number, changed: number): number {
  return words * FULL_WORD + changed * FULL_CHANGED_WORD + calldataGas(encodePost(block, [full]));
}

/** The same for the partial post with the same effect. */
export function partialGas(block: BlockRef, partial: PartialPost, words: number, changed: number): number {
  const execution = PARTIAL_RECORD + words * PARTIAL_WORD + changed * PARTIAL_CHANGED_WORD;
  return execution + calldataGas(encodePost(block, [partial]));
}

/** Most gas that the chain takes in one transaction (EIP-7825). */
export const MAX_TX_GAS = 2n ** 24n;
/** Most records that the contract takes in one batch. */
export const MAX_BATCH = 256;
/** At most, with each slot written for the first time: a transaction, a record in it, and a word of the curve. */
const TX_LIMIT = 60_000n;
const RECORD_LIMIT = 60_000n;
const WORD_LIMIT = 27_000n;
const DATA_BYTE_LIMIT = 40n;

/** Gas limit of one record: what its words take when nothing was ever written there, whatever the curve was before. */
function recordGas(record: PostRecord): bigint {
  if (record.kind === 'touch') return RECORD_LIMIT;
  // A partial post reads the words that it does not send.
  const words =
    record.kind === 'full' ? Math.max(1, record.askWords.length) + Math.max(1, record.bidWords.length) : 2 * MAX_WORDS;
  return RECORD_LIMIT + BigInt(words) * (WORD_LIMIT + 32n * DATA_BYTE_LIMIT);
}

/** Gas limit of a transaction with these records. */
export function gasLimitOf(records: readonly PostRecord[]): bigint {
  return records.reduce((sum, record) => sum + recordGas(record), TX_LIMIT);
}

/** Splits due records, in order, into as few transactions as the gas limit and the contract's limit on records allow. */
export function splitByGas<T extends { record: PostRecord }>(due: readonly T[], maxGas = MAX_TX_GAS): T[][] {
  const batches: T[][] = [];
  let left = 0n;
  for (const one of due) {
    const gas = recordGas(one.record);
    const open = batches.at(-1);
    if (open === undefined || open.length === MAX_BATCH || gas > left) {
      batches.push([one]);
      left = maxGas - TX_LIMIT - gas;
    } else {
      open.push(one);
      left -= gas;
    }
  }
  return batches;
}
