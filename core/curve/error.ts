/** By how much a curve's cost differs from that of its book, in exact integers. */
import { minBig } from '../amounts.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Market, Segment, Side } from '../types.js';
import type { Level } from './levels.js';

/** Relative errors are in parts per billion of the exact cost, rounded down: 1 bps is 100,000 ppb. */
export const PPB = 10n ** 9n;
export const PPB_IN_MILLI_BPS = 100n;

/** A point of the two costs, both in subticks x base units, counted from the first unit of the curve. */
export interface CostPoint {
  units: bigint;
  exact: bigint;
  posted: bigint;
}

/**
 * Both costs at every breakpoint of either, in rising order; between two points both are linear. The curve must not be deeper than the
 * book.
 */
export function costPoints(
  market: Pick<Market, 'lotUnits'>,
  levels: readonly Level[],
  segments: readonly Segment[],
): CostPoint[] {
  const points: CostPoint[] = [];
  let [units, exact, posted] = [0n, 0n, 0n];
  let level = 0;
  let levelLeft = (levels[0]?.lots ?? 0n) * market.lotUnits;
  for (const { lengthUnits, subticks } of segments) {
    for (let left = lengthUnits; left > 0n;) {
      if (levelLeft === 0n) levelLeft = (levels[++level]?.lots ?? 0n) * market.lotUnits;
      const here = levels[level];
      if (here === undefined) return points;
      const step = minBig(left, levelLeft);
      units += step;
      exact += step * here.priceTicks * SUBTICKS_PER_TICK;
      posted += step * subticks;
      points.push({ units, exact, posted });
      left -= step;
      levelLeft -= step;
    }
  }
  return points;
}

/** The error at one point: what a taker overpays on asks, or is underpaid on bids, relative to the exact cost. */
function errorPpb(side: Side, { exact, posted }: Pick<CostPoint, 'exact' | 'posted'>): bigint {
  return ((side === 'ask' ? posted - exact : exact - posted) * PPB) / exact;
}

/** How many leading segments have no error above `maxPpb` at any amount. */
export function segmentsWithin(
  market: Pick<Market, 'lotUnits'>,
  side: Side,
  levels: readonly Level[],
  segments: readonly Segment[],
  maxPpb: bigint,
): number {
  const above = costPoints(market, levels, segments).find((point) => errorPpb(side, point) > maxPpb);
  if (above === undefined) return segments.length;
  let units = 0n;
  return segments.findIndex(({ lengthUnits }) => (units += lengthUnits) >= above.units);
}

/**
 * The worst error at any amount from the first unit on. The error relative to the exact cost is monotone between two breakpoints, so
 * looking at those is exact. Zero for an empty side.
 */
export function worstErrorPpb(
  market: Pick<Market, 'lotUnits'>,
  side: Side,
  levels: readonly Level[],
  segments: readonly Segment[],
): bigint {
  let worst = 0n;
  for (const point of costPoints(market, levels, segments)) {
    const ppb = errorPpb(side, point);
    if (ppb > worst) worst = ppb;
  }
  return worst;
}
