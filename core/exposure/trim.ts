import type { RestingOrder } from '../attribution/carry.js';
import { envelopeSteps, worstPayment, type MakerSide } from './worst.js';

/** A side together with the best price of the whole book there, against which distances of orders are measured. */
export interface TrimSide extends MakerSide {
  bestTicks: bigint;
}

/** Lots to take off one order of a side. */
export interface OrderTrim {
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

/**
 * The trims that bring the sum of one maker's worst payments of one token, over `sides`, down to `availableUnits`. Whole lots go, worst
 * price first: farthest from the best price of its market's side, relative to it; then the higher market, then the newer order. Lots
 * whose absence lowers no worst payment, since an older publication offers as much anyway, are given back, best price first. When the
 * older publications alone exceed the limit, nothing new is offered.
 */
export function trimMaker(sides: readonly TrimSide[], availableUnits: bigint): OrderTrim[] {
  const fits = (trimmed: readonly TrimSide[]): boolean =>
    trimmed.reduce((sum, side) => sum + worstPayment(side), 0n) <= availableUnits;
  if (fits(sides)) return [];
  const candidates = worstFirst(sides);
  const allLots = candidates.reduce((sum, { lots }) => sum + lots, 0n);
  const untrimmable = !fits(withTrims(sides, takeLots(candidates, allLots)));
  const needed = untrimmable ? allLots : leastLots(allLots, (lots) => fits(withTrims(sides, takeLots(candidates, lots))));
  const trims = takeLots(candidates, needed);
  if (!untrimmable) giveBack(sides, trims);
  return [...trims]
    .filter(([, lots]) => lots > 0n)
    .map(([{ side, order }, lots]) => ({ market: side.market.index, oid: order.oid, lots }));
}

/** The orders that may be trimmed, in the order in which they are. */
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

/** The first `totalLots` lots in the order of the candidates. */
function takeLots(candidates: readonly Candidate[], totalLots: bigint): Map<Candidate, bigint> {
  const trims = new Map<Candidate, bigint>();
  let needLots = totalLots;
  for (const candidate of candidates) {
    if (needLots === 0n) break;
    const lots = needLots < candidate.lots ? needLots : candidate.lots;
    trims.set(candidate, lots);
    needLots -= lots;
  }
  return trims;
}

/** The least number of lots in 1..allLots that passes; more lots never fail where fewer pass, and all of them pass. */
function leastLots(allLots: bigint, passes: (lots: bigint) => boolean): bigint {
  let low = 1n;
  let high = allLots;
  while (low < high) {
    const middle = (low + high) / 2n;
    if (passes(middle)) high = middle;
    else low = middle + 1n;
  }
  return low;
}

function withTrims(sides: readonly TrimSide[], trims: ReadonlyMap<Candidate, bigint>): TrimSide[] {
  const lotsOf = sides.map(() => new Map<number, bigint>());
  for (const [{ sideIndex, order }, lots] of trims) lotsOf[sideIndex]!.set(order.oid, lots);
  return sides.map((side, index) => {
    const trimmed = (order: RestingOrder): RestingOrder => {
      const lots = lotsOf[index]!.get(order.oid) ?? 0n;
      return lots === 0n ? order : { ...order, units: order.units - lots * side.market.lotUnits };
    };
    return { ...side, next: side.next.map(trimmed) };
  });
}

/** Lowers trims, best price first, as far as no worst payment rises. */
function giveBack(sides: readonly TrimSide[], trims: Map<Candidate, bigint>): void {
  const bestFirst = [...trims.keys()].reverse();
  withTrims(sides, trims).forEach((side, sideIndex) => {
    const slackUnits = slackByWeight(side);
    let givenUnits = 0n;
    for (const candidate of bestFirst) {
      if (candidate.sideIndex !== sideIndex) continue;
      const weight = side.side === 'ask' ? 1n : candidate.order.priceTicks;
      const freeLots = ((slackUnits.get(weight) ?? 0n) - givenUnits) / side.market.lotUnits;
      if (freeLots <= 0n) continue;
      const trimmed = trims.get(candidate)!;
      const lots = freeLots < trimmed ? freeLots : trimmed;
      trims.set(candidate, trimmed - lots);
      givenUnits += lots * side.market.lotUnits;
    }
  });
}

/** Per weight, the units that can be added there without lifting the new publication above the older ones at it or at any lower. */
function slackByWeight(side: TrimSide): Map<bigint, bigint> {
  const slack = new Map<bigint, bigint>();
  let least: bigint | null = null;
  for (const { weight, olderUnits, nextUnits } of envelopeSteps(side).reverse()) {
    const units: bigint = olderUnits - nextUnits;
    if (least === null || units < least) least = units;
    slack.set(weight, least);
  }
  return slack;
}
