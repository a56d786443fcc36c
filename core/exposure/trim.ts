import type { RestingOrder } from '../attribution/carry.js';
import type { SearchBudget } from './search.js';
import { paymentBounds, paymentsFit, type MakerSide, type PaymentBounds } from './worst.js';

/** A side together with the best price of the whole book there, against which distances of orders are measured. */
export interface TrimSide extends MakerSide {
  bestTicks: bigint;
}

/** Lots to take off one order of a side. */
interface OrderTrim {
  market: number;
  oid: number;
  lots: bigint;
}

interface Candidate {
  /** Index of the side among those given. */
  sideIndex: number;
  side: TrimSide;
  order: RestingOrder;
  lots: bigint;
}

/** Lots taken off orders, in the order of trimming. */
type Trims = Map<Candidate, bigint>;

/**
 * The trims that bring the sum of one maker's worst payments of one token, over `sides`, down to `availableUnits`. Whole lots are trimmed,
 * worst price first: farthest from the best price of its market's side, relative to it; then the higher market, then the newer order. Lots
 * whose trimming does not lower the sum, because an older publication offers as much anyway, are then given back, one side after the other.
 * When the older publications alone exceed the limit, nothing new is offered.
 *
 * Whether anything must be trimmed, and whether the older publications alone exceed the limit, is always decided exactly; how much is trimmed
 * and given back, as long as `budget` pays for the searches. After that, bounds from above take the place of worst payments: more may be
 * trimmed, and less given back, but never less trimmed than the limit needs.
 */
export function trimMaker(sides: readonly TrimSide[], availableUnits: bigint, budget: SearchBudget): OrderTrim[] {
  const untrimmed = sides.map((side) => paymentBounds(side));
  if (paymentsFit(untrimmed, availableUnits)) return [];
  const candidates = worstFirst(sides);
  const allLots = lotsOf(candidates);
  const olderOnly = sides.map((side) => paymentBounds({ ...side, next: [] }));
  if (!paymentsFit(olderOnly, availableUnits)) return orderTrims(takeLots(candidates, allLots));

  // The lots trimmed on a side are always the first in the order of its candidates, so that their number tells which they are. What a side
  // can be made to pay does not depend on other sides, so that a probe works out only those whose number it is the first to have.
  const known = sides.map(
    ({ next, market }, index) =>
      new Map([
        [next.reduce((sum, { units }) => sum + units / market.lotUnits, 0n), olderOnly[index]!],
        [0n, untrimmed[index]!],
      ]),
  );
  const boundsOf = (trims: readonly Trims[]): PaymentBounds[] =>
    sides.map((side, index) => {
      const lots = sumOf(trims[index]!.values());
      const bounds = known[index]!.get(lots) ?? paymentBounds(withTrims(side, trims[index]!), budget);
      known[index]!.set(lots, bounds);
      return bounds;
    });
  const trimmedTo = (keptLots: bigint): Trims[] => bySide(takeLots(candidates, allLots - keptLots), sides.length);
  const trims = trimmedTo(mostLots(allLots, (keptLots) => paymentsFit(boundsOf(trimmedTo(keptLots)), availableUnits)));

  let bounds = boundsOf(trims);
  let paidUnits = sumOf(bounds.map(({ worst }) => worst()));
  sides.forEach((side, index) => {
    const othersUnits = paidUnits - bounds[index]!.worst();
    trims[index] = giveBack(trims[index]!, (fewer) => {
      const grown = paymentBounds(withTrims(side, fewer), budget);
      if (!paymentsFit([grown], availableUnits - othersUnits)) return false;
      bounds = bounds.with(index, grown);
      return true;
    });
    paidUnits = othersUnits + bounds[index]!.worst();
  });
  // What is returned is checked as a whole, and without anything that was remembered on the way.
  const isWithin = paymentsFit(
    sides.map((side, index) => paymentBounds(withTrims(side, trims[index]!))),
    availableUnits,
  );
  return isWithin ? trims.flatMap(orderTrims) : orderTrims(takeLots(candidates, allLots));
}

function orderTrims(trims: Trims): OrderTrim[] {
  return [...trims].map(([{ side, order }, lots]) => ({ market: side.market.index, oid: order.oid, lots }));
}

/** The orders that may be trimmed, in the order of trimming. */
function worstFirst(sides: readonly TrimSide[]): Candidate[] {
  return sides
    .flatMap((side, sideIndex) =>
      side.next.map((order) => ({ sideIndex, side, order, lots: order.units / side.market.lotUnits })),
    )
    .sort(
      (a, b) =>
        compare(distance(b) * a.side.bestTicks, distance(a) * b.side.bestTicks) ||
        b.side.market.index - a.side.market.index ||
        b.order.oid - a.order.oid,
    );
}

function distance({ side, order }: Candidate): bigint {
  const ticks = order.priceTicks - side.bestTicks;
  return ticks < 0n ? -ticks : ticks;
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function lotsOf(candidates: readonly Candidate[]): bigint {
  return sumOf(candidates.map(({ lots }) => lots));
}

function sumOf(amounts: Iterable<bigint>): bigint {
  let sum = 0n;
  for (const amount of amounts) sum += amount;
  return sum;
}

/** The first `totalLots` lots in the order of the candidates. */
function takeLots(candidates: readonly Candidate[], totalLots: bigint): Trims {
  const trims: Trims = new Map();
  let needLots = totalLots;
  for (const candidate of candidates) {
    if (needLots === 0n) break;
    const lots = needLots < candidate.lots ? needLots : candidate.lots;
    trims.set(candidate, lots);
    needLots -= lots;
  }
  return trims;
}

function bySide(trims: Trims, sideCount: number): Trims[] {
  const split = Array.from({ length: sideCount }, (): Trims => new Map());
  for (const [candidate, lots] of trims) split[candidate.sideIndex]!.set(candidate, lots);
  return split;
}

/** The most lots in 0..allLots that pass, which is the last number that did, if any. Zero must pass, and if a number passes, every lower one. */
function mostLots(allLots: bigint, passes: (lots: bigint) => boolean): bigint {
  let low = 0n;
  let high = allLots;
  while (low < high) {
    const middle = (low + high + 1n) / 2n;
    if (passes(middle)) low = middle;
    else high = middle - 1n;
  }
  return low;
}

/** `trims` are those of the side alone. */
function withTrims(side: TrimSide, trims: Trims): TrimSide {
  const lotsByOid = new Map([...trims].map(([{ order }, lots]) => [order.oid, lots]));
  const trimmed = (order: RestingOrder): RestingOrder => {
    const lots = lotsByOid.get(order.oid) ?? 0n;
    return lots === 0n ? order : { ...order, units: order.units - lots * side.market.lotUnits };
  };
  return { ...side, next: side.next.map(trimmed).filter((order) => order.units > 0n) };
}

/**
 * Gives back as many of the lots trimmed on one side as fit, beginning at the worst price: lots there raise the offer at the fewest prices,
 * so an older publication is most likely to cover them.
 */
function giveBack(trims: Trims, fits: (fewer: Trims) => boolean): Trims {
  const trimmed = [...trims].map(([candidate, lots]) => ({ ...candidate, lots }));
  const without = (givenLots: bigint): Trims => {
    const given = takeLots(trimmed, givenLots);
    const fewer: Trims = new Map();
    [...trims.keys()].forEach((candidate, index) => {
      const one = trimmed[index]!;
      const lots = one.lots - (given.get(one) ?? 0n);
      if (lots > 0n) fewer.set(candidate, lots);
    });
    return fewer;
  };
  return without(mostLots(lotsOf(trimmed), (lots) => fits(without(lots))));
}
