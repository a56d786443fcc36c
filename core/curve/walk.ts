/**
 * Trading against a curve in exact integers, with the results of the contract to the last unit.
 *
 * Invariants: G = sum(subticks x base units) is an integer and additive along the walk; quote units are G x tickLotUnits /
 * (lotUnits x 256), divided once, at the end, rounded in the vault's favour. So trading in parts never beats trading at once.
 */
import { ceilDiv } from '../amounts.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Market, Segment } from '../types.js';
import { VOLUME_MODULUS } from './words.js';

/** The taker's side and what is fixed: `In` fixes what the taker pays, `Out` what it receives. */
export type TradeMode = 'buyExactIn' | 'buyExactOut' | 'sellExactIn' | 'sellExactOut';

/** Both sides of a curve as a walk meets them, best price first. */
export interface CurveSides {
  asks: readonly Segment[];
  bids: readonly Segment[];
}

/** Base units of each side that were taken before. */
export interface Consumed {
  askUnits: bigint;
  bidUnits: bigint;
}

/** Gross amounts of a trade. */
interface TradeResult {
  baseUnits: bigint;
  quoteUnits: bigint;
}

/** This amount and larger ones are refused. */
export const AMOUNT_LIMIT = 2n ** 100n;

type Grid = Pick<Market, 'lotUnits' | 'tickLotUnits'>;

/**
 * What was taken from a side since the snapshot behind its curve: (cum - snap) modulo 2^92. A snapshot that claims more than was ever
 * taken wraps to an offset beyond any depth, so that nothing can be sold.
 */
export function consumedUnits(cumUnits: bigint, snapUnits: bigint): bigint {
  return (((cumUnits - snapUnits) % VOLUME_MODULUS) + VOLUME_MODULUS) % VOLUME_MODULUS;
}

/**
 * The trade that the contract would make now, or null when it would revert: zero amount, amount of 2^100 or more, more than the depth
 * left, or output rounding to zero. `buyExactIn` takes the amount whole for the largest base it pays for; `sellExactOut` takes the smallest
 * base that yields the amount.
 */
export function trade(
  market: Grid,
  curve: CurveSides,
  consumed: Consumed,
  mode: TradeMode,
  amountUnits: bigint,
): TradeResult | null {
  if (amountUnits <= 0n || amountUnits >= AMOUNT_LIMIT) return null;
  const isBuy = mode === 'buyExactIn' || mode === 'buyExactOut';
  const left = isBuy ? remaining(curve.asks, consumed.askUnits) : remaining(curve.bids, consumed.bidUnits);
  if (mode === 'buyExactOut' || mode === 'sellExactIn') {
    const cost = costOf(left, amountUnits);
    if (cost === null) return null;
    const quoteUnits = isBuy ? quoteCeil(market, cost) : quoteFloor(market, cost);
    return quoteUnits === 0n ? null : { baseUnits: amountUnits, quoteUnits };
  }
  const baseUnits = isBuy ? baseForAtMost(market, left, amountUnits) : baseForAtLeast(market, left, amountUnits);
  return baseUnits === null || baseUnits === 0n ? null : { baseUnits, quoteUnits: amountUnits };
}

/** The segments after the first `consumedOfSide` base units. */
export function remaining(segments: readonly Segment[], consumedOfSide: bigint): Segment[] {
  const rest: Segment[] = [];
  let skip = consumedOfSide;
  for (const segment of segments) {
    if (skip >= segment.lengthUnits) {
      skip -= segment.lengthUnits;
      continue;
    }
    rest.push({ lengthUnits: segment.lengthUnits - skip, subticks: segment.subticks });
    skip = 0n;
  }
  return rest;
}

/** Base units of all segments. */
export function depthUnits(segments: readonly Segment[]): bigint {
  return segments.reduce((sum, segment) => sum + segment.lengthUnits, 0n);
}

/** G of the first `baseUnits` base units, or null beyond the depth. */
export function costOf(segments: readonly Segment[], baseUnits: bigint): bigint | null {
  let left = baseUnits;
  let cost = 0n;
  for (const { lengthUnits, subticks } of segments) {
    const taken = left < lengthUnits ? left : lengthUnits;
    cost += taken * subticks;
    left -= taken;
    if (left === 0n) return cost;
  }
  return left === 0n ? cost : null;
}

/** Quote units of an exact cost G, rounded up: what a buyer pays. */
export function quoteCeil(market: Grid, cost: bigint): bigint {
  return ceilDiv(cost * market.tickLotUnits, market.lotUnits * SUBTICKS_PER_TICK);
}

/** Quote units of an exact cost G, rounded down: what a seller gets. */
export function quoteFloor(market: Grid, cost: bigint): bigint {
  return (cost * market.tickLotUnits) / (market.lotUnits * SUBTICKS_PER_TICK);
}

/**
 * The most base units that cost at most `quoteUnits`; null when the whole side costs less than that. A walk ends in the segment that costs
 * more than what is left.
 */
function baseForAtMost(market: Grid, segments: readonly Segment[], quoteUnits: bigint): bigint | null {
  const budget = (quoteUnits * market.lotUnits * SUBTICKS_PER_TICK) / market.tickLotUnits;
  let left = budget;
  let base = 0n;
  for (const { lengthUnits, subticks } of segments) {
    const cost = lengthUnits * subticks;
    if (cost > left) return base + left / subticks;
    left -= cost;
    base += lengthUnits;
  }
  // The whole side is taken. The rest of the budget may be mere rounding of the last quote unit, which then belongs to its price.
  return quoteCeil(market, budget - left) === quoteUnits ? base : null;
}

/** The fewest base units that yield at least `quoteUnits`; null beyond the depth. */
function baseForAtLeast(market: Grid, segments: readonly Segment[], quoteUnits: bigint): bigint | null {
  let left = ceilDiv(quoteUnits * market.lotUnits * SUBTICKS_PER_TICK, market.tickLotUnits);
  let base = 0n;
  for (const { lengthUnits, subticks } of segments) {
    const cost = lengthUnits * subticks;
    if (cost >= left) return base + ceilDiv(left, subticks);
    left -= cost;
    base += lengthUnits;
  }
  return null;
}
