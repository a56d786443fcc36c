/**
 * The carry: what was taken of a side after the cut of its new curve and before that curve landed. The contract starts a new curve at the
 * end of a segment, because from there on it is never cheaper than the book; docs/curve.md has the proof.
 */
import { minBig } from '../amounts.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Market, Segment } from '../types.js';
import type { Level } from './levels.js';

/** Most exact segments that a post can name for a side. */
export const MAX_EXACT_KNOTS = 15;

/**
 * How many leading segments of a side equal its book: within them every amount costs, from the first unit on, exactly what the levels
 * say. At most MAX_EXACT_KNOTS.
 */
export function exactKnots(
  market: Pick<Market, 'lotUnits'>,
  levels: readonly Level[],
  segments: readonly Segment[],
): number {
  let level = 0;
  let levelLeft = (levels[0]?.lots ?? 0n) * market.lotUnits;
  let exact = 0;
  for (const { lengthUnits, subticks } of segments.slice(0, MAX_EXACT_KNOTS)) {
    for (let left = lengthUnits; left > 0n;) {
      if (levelLeft === 0n) levelLeft = (levels[++level]?.lots ?? 0n) * market.lotUnits;
      const here = levels[level];
      if (here === undefined || here.priceTicks * SUBTICKS_PER_TICK !== subticks) return exact;
      const step = minBig(left, levelLeft);
      left -= step;
      levelLeft -= step;
    }
    exact++;
  }
  return exact;
}

/**
 * The consumption at which a full or partial post leaves a side that `consumedUnits` were taken of since its cut: raised to the end of
 * the segment it lies in, unless it lies within the first `exactKnots`. Nothing is raised at zero, at a segment's end, and beyond the
 * depth, where nothing can be sold. In base units.
 */
export function raisedConsumption(segments: readonly Segment[], exactKnots: number, consumedUnits: bigint): bigint {
  if (consumedUnits === 0n) return 0n;
  let endUnits = 0n;
  for (const [i, { lengthUnits }] of segments.entries()) {
    endUnits += lengthUnits;
    if (consumedUnits <= endUnits) return i < exactKnots ? consumedUnits : endUnits;
  }
  return consumedUnits;
}
