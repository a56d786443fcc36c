/**
 * The last check of a curve before it is posted, in integers and independent of how the curve was made: it compares the book with the
 * segments that the contract will walk.
 */
import { minBig } from '../amounts.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Market, MarketSnapshot, Segment, Side } from '../types.js';
import { CurveError } from './errors.js';
import { sideLevels, type Level } from './levels.js';
import type { CurveSides } from './walk.js';

export type ViolationCode =
  'better_than_book' | 'better_from_knot' | 'not_exact' | 'not_monotone' | 'beyond_depth' | 'not_positive' | 'crossed';

/** Both sides of a curve, and what its post says of them: how many leading segments equal the book. */
export interface PostedSides extends CurveSides {
  exactAskKnots: number;
  exactBidKnots: number;
}

/** What is wrong with a curve, and where. */
interface Violation {
  code: ViolationCode;
  side: Side | null;
  message: string;
}

/** A curve that must not be posted. */
export class CurveCheckError extends CurveError {
  override readonly name = 'CurveCheckError';

  constructor(readonly violations: readonly Violation[]) {
    super(
      'curve_check_failed',
      violations.map(({ code, side, message }) => `${side ?? 'curve'} ${code}: ${message}`).join('; '),
    );
  }
}

/**
 * All violations of a curve against its book; empty when it may be posted. A walk may start at the first unit, at the end of every segment,
 * or anywhere in the exact segments. From each such start, for every amount, asks must cost at least and bids yield at most what the book
 * does; the exact segments cost exactly what the book does. Segments must have positive lengths and prices in order, no more depth than the
 * book, and the best ask must be above the best bid. Both costs are linear between breakpoints, so comparing them at every breakpoint of
 * either is exact.
 */
export function checkCurve(market: Market, snapshot: MarketSnapshot, curve: PostedSides): Violation[] {
  const asks = { segments: curve.asks, exact: curve.exactAskKnots };
  const bids = { segments: curve.bids, exact: curve.exactBidKnots };
  const violations = [
    ...checkSide(market, 'ask', sideLevels('ask', snapshot.asks), asks),
    ...checkSide(market, 'bid', sideLevels('bid', snapshot.bids), bids),
  ];
  const ask = curve.asks[0]?.subticks;
  const bid = curve.bids[0]?.subticks;
  if (ask !== undefined && bid !== undefined && ask <= bid) {
    violations.push({ code: 'crossed', side: null, message: `best ask ${ask} is not above best bid ${bid} subticks` });
  }
  return violations;
}

/** A side as posted; the first `exact` segments are said to equal the book. */
interface PostedSide {
  segments: readonly Segment[];
  exact: number;
}

function checkSide(market: Market, side: Side, levels: readonly Level[], posted: PostedSide): Violation[] {
  const shape = checkShape(side, posted.segments);
  // Costs are only defined for well-formed segments.
  return shape.length > 0 ? shape : checkCosts(market, side, levels, posted);
}

function checkShape(side: Side, segments: readonly Segment[]): Violation[] {
  const violations: Violation[] = [];
  segments.forEach(({ lengthUnits, subticks }, i) => {
    const at = `segment ${i} (${lengthUnits} units at ${subticks} subticks)`;
    if (lengthUnits <= 0n || subticks <= 0n) violations.push({ code: 'not_positive', side, message: at });
    const before = segments[i - 1]?.subticks ?? subticks;
    if (side === 'ask' ? subticks < before : subticks > before) {
      violations.push({ code: 'not_monotone', side, message: `${at} follows ${before} subticks` });
    }
  });
  return violations;
}

/** Walks book and curve together from breakpoint to breakpoint; the first violation ends it. */
function checkCosts(
  market: Market,
  side: Side,
  levels: readonly Level[],
  { segments, exact }: PostedSide,
): Violation[] {
  const found = (code: ViolationCode, message: string): Violation[] => [{ code, side, message }];
  if (exact > segments.length) return found('not_exact', `${exact} exact segments of ${segments.length}`);
  let level = 0;
  let levelLeft = (levels[0]?.lots ?? 0n) * market.lotUnits;
  let walked = 0n;
  // Cost of the curve above that of the book, in subticks x base units; on bids the other way round.
  let margin = 0n;
  // The highest margin at the end of a segment so far: from that end on, the curve must not be better than the book.
  let marginAtKnot = 0n;
  for (const [i, { lengthUnits, subticks }] of segments.entries()) {
    for (let left = lengthUnits; left > 0n;) {
      if (levelLeft === 0n) levelLeft = (levels[++level]?.lots ?? 0n) * market.lotUnits;
      const here = levels[level];
      if (here === undefined) return found('beyond_depth', `the book ends after ${walked} base units`);
      const step = minBig(left, levelLeft);
      const worse = subticks - here.priceTicks * SUBTICKS_PER_TICK;
      margin += step * (side === 'ask' ? worse : -worse);
      walked += step;
      left -= step;
      levelLeft -= step;
      if (margin < 0n) return found('better_than_book', `by ${-margin} subticks x units after ${walked} base units`);
      if (margin < marginAtKnot) {
        return found('better_from_knot', `by ${marginAtKnot - margin} subticks x units after ${walked} base units`);
      }
      if (margin !== 0n && i < exact) {
        return found('not_exact', `worse by ${margin} subticks x units after ${walked} base units`);
      }
    }
    if (margin > marginAtKnot) marginAtKnot = margin;
  }
  return [];
}
