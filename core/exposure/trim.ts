import type { RestingOrder } from '../attribution/carry.js';
import { paymentsFit, type MakerSide } from './worst.js';

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

type Trims = Map<Candidate, bigint>;

/**
 * The trims that bring the sum of one maker's worst payments of one token, over `sides`, down to `availableUnits`. Whole lots are trimmed,
 * worst price first: farthest from the best price of its market's side, relative to it; then the higher market, then the newer order. Lots
 * whose trimming does not lower the sum, because an older publication offers as much anyway, are then given back, one side after the other.
 * When the older publications alone exceed the limit, nothing new is offered.
 */
export function trimMaker(sides: readonly TrimSide[], availableUnits: bigint): OrderTrim[] {
  const fits = (trims: Trims): boolean => paymentsFit(withTrims(sides, trims), availableUnits);
  if (fits(new Map())) return [];
  const candidates = worstFirst(sides);
  const allLots = lotsOf(candidates);
  const trimmedTo = (keptLots: bigint): Trims => takeLots(candidates, allLots - keptLots);
  let trims = trimmedTo(0n);
  if (fits(trims)) {
    trims = trimmedTo(mostLots(allLots, (keptLots) => fits(trimmedTo(keptLots))));
    sides.forEach((_, sideIndex) => {
      trims = giveBack(trims, sideIndex, fits);
    });
  }
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
  return candidates.reduce((sum, { lots }) => sum + lots, 0n);
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

/** The most lots in 0..allLots that pass. Zero must pass, and if a number passes, every lower one must. */
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

function withTrims(sides: readonly TrimSide[], trims: Trims): TrimSide[] {
  const lotsByOid = sides.map(() => new Map<number, bigint>());
  for (const [{ sideIndex, order }, lots] of trims) lotsByOid[sideIndex]!.set(order.oid, lots);
  return sides.map((side, index) => {
    const trimmed = (order: RestingOrder): RestingOrder => {
      const lots = lotsByOid[index]!.get(order.oid) ?? 0n;
      return lots === 0n ? order : { ...order, units: order.units - lots * side.market.lotUnits };
    };
    return { ...side, next: side.next.map(trimmed).filter((order) => order.units > 0n) };
  });
}

/**
 * Gives back as many of the lots trimmed on one side as fit, beginning at the worst price: lots there raise the offer at the fewest prices,
 * so an older publication is most likely to cover them.
 */
function giveBack(trims: Trims, sideIndex: number, fits: (trims: Trims) => boolean): Trims {
  const ofSide = [...trims].filter(([candidate]) => candidate.sideIndex === sideIndex);
  const trimmed = ofSide.map(([candidate, lots]) => ({ ...candidate, lots }));
  const without = (givenLots: bigint): Trims => {
    const given = takeLots(trimmed, givenLots);
    const next: Trims = new Map(trims);
    trimmed.forEach((one, index) => {
      const [candidate] = ofSide[index]!;
      const lots = one.lots - (given.get(one) ?? 0n);
      if (lots === 0n) next.delete(candidate);
      else next.set(candidate, lots);
    });
    return next;
  };
  return without(mostLots(lotsOf(trimmed), (lots) => fits(without(lots))));
}
