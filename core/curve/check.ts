/**
 * The last look at a curve before it is posted, in integers and independent of how the curve was made: it reads the book and the segments
 * as the chain will walk them.
 */
import { minBig } from '../amounts.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Market, MarketSnapshot, Segment, Side } from '../types.js';
import { CurveError } from './errors.js';
import { sideLevels, type Level } from './levels.js';
import type { CurveSides } from './walk.js';

export type ViolationCode = 'better_than_book' | 'not_monotone' | 'beyond_depth' | 'not_positive' | 'crossed';

/** What is wrong with a curve, and where. */
export interface Violation {
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
 * All that is wrong with a curve for a book; empty when it may be posted. From the first unit on and for every amount, asks must cost at
 * least and bids yield at most what the book does; segments have positive lengths and prices, prices in order, no more depth than the book, and
 * the best ask above the best bid. Both costs are linear between breakpoints, so comparing them at every breakpoint of either is exact.
 */
export function checkCurve(market: Market, snapshot: MarketSnapshot, curve: CurveSides): Violation[] {
  const violations = [
    ...checkSide(market, 'ask', sideLevels('ask', snapshot.asks), curve.asks),
    ...checkSide(market, 'bid', sideLevels('bid', snapshot.bids), curve.bids),
  ];
  const ask = curve.asks[0]?.subticks;
  const bid = curve.bids[0]?.subticks;
  if (ask !== undefined && bid !== undefined && ask <= bid) {
    violations.push({ code: 'crossed', side: null, message: `best ask ${ask} is not above best bid ${bid} subticks` });
  }
  return violations;
}

function checkSide(market: Market, side: Side, levels: readonly Level[], segments: readonly Segment[]): Violation[] {
  const shape = checkShape(side, segments);
  // Costs mean nothing when the segments are malformed.
  return shape.length > 0 ? shape : checkCosts(market, side, levels, segments);
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
function checkCosts(market: Market, side: Side, levels: readonly Level[], segments: readonly Segment[]): Violation[] {
  let level = 0;
  let levelLeft = (levels[0]?.lots ?? 0n) * market.lotUnits;
  let walked = 0n;
  // Cost of the curve above that of the book, in subticks x base units; on bids the other way round.
  let margin = 0n;
  for (const { lengthUnits, subticks } of segments) {
    for (let left = lengthUnits; left > 0n;) {
      if (levelLeft === 0n) levelLeft = (levels[++level]?.lots ?? 0n) * market.lotUnits;
      const here = levels[level];
      if (here === undefined)
        return [{ code: 'beyond_depth', side, message: `the book ends after ${walked} base units` }];
      const step = minBig(left, levelLeft);
      const worse = subticks - here.priceTicks * SUBTICKS_PER_TICK;
      margin += step * (side === 'ask' ? worse : -worse);
      walked += step;
      left -= step;
      levelLeft -= step;
      if (margin < 0n) {
        return [
          { code: 'better_than_book', side, message: `by ${-margin} subticks x units after ${walked} base units` },
        ];
      }
    }
  }
  return [];
}
