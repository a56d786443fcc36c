import type { RestingOrder } from '../attribution/carry.js';
import { quoteUnitsFloor } from '../market.js';
import type { Market, Side } from '../types.js';
import { searchWorst, type SearchBudget } from './search.js';

/** Everything of one maker on one side of one market that can still be executed, or is about to be. Each list is best price first. */
export interface MakerSide {
  market: Market;
  side: Side;
  /** What is left in each older publication that can still be executed, oldest first. */
  older: readonly (readonly RestingOrder[])[];
  /** What the new publication would offer. */
  next: readonly RestingOrder[];
}

/**
 * The most that the maker can still be made to pay on this side, in units of the token that it pays: takers may fill any part of any
 * publication that is executable, each may land or not, later ones lose by the carry rule what was taken earlier, and the new one is filled
 * whole. A raise at landing only removes depth: the fills of that curve are still booked to the best orders that are left, only fewer of
 * them, so that a raise rules out some of these fills and adds none. Apart from raises, the result is exact for asks, and for bids as long
 * as the search is small enough; otherwise it is `envelopePayment`, which is never less. Quote units are rounded down once, which is not
 * less than the sum of the legs, each rounded down. A search that `budget` does not pay for is not made.
 */
export function worstPayment(exposed: MakerSide, budget?: SearchBudget): bigint {
  const { market, side, older, next } = exposed;
  if (side === 'ask') return envelopePayment(exposed);
  const weighted = searchWorst([...withoutRepeats(older), next], budget);
  return weighted === null ? envelopePayment(exposed) : quoteUnitsFloor(market, 1n, weighted);
}

/**
 * A bound of `worstPayment` from above, without a search, in the same units.
 *
 * Take a price p, and look only at what is filled at p or better. The carry rule takes fills out of a later publication either from the
 * order itself, which rests at the same price, or from the maker's best prices first; so `a` units filled at p or better leave a later
 * publication at most max(0, s - a) of the s units it has there. By induction over the sequence, the units ever filled at p or better never
 * exceed the most that any single publication has there. Summed over prices, the maker never pays more than for the upper envelope of its
 * publications. Asks pay base whatever the price, so for them the bound is exact.
 */
export function envelopePayment({ market, side, older, next }: MakerSide): bigint {
  const weightOf = (order: RestingOrder): bigint => (side === 'ask' ? 1n : order.priceTicks);
  const lists = [next, ...older].map((orders) => ({ orders, at: 0, units: 0n }));
  let weighted = 0n;
  let envelopeUnits = 0n;
  for (;;) {
    let weight = 0n;
    for (const { orders, at } of lists) {
      const order = orders[at];
      if (order !== undefined && weightOf(order) > weight) weight = weightOf(order);
    }
    if (weight === 0n) break;
    let units = envelopeUnits;
    for (const list of lists) {
      for (; list.at < list.orders.length && weightOf(list.orders[list.at]!) === weight; list.at++) {
        list.units += list.orders[list.at]!.units;
      }
      if (list.units > units) units = list.units;
    }
    weighted += weight * (units - envelopeUnits);
    envelopeUnits = units;
  }
  return side === 'ask' ? weighted : quoteUnitsFloor(market, 1n, weighted);
}

/** A cheap bound of `envelopePayment` from above: as if every publication could be filled whole, one after the other. */
function paymentCeiling({ market, side, older, next }: MakerSide): bigint {
  let weighted = 0n;
  for (const orders of [next, ...older]) {
    for (const { priceTicks, units } of orders) weighted += side === 'ask' ? units : priceTicks * units;
  }
  return side === 'ask' ? weighted : quoteUnitsFloor(market, 1n, weighted);
}

/** Bounds from above of what a side can be made to pay, from the cheapest to the exact one; none is worked out before it is asked for. */
export interface PaymentBounds {
  ceiling: () => bigint;
  envelope: () => bigint;
  /** `worstPayment`; from then on the same, whatever is left of the budget. */
  worst: () => bigint;
}

export function paymentBounds(exposed: MakerSide, budget?: SearchBudget): PaymentBounds {
  return {
    ceiling: once(() => paymentCeiling(exposed)),
    envelope: once(() => envelopePayment(exposed)),
    worst: once(() => worstPayment(exposed, budget)),
  };
}

function once(compute: () => bigint): () => bigint {
  let result: bigint | null = null;
  return () => (result ??= compute());
}

/**
 * True when the sum of the worst payments of some sides is at most `limitUnits`. Cheap bounds are tried first.
 */
export function paymentsFit(sides: readonly PaymentBounds[], limitUnits: bigint): boolean {
  return (['ceiling', 'envelope', 'worst'] as const).some(
    (bound) => sides.reduce((sum, side) => sum + side[bound](), 0n) <= limitUnits,
  );
}

/**
 * Leaves out empty publications, and those with the same orders as the publication before: filling both equals filling one of them further.
 */
function withoutRepeats(older: readonly (readonly RestingOrder[])[]): (readonly RestingOrder[])[] {
  const kept: (readonly RestingOrder[])[] = [];
  for (const orders of older) {
    const before = kept.at(-1);
    if (orders.length > 0 && (before === undefined || !sameOrders(before, orders))) kept.push(orders);
  }
  return kept;
}

function sameOrders(a: readonly RestingOrder[], b: readonly RestingOrder[]): boolean {
  return (
    a.length === b.length && a.every((order, index) => order.oid === b[index]!.oid && order.units === b[index]!.units)
  );
}
