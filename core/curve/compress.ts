/**
 * One side of the book as at most K segments: chords of its exact cost, never better than the book, neither from its first lot nor from the
 * end of any segment on.
 *
 * Knots come from knots.ts and lengths.ts; everything here is exact. Slopes are those of the chords between the ends of the rounded
 * lengths, rounded up on asks and down on bids, which keeps their order.
 */
import { ceilDiv, minBig } from '../amounts.js';
import { MAX_PRICE_TICKS, SUBTICKS_PER_TICK } from '../market.js';
import type { Market, Segment, Side } from '../types.js';
import { PPB_IN_MILLI_BPS, segmentsWithin } from './error.js';
import { CurveError } from './errors.js';
import { knotErrors, type KnotErrors } from './knots.js';
import { chooseLengths, floatLevels, followableLevels, lotsOf, placeKnots, sumLots, type Length } from './lengths.js';
import { totalLots, type Level } from './levels.js';
import {
  decodeSide,
  knotsIn,
  MAX_BASE_PRICE,
  MAX_LENGTH_LOTS,
  MAX_OFFSET,
  MAX_SHIFT,
  MAX_WORDS,
  packSide,
  wordsFor,
} from './words.js';

export const MAX_KNOTS = knotsIn(MAX_WORDS);
/** The quantum of whole ticks: 2^8 subticks. */
const TICK_SHIFT = 8n;
/**
 * Version of the compression. Raised with every change that may give other words for equal levels: a stored curve is compared only with a
 * curve of the same version.
 */
export const COMPRESSION = 4;

/** One side, packed, and the segments that a walk reads from it. */
interface CompressedSide {
  words: bigint[];
  segments: Segment[];
  /** Lots of the levels that the segments do not offer, for any reason. */
  leftOutLots: bigint;
  /** Those of them that were left out because of the maximum error; they are always the farthest ones. */
  unfollowedLots: bigint;
}

/**
 * Compresses levels (best price first, prices strictly ordered) into at most `maxKnots` segments. Levels too far away are left out: the
 * quantum of prices stays below 1/65536 of the best price, so asks and bids up to at least half the best price away always fit. The
 * farthest depth is also left out where the segments would have an error above `maxErrorMilliBps` at any amount; 0 means no maximum. Throws
 * CurveError `bad_max_knots`.
 */
export function compressSide(
  market: Pick<Market, 'lotUnits'>,
  side: Side,
  levels: readonly Level[],
  maxKnots: number,
  maxErrorMilliBps = 0,
): CompressedSide {
  if (!Number.isInteger(maxKnots) || maxKnots < 1 || maxKnots > MAX_KNOTS) {
    throw new CurveError('bad_max_knots', `maxKnots must be 1..${MAX_KNOTS}, not ${maxKnots}`);
  }
  const kept = withinReach(levels, BigInt(maxKnots) * MAX_LENGTH_LOTS);
  const anyError = packSegments(market, side, kept, chooseLengths(side, kept, maxKnots));
  const posted =
    maxErrorMilliBps === 0
      ? anyError
      : packWithin({ market, side, levels: kept, maxKnots }, anyError, maxErrorMilliBps);
  const unfollowed = anyError.lots - posted.lots;
  return {
    words: posted.words,
    segments: posted.segments,
    leftOutLots: totalLots(levels) - posted.lots,
    unfollowedLots: unfollowed > 0n ? unfollowed : 0n,
  };
}

interface Packed {
  lengths: readonly Length[];
  lots: bigint;
  words: bigint[];
  segments: Segment[];
}

function packSegments(
  market: Pick<Market, 'lotUnits'>,
  side: Side,
  levels: readonly Level[],
  lengths: readonly Length[],
): Packed {
  const words = packChords(side, lengths, chordCosts(levels, lengths));
  return { lengths, lots: sumLots(lengths), words, segments: decodeSide(market, side, words) };
}

interface SideToPack {
  market: Pick<Market, 'lotUnits'>;
  side: Side;
  levels: readonly Level[];
  maxKnots: number;
}

/** `anyError` if it keeps within the maximum error, else segments for as much of the side as can. The error is computed in integers. */
function packWithin(
  { market, side, levels, maxKnots }: SideToPack,
  anyError: Packed,
  maxErrorMilliBps: number,
): Packed {
  const within = ({ segments }: Packed): number =>
    segmentsWithin(market, side, levels, segments, BigInt(maxErrorMilliBps) * PPB_IN_MILLI_BPS);
  if (within(anyError) === anyError.segments.length) return anyError;
  const near = followableLevels(side, levels, maxKnots, maxErrorMilliBps * MILLI_BPS);
  const followed = packSegments(market, side, near.levels, chooseLengths(side, near.levels, maxKnots, near.limits));
  const count = within(followed);
  if (count === followed.segments.length) return followed;
  return packSegments(market, side, near.levels, followed.lengths.slice(0, count));
}

