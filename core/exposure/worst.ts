import type { RestingOrder } from '../attribution/carry.js';
import { quoteUnitsFloor } from '../market.js';
import type { Address, Market, Side } from '../types.js';

/** Everything of one maker on one side of one market that can still be executed, or is about to be. Each list is best price first. */
export interface MakerSide {
  market: Market;
  side: Side;
  /** What is left in each older publication that can still be executed, oldest first. */
  older: readonly (readonly RestingOrder[])[];
  /** What the new publication would offer. */
  next: readonly RestingOrder[];
}

/** Base units offered at a weight or better, the highest weight first: by the older publications (the most of any), and by the new one. */
export interface EnvelopeStep {
  weight: bigint;
  olderUnits: bigint;
  nextUnits: bigint;
}

/** The token that fills of a side take from its makers. */
export function payToken(market: Market, side: Side): Address {
  return side === 'ask' ? market.base.address : market.quote.address;
}

/**
 * The most that the maker can still be made to pay on this side, in units of `payToken`, never below the truth: takers may fill any
 * part of any publication that is executable, each may land or not, later ones lose what was taken earlier by the carry rule, and the
 * new one is filled whole.
 *
 * Why no search is needed. Take a price p, and look only at what is filled at p or better. The carry rule takes fills out of a later
 * publication either from the order itself, which rests at the same price, or from the maker's best prices first; so `a` units filled
 * at p or better leave a later publication at most max(0, s - a) of the s units it has there. By induction over the sequence, the
 * units ever filled at p or better never exceed the most that any single publication has there. Summed over prices, the maker never
 * pays more than for the upper envelope of its publications. Asks pay base whatever the price, so for them one sum decides, and
 * the bound is reached. For bids it is exceeded by nothing when one publication has the most at every price; otherwise it may
 * lie above the truth, never below. A search over whole orders would not do: with two older publications and a trimmed order,
 * the worst case can stop in the middle of an order.
 *
 * Quote units are rounded down once, which is not less than the sum of the legs, each rounded down.
 */
export function worstPayment(exposed: MakerSide): bigint {
  return paymentOf(exposed, envelopeSteps(exposed));
}

/** The steps of the envelope, highest weight first. Bids weigh their price in ticks; asks all weigh one. */
export function envelopeSteps({ side, older, next }: Pick<MakerSide, 'side' | 'older' | 'next'>): EnvelopeStep[] {
  const weightOf = (order: RestingOrder): bigint => (side === 'ask' ? 1n : order.priceTicks);
  const lists = [next, ...older].map((orders) => ({ orders, at: 0, units: 0n }));
  const steps: EnvelopeStep[] = [];
  for (;;) {
    let weight = 0n;
    for (const { orders, at } of lists) {
      const order = orders[at];
      if (order !== undefined && weightOf(order) > weight) weight = weightOf(order);
    }
    if (weight === 0n) return steps;
    for (const list of lists) {
      for (; list.at < list.orders.length && weightOf(list.orders[list.at]!) === weight; list.at++) {
        list.units += list.orders[list.at]!.units;
      }
    }
    const [offered, ...live] = lists;
    const olderUnits = live.reduce((most, { units }) => (units > most ? units : most), 0n);
    steps.push({ weight, olderUnits, nextUnits: offered!.units });
  }
}

/** What filling the envelope costs the maker, rounded down once. */
export function paymentOf({ market, side }: Pick<MakerSide, 'market' | 'side'>, steps: readonly EnvelopeStep[]): bigint {
  let weighted = 0n;
  let before = 0n;
  for (const { weight, olderUnits, nextUnits } of steps) {
    const units = olderUnits > nextUnits ? olderUnits : nextUnits;
    weighted += weight * (units - before);
    before = units;
  }
  return side === 'ask' ? weighted : quoteUnitsFloor(market, 1n, weighted);
}

/** A cheap bound of `worstPayment` from above: as if every publication could be filled whole, one after the other. */
export function paymentCeiling({ market, side, older, next }: MakerSide): bigint {
  let weighted = 0n;
  for (const orders of [next, ...older]) {
    for (const { priceTicks, units } of orders) weighted += side === 'ask' ? units : priceTicks * units;
  }
  return side === 'ask' ? weighted : quoteUnitsFloor(market, 1n, weighted);
}
