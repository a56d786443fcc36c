/** The packed words of docs/architecture.md: sides of a curve, and the two words of a market that swaps and posts write. */
import { toSafeInt } from '../amounts.js';
import { hexToBytes, keccak256 } from '../hash.js';
import type { Hex, Market, Segment, Side } from '../types.js';
import { CurveError } from './errors.js';

export const MAX_WORDS = 4;
export const MAX_SHIFT = 15n;
export const MAX_BASE_PRICE = 2n ** 25n - 1n;
export const MAX_OFFSET = 2n ** 16n - 1n;
export const MAX_MANTISSA = 2n ** 12n - 1n;
export const MAX_EXPONENT = 15n;
/** Longest segment that one knot can hold. */
export const MAX_LENGTH_LOTS = MAX_MANTISSA << MAX_EXPONENT;
/** The volumes in a post, and a walk's starting offset, are taken modulo this. */
export const VOLUME_MODULUS = 2n ** 92n;

const KNOT_BITS = 32n;
const KNOTS_IN_FIRST_WORD = 7;
const KNOTS_IN_WORD = 8;

/** A segment as packed: (mantissa << exponent) lots, `offset` quanta away from the side's base price. */
export interface Knot {
  mantissa: bigint;
  exponent: bigint;
  offset: bigint;
}

/** One side as packed. A quantum is 2^shift subticks; basePrice counts quanta. */
export interface PackedSide {
  shift: bigint;
  basePrice: bigint;
  knots: Knot[];
}

/** The word that swaps write. Volumes are cumulative base units taken, modulo 2^96. */
interface SwapWord {
  cumAsk: bigint;
  cumBid: bigint;
  fillSeq: bigint;
  lotExponent: bigint;
  tickLotMantissa: bigint;
  tickLotExponent: bigint;
  flags: bigint;
}

/** The word that posts write. */
interface PostWord {
  snapAsk: bigint;
  snapBid: bigint;
  maxTtlSec: bigint;
  deadlineSec: bigint;
  seq: bigint;
}

type Field<T> = readonly [name: keyof T & string, bits: number];

const SWAP_FIELDS: readonly Field<SwapWord>[] = [
  ['cumAsk', 96],
  ['cumBid', 96],
  ['fillSeq', 40],
  ['lotExponent', 5],
  ['tickLotMantissa', 10],
  ['tickLotExponent', 5],
  ['flags', 4],
];
const POST_FIELDS: readonly Field<PostWord>[] = [
  ['snapAsk', 92],
  ['snapBid', 92],
  ['maxTtlSec', 8],
  ['deadlineSec', 32],
  ['seq', 32],
];

function packFields<T extends Record<keyof T, bigint>>(fields: readonly Field<T>[], values: T): bigint {
  return fields.reduce((word, [name, bits]) => (word << BigInt(bits)) | field(name, values[name], bits), 0n);
}

function unpackFields<T>(fields: readonly Field<T>[], word: bigint): T {
  const values: Record<string, bigint> = {};
  let rest = word;
  for (const [name, bits] of [...fields].reverse()) {
    values[name] = BigInt.asUintN(bits, rest);
    rest >>= BigInt(bits);
  }
  return values as T;
}

/** `value` if it fits in `bits`. Throws CurveError `field_overflow`. */
function field(name: string, value: bigint, bits: number): bigint {
  if (value < 0n || value >> BigInt(bits) !== 0n) {
    throw new CurveError('field_overflow', `${name} must fit in ${bits} bits, not ${value}`);
  }
  return value;
}

/** Packs the word that swaps write. Throws CurveError `field_overflow`. */
export const packSwapWord = (values: SwapWord): bigint => packFields(SWAP_FIELDS, values);
/** Inverse of packSwapWord. */
export const unpackSwapWord = (word: bigint): SwapWord => unpackFields(SWAP_FIELDS, word);
/** Packs the word that posts write. Throws CurveError `field_overflow`. */
export const packPostWord = (values: PostWord): bigint => packFields(POST_FIELDS, values);
/** Inverse of packPostWord. */
export const unpackPostWord = (word: bigint): PostWord => unpackFields(POST_FIELDS, word);

/** Words that `knots` knots take: none for none, else 1 for up to 7, and one more for each 8 after that. */
export function wordsFor(knots: number): number {
  return knots === 0 ? 0 : 1 + Math.ceil(Math.max(0, knots - KNOTS_IN_FIRST_WORD) / KNOTS_IN_WORD);
}

