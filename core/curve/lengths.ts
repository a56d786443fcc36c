/**
 * How many lots each segment of a side has, rounded to what a knot can hold: 12 bits of mantissa.
 *
 * The first level, or the first few where it is tiny, gets a segment of its own, so that what is taken of it between the cut and the post
 * of a curve withholds nothing (see carry.ts). From there on, lengths are rounded down from the last segment to the first, each adding what
 * it lost to the segment before it, so that knots hardly move and hardly any depth is lost.
 */
import { minBig, toSafeInt } from '../amounts.js';
import type { Side } from '../types.js';
import { chooseKnots, costsOf, reachableLots, type FloatLevel, type KnotLimits } from './knots.js';
import { totalLots, type Level } from './levels.js';
import { MAX_EXPONENT, MAX_LENGTH_LOTS, MAX_MANTISSA, type Knot } from './words.js';

/** The length of a segment as packed. */
export type Length = Pick<Knot, 'mantissa' | 'exponent'>;

/** Lots of a length. */
export function lotsOf(length: Length): bigint {
  return length.mantissa << length.exponent;
}

/** Lots of all lengths. */
export const sumLots = (lengths: readonly Length[]): bigint =>
  lengths.reduce((sum, length) => sum + lotsOf(length), 0n);

/** Levels in floating point, for placing knots; the caller bounds their prices and lots so that they are exact. */
export function floatLevels(side: Side, levels: readonly Level[]): FloatLevel[] {
  const sign = side === 'ask' ? 1 : -1;
  return levels.map(({ priceTicks, lots }) => ({ price: sign * toSafeInt(priceTicks), lots: toSafeInt(lots) }));
}

/**
 * Leading levels get segments of their own until together they hold one part in so many of the depth, if few enough levels do; else only
 * the first level does.
 */
const LEADING_PART = 2_000;
const mostLeading = (maxKnots: number): number => Math.min(3, Math.max(1, maxKnots >> 2));
const MAX_LOTS = toSafeInt(MAX_LENGTH_LOTS);

/** How many leading levels get a segment each; none where the other segments could then not hold the rest of the depth. */
function leadingLevels(levels: readonly FloatLevel[], maxKnots: number): number {
  const depth = levels.reduce((sum, { lots }) => sum + lots, 0);
  let ownLots = 0;
  const reached = levels
    .slice(0, mostLeading(maxKnots))
    .findIndex(({ lots }) => (ownLots += lots) * LEADING_PART >= depth);
  const own = levels.slice(0, Math.min(reached < 0 ? 1 : reached + 1, maxKnots - 1));
  const rest = own.reduce((left, { lots }) => left - lots, depth);
  const fit = own.every(({ lots }) => lots <= MAX_LOTS) && rest <= (maxKnots - own.length) * MAX_LOTS;
  return fit ? own.length : 0;
}

/**
 * Where the segments of a side end before rounding, in lots from its first one. The depth must be at most maxKnots x MAX_LENGTH_LOTS.
 * `limits` are those of `followableLevels`.
 */
export function placeKnots(levels: readonly FloatLevel[], maxKnots: number, limits?: KnotLimits): number[] {
  return chooseKnots(levels, maxKnots, MAX_LOTS, limits ?? { ownLevels: leadingLevels(levels, maxKnots) });
}

/** Part of the maximum error that knots may use up; the rest is left for rounding. */
const ERROR_MARGIN = 0.9;

/**
 * The levels of a side, from its best price on, that so many segments can follow within this error at every size, and the limits for
 * placing their knots. A segment always reaches at least as far as prices get worse by the error, whatever the sizes of the levels are.
 */
export function followableLevels(
  side: Side,
  levels: readonly Level[],
  maxKnots: number,
  maxError: number,
): { levels: Level[]; limits: KnotLimits } {
  const floats = floatLevels(side, levels);
  const limits = { ownLevels: leadingLevels(floats, maxKnots), maxError: maxError * ERROR_MARGIN };
  // One knot less, since rounding may need one.
  const knots = Math.max(1, maxKnots - 1);
  let left = BigInt(reachableLots(floats, knots, MAX_LOTS, limits));
  const followable: Level[] = [];
  for (const { priceTicks, lots } of levels) {
    if (left === 0n) break;
    followable.push({ priceTicks, lots: minBig(lots, left) });
    left -= minBig(lots, left);
  }
  return { levels: followable, limits };
}

/** Rounding may lose one part in so many of the depth: 0.05 bps. */
const NEGLIGIBLE_LOSS = 200_000n;
/** From so many levels on, one knot less costs little. */
const MANY_LEVELS = 100;

/**
 * Lengths of the segments, at most `maxKnots`. Where rounding would lose more than a negligible part of the depth, as it may before a very
 * large level, the lost lots get a segment of their own, if a knot is left or if there are so many levels that one knot less costs little.
 */
export function chooseLengths(side: Side, levels: readonly Level[], maxKnots: number, limits?: KnotLimits): Length[] {
  const depth = totalLots(levels);
  const floats = floatLevels(side, levels);
  const ends = placeKnots(floats, maxKnots, limits);
  const spare = maxKnots - ends.length;
  const isLost = ({ lengths }: Packed): boolean => (depth - sumLots(lengths)) * NEGLIGIBLE_LOSS > depth;
  const harmlessError = harmlessErrorOf(limits);
  let packed = packLengths(floats, ends, { forLevels: spare, inAll: spare, harmlessError });
  // Spare knots serve lost depth before they serve leading levels behind the first one.
  if (isLost(packed) && packed.lengths.length === maxKnots) {
    packed = packLengths(floats, ends, { forLevels: 0, inAll: spare, harmlessError });
  }
  if (isLost(packed) && packed.lengths.length === maxKnots && maxKnots > 1 && levels.length >= MANY_LEVELS) {
    const fewer = placeKnots(floats, maxKnots - 1, limits);
    packed = packLengths(floats, fewer, { forLevels: 0, inAll: 1, harmlessError });
  }
  return isLost(packed) && packed.lengths.length < maxKnots ? withLost(packed, depth) : packed.lengths;
}

