/**
 * What a record costs, as far as full and partial posts of the same curve differ. The figures are those of the protocol's price list: a
 * cold slot that changes costs 5,000, one that is written as it was 2,200, one that is only read 2,100.
 */
import { encodePost, wordChanges, type BlockRef, type FullPost, type PartialPost } from '../../core/curve/post.js';
import { toSafeInt } from '../../core/amounts.js';

const SLOT_CHANGED = 5_000;
const SLOT_REWRITTEN = 2_200;
const SLOT_READ = 2_100;
/** Measured: what a partial post executes beyond a full one, per record and per word of the curve. */
const PARTIAL_RECORD = 700;
const PARTIAL_WORD = 90;
const ZERO_BYTE = 4;
const OTHER_BYTE = 16;

/** Gas for the bytes of call data. */
export function calldataGas(hex: string): number {
  let gas = 0;
  for (let i = 2; i < hex.length; i += 2) gas += hex.startsWith('00', i) ? ZERO_BYTE : OTHER_BYTE;
  return gas;
}

/** A curve, and the live one that it may amend. */
export interface WordsBefore {
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

/** The cheaper of a full post and a partial one over the live curve, by the estimate. */
export function cheaperPost(block: BlockRef, full: FullPost, before: WordsBefore): FullPost | PartialPost {
  const partial = partialOf(full, before);
  return partialGas(block, partial, full) < fullGas(block, full, before) ? partial : full;
}

function fullGas(block: BlockRef, full: FullPost, before: WordsBefore): number {
  const slots = [slotGas(full.askWords, before.askWords), slotGas(full.bidWords, before.bidWords)];
  return slots.reduce((sum, gas) => sum + gas, calldataGas(encodePost(block, [full])));
}

function slotGas(words: readonly bigint[], before: readonly bigint[]): number {
  // An empty side is one zero word.
  const written = words.length === 0 ? [0n] : words;
  return written.reduce((gas, word, i) => gas + (word === (before[i] ?? 0n) ? SLOT_REWRITTEN : SLOT_CHANGED), 0);
}

function partialGas(block: BlockRef, partial: PartialPost, full: FullPost): number {
  const changed = [...partial.askChanges, ...partial.bidChanges].filter((word) => word !== null).length;
  const words = Math.max(1, full.askWords.length) + Math.max(1, full.bidWords.length);
  const slots = changed * SLOT_CHANGED + Math.max(0, words - changed) * SLOT_READ;
  return slots + words * PARTIAL_WORD + PARTIAL_RECORD + calldataGas(encodePost(block, [partial]));
}

/** Gas limit of a transaction with these records: room for slots that are written for the first time, and for a retry's overhead. */
export function gasLimitOf(records: readonly unknown[]): bigint {
  return 150_000n + 250_000n * BigInt(records.length);
}

/** Fee in wei as a receipt says it, the data fee of a rollup included. */
export function feeOf(receipt: { gasUsed: string; effectiveGasPrice: string; l1Fee?: string | null }): {
  gasUsed: number;
  feeWei: bigint;
} {
  const gasUsed = BigInt(receipt.gasUsed);
  return {
    gasUsed: toSafeInt(gasUsed),
    feeWei: gasUsed * BigInt(receipt.effectiveGasPrice) + BigInt(receipt.l1Fee ?? '0x0'),
  };
}