/** Most knots that so many words hold. */
export function knotsIn(words: number): number {
  return words === 0 ? 0 : KNOTS_IN_FIRST_WORD + KNOTS_IN_WORD * (words - 1);
}

/** Packs one side into as few words as it needs; no words for an empty side. Throws CurveError when something does not fit. */
export function packSide(side: PackedSide): bigint[] {
  const count = wordsFor(side.knots.length);
  if (count > MAX_WORDS)
    throw new CurveError('too_many_knots', `${side.knots.length} knots, at most ${knotsIn(MAX_WORDS)}`);
  if (count === 0) return [];
  const head = (field('g', side.shift, 4) << 28n) | (BigInt(count) << 25n) | field('base price', side.basePrice, 25);
  const slots = [head, ...side.knots.map(packKnot)];
  return Array.from({ length: count }, (_, word) => {
    let packed = 0n;
    for (let i = 0; i < KNOTS_IN_WORD; i++) packed = (packed << KNOT_BITS) | (slots[word * KNOTS_IN_WORD + i] ?? 0n);
    return packed;
  });
}

function packKnot(knot: Knot): bigint {
  if (knot.mantissa === 0n) throw new CurveError('empty_knot', 'a zero mantissa ends a side, so no knot can have it');
  return (
    (field('mantissa', knot.mantissa, 12) << 20n) |
    (field('exponent', knot.exponent, 4) << 16n) |
    field('offset', knot.offset, 16)
  );
}

/**
 * Reads one side as a walk does: as many words as the first one says, up to the first knot of zero mantissa. Throws CurveError
 * `missing_words` when fewer words are given than the first one says.
 */
export function unpackSide(words: readonly bigint[]): PackedSide {
  const first = words[0] ?? 0n;
  const used = Math.min(toSafeInt((first >> 249n) & 7n), MAX_WORDS);
  const side: PackedSide = { shift: first >> 252n, basePrice: (first >> 224n) & MAX_BASE_PRICE, knots: [] };
  if (words.length < used) throw new CurveError('missing_words', `${used} words used, ${words.length} given`);
  for (let slot = 1; slot < used * KNOTS_IN_WORD; slot++) {
    const knot = unpackKnot(words[Math.floor(slot / KNOTS_IN_WORD)] ?? 0n, slot % KNOTS_IN_WORD);
    if (knot.mantissa === 0n) break;
    side.knots.push(knot);
  }
  return side;
}

function unpackKnot(word: bigint, slot: number): Knot {
  const bits = BigInt.asUintN(32, word >> (KNOT_BITS * BigInt(KNOTS_IN_WORD - 1 - slot)));
  return { mantissa: bits >> 20n, exponent: (bits >> 16n) & MAX_EXPONENT, offset: bits & MAX_OFFSET };
}

/** Lots of a knot. */
function lengthLots(knot: Knot): bigint {
  return knot.mantissa << knot.exponent;
}

/** Price of a knot in subticks; zero or less on a bid that has no positive price. */
function knotSubticks(packed: PackedSide, side: Side, knot: Knot): bigint {
  const quanta = side === 'ask' ? packed.basePrice + knot.offset : packed.basePrice - knot.offset;
  return quanta << packed.shift;
}

/** The segments that a walk meets on one side, best price first. A price that is not positive ends the side. */
export function decodeSide(market: Pick<Market, 'lotUnits'>, side: Side, words: readonly bigint[]): Segment[] {
  const packed = unpackSide(words);
  const segments: Segment[] = [];
  for (const knot of packed.knots) {
    const subticks = knotSubticks(packed, side, knot);
    if (subticks <= 0n) break;
    segments.push({ lengthUnits: lengthLots(knot) * market.lotUnits, subticks });
  }
  return segments;
}

/** How many words the first word of a side says that the side has, 0..7; zero for the zero word of an empty side. */
export function wordsUsed(firstWord: bigint): number {
  return toSafeInt((firstWord >> 249n) & 7n);
}

/** keccak256 over ask words, then bid words, as CurvePosted reports it. */
export function wordsHash(askWords: readonly bigint[], bidWords: readonly bigint[]): Hex {
  return keccak256(hexToBytes(`0x${[...askWords, ...bidWords].map((word) => bigHex(word, 32)).join('')}`));
}

/** Big-endian hex of `bytes` bytes, without 0x. Throws CurveError `field_overflow`. */
export function bigHex(value: bigint, bytes: number): string {
  return field('value', value, bytes * 8)
    .toString(16)
    .padStart(bytes * 2, '0');
}
