import type { RestingOrder } from '../attribution/carry.js';

/** Most order steps of one search; a step takes about 50 ns. */
export const MAX_SEARCH_STEPS = 20_000;

/** What several searches may take together. Each search that is made lowers it. */
export interface SearchBudget {
  stepsLeft: number;
}

/** Most order steps of all searches by which one maker's orders are trimmed at a cut: about 50 ms. */
export const MAX_TRIM_STEPS = 1_000_000;

/** One maker's orders of one publication while fills are carried into it. Indexes are those of the orders, best price first. */
interface Carried {
  orders: readonly RestingOrder[];
  indexOf: ReadonlyMap<number, number>;
  /** What each order has left. */
  units: bigint[];
  /** Sum of price times units left. */
  value: bigint;
  /** No order before this one has anything left for the second pass of the carry rule. */
  frontier: number;
}

/**
 * The most that a maker's bids can be made to pay, in ticks times base units: each older publication in turn is filled up to the end of
 * each of its orders or not at all, each fill is carried into all later publications, and the newest is filled whole.
 * `publications` are in sequence order, the new one last. Returns null when that could take more than MAX_SEARCH_STEPS, or
 * than the budget has left.
 *
 * Ends of orders are enough. Inside one order of the last older publication, a fill first takes the same order out of the new one,
 * which changes nothing in sum; from there on it takes that one's best prices, of which each further unit is worth no more than
 * the one before. So the sum is flat, then convex, and is highest at an end.
 */
export function searchWorst(
  publications: readonly (readonly RestingOrder[])[],
  budget: SearchBudget = { stepsLeft: MAX_SEARCH_STEPS },
): bigint | null {
  const steps = stepsNeeded(publications);
  if (steps > Math.min(MAX_SEARCH_STEPS, budget.stepsLeft)) return null;
  budget.stepsLeft -= steps;
  return search(publications.map(carriedOf));
}

function stepsNeeded(publications: readonly (readonly RestingOrder[])[]): number {
  return publications.reduceRight((steps, { length }, index) => {
    const later = publications.length - 1 - index;
    if (later === 0) return length;
    return later === 1 ? steps + length : (length + 1) * (steps + later);
  }, 0);
}

function search(publications: readonly Carried[]): bigint {
  const [first, ...later] = publications;
  if (first === undefined) return 0n;
  const [next] = later;
  if (next === undefined) return first.value;
  const rest = (): bigint => (later.length === 1 ? next.value : search(later.map(copyOf)));
  let worst = rest();
  let paid = 0n;
  first.orders.forEach(({ oid, priceTicks }, index) => {
    const units = first.units[index]!;
    if (units === 0n) return;
    paid += priceTicks * units;
    for (const one of later) carryOne(one, oid, units);
    const total = paid + rest();
    if (total > worst) worst = total;
  });
  return worst;
}

function carriedOf(orders: readonly RestingOrder[]): Carried {
  return {
    orders,
    indexOf: new Map(orders.map((order, index) => [order.oid, index])),
    units: orders.map((order) => order.units),
    value: orders.reduce((sum, order) => sum + order.priceTicks * order.units, 0n),
    frontier: 0,
  };
}

function copyOf(carried: Carried): Carried {
  return { ...carried, units: [...carried.units] };
}

/** The carry rule for one more fill; carrying one by one gives what carrying all at once does. */
function carryOne(carried: Carried, oid: number, filledUnits: bigint): void {
  const direct = carried.indexOf.get(oid);
  let leftUnits = filledUnits;
  if (direct !== undefined) leftUnits -= takeAt(carried, direct, leftUnits);
  while (leftUnits > 0n && carried.frontier < carried.orders.length) {
    leftUnits -= takeAt(carried, carried.frontier, leftUnits);
    if (carried.units[carried.frontier] === 0n) carried.frontier += 1;
  }
}

function takeAt(carried: Carried, index: number, wantUnits: bigint): bigint {
  const has = carried.units[index]!;
  const units = wantUnits < has ? wantUnits : has;
  carried.units[index] = has - units;
  carried.value -= carried.orders[index]!.priceTicks * units;
  return units;
}
