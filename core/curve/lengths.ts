/**
 * Which lots each segment of a side has, as a knot can say them: 12 bits of mantissa.
 *
 * The first level, or the first few where it is tiny, gets a segment of its own, so that what is taken of it between the cut and the post
 * of a curve withholds nothing (see carry.ts). From there on, lengths are rounded down from the last segment to the first, each handing what it
 * lost to the one before it, so that knots stay where they are and hardly any depth is lost.
 */
import { minBig, toSafeInt } from '../amounts.js';
import type { Side } from '../types.js';
import { chooseKnots, type FloatLevel } from './knots.js';
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

/** Levels as knots are placed on them; the caller bounds their prices and lots. */
export function floatLevels(side: Side, levels: readonly Level[]): FloatLevel[] {
  const sign = side === 'ask' ? 1 : -1;
  return levels.map(({ priceTicks, lots }) => ({ price: sign * toSafeInt(priceTicks), lots: toSafeInt(lots) }));
}

/** Leading levels get segments of their own until they hold this part of the depth, if so few of them do; else the first one alone. */
const LEADING_PART = 2_000n;
const mostLeading = (maxKnots: number): number => Math.min(3, Math.max(1, maxKnots >> 2));

/** How many leading levels get a segment each; none where the other segments could then not hold the rest of the depth. */
function leadingLevels(levels: readonly Level[], maxKnots: number): number {
  const depth = totalLots(levels);
  let lots = 0n;
  const reached = levels
    .slice(0, mostLeading(maxKnots))
    .findIndex((level) => (lots += level.lots) * LEADING_PART >= depth);
  const leading = Math.min(reached < 0 ? 1 : reached + 1, maxKnots - 1);
  const own = levels.slice(0, leading);
  const fit =
    own.every((level) => level.lots <= MAX_LENGTH_LOTS) &&
    depth - totalLots(own) <= BigInt(maxKnots - leading) * MAX_LENGTH_LOTS;
  return fit ? leading : 0;
}

/**
 * Where the segments of a side end before rounding, in lots from its first one. The depth must be at most maxKnots x MAX_LENGTH_LOTS.
 */
export function placeKnots(side: Side, levels: readonly Level[], maxKnots: number): number[] {
  return chooseKnots(floatLevels(side, levels), maxKnots, toSafeInt(MAX_LENGTH_LOTS), leadingLevels(levels, maxKnots));
}

/** A part of the depth that may be lost to rounding: 0.05 bps. */
const NEGLIGIBLE_LOSS = 200_000n;
/** From so many levels on, one knot less costs little. */
const MANY_LEVELS = 100;

/**
 * Lengths of the segments, at most `maxKnots`. Where rounding would lose more than a negligible part of the depth, as it may before a
 * wall, what it lost gets a segment of its own, if there is one to spare or levels enough to do with one less.
 */
export function chooseLengths(side: Side, levels: readonly Level[], maxKnots: number): Length[] {
  const depth = totalLots(levels);
  const ends = placeKnots(side, levels, maxKnots);
  let packed = packLengths(levels, ends, maxKnots - ends.length);
  let lost = depth - sumLots(packed.lengths);
  // Knots to spare are better used for what would be lost than for levels behind the first one.
  if (lost * NEGLIGIBLE_LOSS > depth && packed.lengths.length === maxKnots) {
    packed = packLengths(levels, ends, 0);
    lost = depth - sumLots(packed.lengths);
  }
  if (lost * NEGLIGIBLE_LOSS <= depth || maxKnots === 1) return packed.lengths;
  if (packed.lengths.length < maxKnots) return withLost(packed, lost);
  if (levels.length < MANY_LEVELS) return packed.lengths;
  const fewer = packLengths(levels, placeKnots(side, levels, maxKnots - 1), 0);
  return withLost(fewer, depth - sumLots(fewer.lengths));
}

/** Lengths, and how many leading ones have lots of a single level each. */
interface Packed {
  lengths: Length[];
  exact: number;
}

/** What was lost comes after the exact segments, which it leaves where they are. */
function withLost({ lengths, exact }: Packed, lost: bigint): Length[] {
  return lost === 0n ? lengths : [...lengths.slice(0, exact), packLength(lost), ...lengths.slice(exact)];
}

/**
 * Lengths of segments that end at `ends` before rounding. Leading levels with a segment each are written whole, in as many lengths as they take,
 * while `spare` knots last. The next of them, at the latest the last one before a chord, may lose its last lots to the segment after it.
 */
function packLengths(levels: readonly Level[], ends: readonly number[], spare: number): Packed {
  const lots = ends.map((end, i) => BigInt(end - (ends[i - 1] ?? 0)));
  const chord = lots.findIndex((wanted, i) => wanted !== levels[i]?.lots);
  const parts = lots.slice(0, chord < 0 ? lots.length : chord).map(partsOf);
  const written = (count: number): Length[] => parts.slice(0, count).flat();
  const fit = (count: number): boolean => written(count).length - count <= spare;
  if (chord < 0 && fit(lots.length)) return { lengths: written(lots.length), exact: lots.length };
  const last = (chord < 0 ? lots.length - 1 : chord) - 1;
  let whole = 0;
  while (whole < last && fit(whole + 1)) whole++;
  const inLevel = whole <= last;
  const lengths = [...written(whole), ...packDown(lots.slice(whole), inLevel)];
  return { lengths, exact: written(whole).length + (inLevel ? 1 : 0) };
}

/** Lengths that have exactly so many lots together. */
function partsOf(lots: bigint): Length[] {
  const parts: Length[] = [];
  for (let left = lots; left > 0n; left -= lotsOf(parts.at(-1)!)) parts.push(packLength(left));
  return parts;
}

/**
 * Rounds lengths down from the last to the first; what a segment loses is added to the one before it. With `inLevel` the first one must
 * not grow, since it is a level: the second one is rounded up and takes what it needs from the level, where that has enough.
 */
function packDown(lots: readonly bigint[], inLevel: boolean): Length[] {
  const packed: Length[] = [];
  let carried = 0n;
  for (let i = lots.length - 1; i >= 0; i--) {
    const own = lots[i] ?? 0n;
    const wanted = own + carried;
    const down = packLength(inLevel && i === 0 ? minBig(wanted, own) : wanted);
    const up = { mantissa: down.mantissa + 1n, exponent: down.exponent };
    const roundUp =
      inLevel &&
      i === 1 &&
      lotsOf(down) < wanted &&
      up.mantissa <= MAX_MANTISSA &&
      lotsOf(up) - wanted < (lots[0] ?? 0n);
    const length = roundUp ? up : down;
    carried = wanted - lotsOf(length);
    packed.push(length);
  }
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