/** Prices may be coarser than a tick only if at least one part in so many of the depth is beyond the reach of whole ticks. */
const FAR_DEPTH_PART = 100n;

/**
 * The levels whose prices and lots fit in packed words; the last one may be cut. Where only a little depth would make prices coarser than a
 * tick, that depth is left out: otherwise one far order could make the best price inexact.
 */
function withinReach(levels: readonly Level[], maxDepthLots: bigint): Level[] {
  const all = withinShift(levels, maxDepthLots, MAX_SHIFT);
  const near = withinShift(levels, maxDepthLots, TICK_SHIFT);
  const farLots = totalLots(all) - totalLots(near);
  return farLots > 0n && farLots * FAR_DEPTH_PART < totalLots(all) ? near : all;
}

function withinShift(levels: readonly Level[], maxDepthLots: bigint, maxShift: bigint): Level[] {
  const kept: Level[] = [];
  let [nearest, farthest] = [0n, 0n];
  let free = maxDepthLots;
  for (const level of levels) {
    const { priceTicks, lots } = level;
    if (lots <= 0n || priceTicks <= 0n || priceTicks > MAX_PRICE_TICKS) continue;
    if (kept.length === 0) [nearest, farthest] = reachTicks(priceTicks, maxShift);
    if (free === 0n || priceTicks < nearest || priceTicks > farthest) break;
    kept.push(lots <= free ? level : { priceTicks, lots: free });
    free -= minBig(lots, free);
  }
  return kept;
}

/** Lowest and highest price that fit in one side with this best price, with a quantum of at most 2^maxShift subticks. */
function reachTicks(bestTicks: bigint, maxShift: bigint): [bigint, bigint] {
  const bestSubticks = bestTicks * SUBTICKS_PER_TICK;
  // One quantum less than the widest offset, because rounding may move the two ends of the side one quantum apart.
  const reach = ((MAX_OFFSET - 1n) << minBig(coarsestShift(bestSubticks), maxShift)) / SUBTICKS_PER_TICK;
  return [bestTicks - reach, bestTicks + reach];
}

/** The coarsest quantum, 2^shift subticks, that is at most 1/65536 of the best price; 1 subtick for prices below 65536 subticks. */
function coarsestShift(bestSubticks: bigint): bigint {
  const bits = BigInt(bestSubticks.toString(2).length);
  return minBig(bits > 17n ? bits - 17n : 0n, MAX_SHIFT);
}

/** Knots per side that a curve is given: one, two or four words. */
const KNOT_STEPS = [7, 15, 31] as const;
export type KnotStep = (typeof KNOT_STEPS)[number];

/**
 * When a side gets more knots; each further word makes every post cost more gas. Errors in thousandths of a basis point of the notional.
 */
export interface KnotPolicy {
  /** Most knots of a side. */
  maxKnots: KnotStep;
  /** No more once a side's worst error, at any size, is at most this. */
  enoughMilliBps: number;
  /**
   * Each further word must lower the mean error by at least this: the cost of a word's gas divided by the notional that is traded per post.
   */
  wordGainMilliBps: number;
  /**
   * Depth that would have a larger worst error than this is left out; before that, words are added whatever they gain. 0: no depth is left
   * out for its error.
   */
  maxErrorMilliBps: number;
}

const MILLI_BPS = 1e-7;

/** The fewest knots that the policy allows a side, by the errors before rounding. */
export function chooseKnotStep(side: Side, levels: readonly Level[], policy: KnotPolicy): KnotStep {
  const steps = KNOT_STEPS.filter((step) => step <= policy.maxKnots);
  const [first = 7] = steps;
  if (levels.length <= first) return first;
  const errorsOf = (step: KnotStep): KnotErrors => {
    const kept = withinReach(levels, BigInt(step) * MAX_LENGTH_LOTS);
    const floats = floatLevels(side, kept);
    return knotErrors(floats, placeKnots(floats, step));
  };
  let chosen: { step: KnotStep; errors: KnotErrors } = { step: first, errors: errorsOf(first) };
  for (const step of steps.slice(1)) {
    if (chosen.errors.worst <= policy.enoughMilliBps * MILLI_BPS) break;
    const errors = errorsOf(step);
    const words = wordsFor(step) - wordsFor(chosen.step);
    const gains = chosen.errors.mean - errors.mean >= words * policy.wordGainMilliBps * MILLI_BPS;
    const followed = policy.maxErrorMilliBps === 0 || chosen.errors.worst <= policy.maxErrorMilliBps * MILLI_BPS;
    if (!gains && followed) break;
    chosen = { step, errors };
  }
  return chosen.step;
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
      const taken = lots < left ? lots : left;
      cost += taken * here.priceTicks;
      lots -= taken;
      left -= taken;
    }
    return cost * SUBTICKS_PER_TICK;
  });
}

/** Packs chords with the finest quantum in which all their prices fit. */
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
