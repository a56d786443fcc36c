/**
 * One side of the book as at most K segments: chords of its exact cost, never better than the book from its first lot on.
 *
 * Knots come from knots.ts; everything here is exact. Lengths are rounded down to what a knot can say, from the last segment to the first,
 * each handing what it lost to the one before it, so that only the first one loses depth. Slopes are those of the chords between the points
 * that the rounded lengths really reach, rounded up on asks and down on bids. Both roundings keep the order of the slopes.
 */
import { ceilDiv, minBig, toSafeInt } from '../amounts.js';
import { MAX_PRICE_TICKS, SUBTICKS_PER_TICK } from '../market.js';
import type { Market, Segment, Side } from '../types.js';
import { CurveError } from './errors.js';
import { chooseKnots } from './knots.js';
import { totalLots, type Level } from './levels.js';
import {
  decodeSide,
  knotsIn,
  MAX_BASE_PRICE,
  MAX_EXPONENT,
  MAX_LENGTH_LOTS,
  MAX_MANTISSA,
  MAX_OFFSET,
  MAX_SHIFT,
  MAX_WORDS,
  packSide,
  type Knot,
} from './words.js';

export const MAX_KNOTS = knotsIn(MAX_WORDS);

/** One side, packed and as a walk meets it. */
export interface CompressedSide {
  words: bigint[];
  segments: Segment[];
  /** Lots of the levels that the segments do not offer: too far from the best price, too deep, or lost to rounding. */
  leftOutLots: bigint;
}

/**
 * Compresses levels (best price first, prices strictly ordered) into at most `maxKnots` segments. Levels too far away are left out: the
 * quantum of prices stays below 1/65536 of the best price, so asks and bids up to at least half the best price away always have a place.
 * Throws CurveError `bad_max_knots`.
 */
export function compressSide(
  market: Pick<Market, 'lotUnits'>,
  side: Side,
  levels: readonly Level[],
  maxKnots: number,
): CompressedSide {
  if (!Number.isInteger(maxKnots) || maxKnots < 1 || maxKnots > MAX_KNOTS) {
    throw new CurveError('bad_max_knots', `maxKnots must be 1..${MAX_KNOTS}, not ${maxKnots}`);
  }
  const kept = withinReach(levels, BigInt(maxKnots) * MAX_LENGTH_LOTS);
  const lengths = packLengths(placeKnots(side, kept, maxKnots));
  const words = packChords(side, lengths, chordCosts(kept, lengths));
  const segments = decodeSide(market, side, words);
  const offered = lengths.reduce((sum, length) => sum + lotsOf(length), 0n);
  return { words, segments, leftOutLots: totalLots(levels) - offered };
}

/** The levels whose prices and lots have a place in packed words; the last one may be cut. */
function withinReach(levels: readonly Level[], maxDepthLots: bigint): Level[] {
  const kept: Level[] = [];
  const usable = levels.filter(({ priceTicks, lots }) => lots > 0n && priceTicks > 0n && priceTicks <= MAX_PRICE_TICKS);
  const bestSubticks = (usable[0]?.priceTicks ?? 0n) * SUBTICKS_PER_TICK;
  // One quantum less than the widest offset, because rounding may move the two ends of the side one quantum apart.
  const reachSubticks = (MAX_OFFSET - 1n) << coarsestShift(bestSubticks);
  let free = maxDepthLots;
  for (const { priceTicks, lots } of usable) {
    const away = priceTicks * SUBTICKS_PER_TICK - bestSubticks;
    if (free === 0n || away > reachSubticks || -away > reachSubticks) break;
    kept.push({ priceTicks, lots: minBig(lots, free) });
    free -= minBig(lots, free);
  }
  return kept;
}

/** The coarsest quantum, 2^shift subticks, that is at most 1/65536 of the best price; 1 subtick for prices below 65536 subticks. */
function coarsestShift(bestSubticks: bigint): bigint {
  const bits = BigInt(bestSubticks.toString(2).length);
  return minBig(bits > 17n ? bits - 17n : 0n, MAX_SHIFT);
}

/** Lots of each segment, before they are rounded to what a knot can say. */
function placeKnots(side: Side, levels: readonly Level[], maxKnots: number): bigint[] {
  const sign = side === 'ask' ? 1 : -1;
  const floats = levels.map(({ priceTicks, lots }) => ({ price: sign * toSafeInt(priceTicks), lots: toSafeInt(lots) }));
  const ends = chooseKnots(floats, maxKnots, toSafeInt(MAX_LENGTH_LOTS)).map(BigInt);
  return ends.map((end, i) => end - (ends[i - 1] ?? 0n));
}

type Length = Pick<Knot, 'mantissa' | 'exponent'>;

function lotsOf(length: Length): bigint {
  return length.mantissa << length.exponent;
}

/** Rounds lengths down from the last to the first; what a segment loses is added to the one before it. */
function packLengths(lots: readonly bigint[]): Length[] {
  const packed: Length[] = [];
  let carried = 0n;
  for (const wanted of [...lots].reverse()) {
    const length = packLength(wanted + carried);
    carried += wanted - lotsOf(length);
    packed.push(length);
  }
  return packed.reverse();
}

function packLength(lots: bigint): Length {
  let mantissa = minBig(lots, MAX_LENGTH_LOTS);
  let exponent = 0n;
  while (mantissa > MAX_MANTISSA && exponent < MAX_EXPONENT) {
    mantissa >>= 1n;
    exponent += 1n;
  }
  return { mantissa, exponent };
}

/** Exact cost of each segment's lots in the book, in subticks x lots. */
function chordCosts(levels: readonly Level[], lengths: readonly Length[]): bigint[] {
  let level = 0;
  let left = levels[0]?.lots ?? 0n;
  return lengths.map((length) => {
    let cost = 0n;
    for (let lots = lotsOf(length); lots > 0n;) {
      if (left === 0n) left = levels[++level]?.lots ?? 0n;
      const here = levels[level];
      if (here === undefined)
        throw new CurveError('beyond_depth', 'segments are longer than the levels they come from');
      const taken = minBig(lots, left);
      cost += taken * here.priceTicks * SUBTICKS_PER_TICK;
      lots -= taken;
      left -= taken;
    }
    return cost;
  });
}

/** Packs chords with the finest quantum in which all their prices have a place. */
function packChords(side: Side, lengths: readonly Length[], costs: readonly bigint[]): bigint[] {
  if (lengths.length === 0) return [];
  for (let shift = 0n; shift <= MAX_SHIFT; shift++) {
    const prices = lengths.map((length, i) => {
      const divisor = lotsOf(length) << shift;
      return side === 'ask' ? ceilDiv(costs[i] ?? 0n, divisor) : (costs[i] ?? 0n) / divisor;
    });
    const basePrice = prices[0] ?? 0n;
    const offsets = prices.map((price) => (side === 'ask' ? price - basePrice : basePrice - price));
    if (basePrice > MAX_BASE_PRICE || (offsets.at(-1) ?? 0n) > MAX_OFFSET) continue;
    return packSide({ shift, basePrice, knots: lengths.map((length, i) => ({ ...length, offset: offsets[i] ?? 0n })) });
  }
  throw new CurveError('out_of_range', 'the prices of a side have no place in packed words');
}