/** Lengths, and how many leading ones have lots of a single level each. */
interface Packed {
  lengths: Length[];
  exact: number;
}

/** What rounding may use: spare knots for leading levels, spare knots in all, and the error that moving a knot may add. */
interface Rounding {
  forLevels: number;
  inAll: number;
  harmlessError: number;
}

/** The lost lots come right after the exact segments, so that these stay exact. */
function withLost({ lengths, exact }: Packed, depth: bigint): Length[] {
  return [...lengths.slice(0, exact), packLength(depth - sumLots(lengths)), ...lengths.slice(exact)];
}

/**
 * Lengths of segments that end at `ends` before rounding. Leading levels with a segment each are written whole, in as many lengths as they take,
 * while the spare knots for that last. The next of them, at the latest the last one before a chord, may lose its last lots to the segment after it.
 */
function packLengths(floats: readonly FloatLevel[], ends: readonly number[], rounding: Rounding): Packed {
  const chords = chordsOf(floats, ends);
  const chord = chords.findIndex(({ lots }, i) => toSafeInt(lots) !== floats[i]?.lots);
  const parts = chords.slice(0, chord < 0 ? chords.length : chord).map(({ lots }) => partsOf(lots));
  const written = (count: number): Length[] => parts.slice(0, count).flat();
  const extra = (count: number): number => written(count).length - count;
  if (chord < 0 && extra(chords.length) <= rounding.forLevels) {
    return { lengths: written(chords.length), exact: chords.length };
  }
  const last = (chord < 0 ? chords.length - 1 : chord) - 1;
  let whole = 0;
  while (whole < last && extra(whole + 1) <= rounding.forLevels) whole++;
  const inLevel = whole <= last;
  const left = { ...rounding, inAll: rounding.inAll - extra(whole) };
  const rest = packDown(chords.slice(whole), inLevel, left);
  return { lengths: [...written(whole), ...rest], exact: written(whole).length + (inLevel ? 1 : 0) };
}

/** A segment before rounding: its lots, their mean price, and the cost of all lots before them. */
interface Chord {
  lots: bigint;
  price: number;
  costBefore: number;
}

function chordsOf(levels: readonly FloatLevel[], ends: readonly number[]): Chord[] {
  const costs = costsOf(levels, ends);
  return ends.map((end, i) => {
    const [from, costBefore] = [ends[i - 1] ?? 0, costs[i - 1] ?? 0];
    return { lots: BigInt(end - from), price: ((costs[i] ?? 0) - costBefore) / (end - from), costBefore };
  });
}

/** What moving a knot may add to the error there, relative to the cost: 1 bps, and no more than the room below the maximum error. */
const harmlessErrorOf = (limits: KnotLimits | undefined): number =>
  Math.min(1e-4, (limits?.maxError ?? Infinity) * (1 / ERROR_MARGIN - 1));

/** Whether moving the knot between two segments by so many lots adds at most this error, relative to the cost there. */
const isHarmless = (lots: bigint, before: Chord, after: Chord, error: number): boolean =>
  toSafeInt(lots) * (after.price - before.price) <= error * Math.abs(after.costBefore);

/** Lengths that have exactly so many lots together. */
function partsOf(lots: bigint): Length[] {
  const parts: Length[] = [];
  for (let left = lots; left > 0n; left -= lotsOf(parts.at(-1)!)) parts.push(packLength(left));
  return parts;
}

/**
 * Rounds lengths down from the last to the first. What a segment loses is added to the one before it; where that would add too much error,
 * as between a small segment and a very large level far away, it gets one of the spare knots, and is lost if there is none. With `inLevel`
 * the first segment must not grow, since it lies within a level: the second one is rounded up and takes what it needs from the level.
 */
function packDown(chords: readonly Chord[], inLevel: boolean, { inAll, harmlessError }: Rounding): Length[] {
  const packed: Length[] = [];
  let [carried, free] = [0n, inAll];
  for (let i = chords.length - 1; i > 0; i--) {
    const [before, chord] = [chords[i - 1] as Chord, chords[i] as Chord];
    const intoLevel = inLevel && i === 1;
    const wanted = chord.lots + carried;
    const down = packLength(wanted);
    const up = { mantissa: down.mantissa + 1n, exponent: down.exponent };
    carried = wanted - lotsOf(down);
    const taken = lotsOf(up) - wanted;
    const fits = up.mantissa <= MAX_MANTISSA && taken < before.lots;
    if (intoLevel && carried > 0n && fits && isHarmless(taken, before, chord, harmlessError)) {
      packed.push(up);
      carried = -taken;
      continue;
    }
    packed.push(down);
    if (carried === 0n || (!intoLevel && isHarmless(carried, before, chord, harmlessError))) continue;
    if (free > 0) packed.push(packLength(carried));
    free -= 1;
    carried = 0n;
  }
  if (chords[0] !== undefined) packed.push(packLength(chords[0].lots + carried));
  return packed.reverse();
}

/** The longest length of at most so many lots. */
function packLength(lots: bigint): Length {
  let mantissa = minBig(lots, MAX_LENGTH_LOTS);
  let exponent = 0n;
  while (mantissa > MAX_MANTISSA && exponent < MAX_EXPONENT) {
    mantissa >>= 1n;
    exponent += 1n;
  }
  return { mantissa, exponent };
}
