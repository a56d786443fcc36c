/**
 * Searches for what a colluding maker and taker could take from the operator by late fills. It tries books that few knots can't approximate well, late
 * fills that end at every knot and breakpoint and one unit around, of the best units or of others, and then takers that end anywhere on the new curve.
 * All gains are exact, in subticks x base units; rounding to quote units is left out.
 */
import { exactKnots, raisedConsumption } from '../../../core/curve/carry.js';
import { compressSide } from '../../../core/curve/compress.js';
import { depthUnits, remaining } from '../../../core/curve/walk.js';
import { SUBTICKS_PER_TICK } from '../../../core/market.js';
import type { Market, Segment, Side } from '../../../core/types.js';
import type { Level } from '../../../core/curve/levels.js';
import { drawer, type Draw } from '../random.js';

/** Book and curve are both runs of units at a price. */
type Run = Segment;

/** One side of a book that is hard to follow, and its curve. */
interface AdversarialSide {
  market: Pick<Market, 'lotUnits'>;
  side: Side;
  levels: Level[];
  book: Run[];
  segments: Segment[];
  exactKnots: number;
}

/** Uneven draws of a size: every magnitude below 2^bits is as likely as another. */
const magnitude = (draw: Draw, bits: number): bigint => {
  const top = 2 ** draw(bits + 1);
  return BigInt(top + draw(top));
};

/** Levels whose sizes and distances grow or shrink geometrically; some books have one very large level, or tiny ones at the best prices. */
function adversarialLevels(draw: Draw, side: Side): Level[] {
  const bestTicks = 1_000 + draw(2_000_000);
  const count = 2 + draw(draw(4) === 0 ? 200 : 45);
  // A bid can't fall below half of the best price, where levels are left out anyway.
  const width = (side === 'ask' ? 0.01 + draw(90) / 100 : 0.01 + draw(45) / 100) * bestTicks;
  const sizeRatio = 0.7 + draw(2_300) / 1_000;
  const gapRatio = 0.8 + draw(700) / 1_000;
  const gaps = Array.from({ length: count }, (_, i) => gapRatio ** i);
  const gapSum = gaps.reduce((sum, gap) => sum + gap, 0);
  const dust = draw(3) === 0 ? draw(5) : 0;
  const wall = draw(3) === 0 ? draw(count) : -1;
  const first = 1 + draw(2 ** (1 + draw(18)));
  let away = 0;
  const levels: Level[] = [];
  for (let i = 0; i < count; i++) {
    const lots = i < dust ? 1 + draw(3) : i === wall ? 2 ** 26 : Math.min(2 ** 26, first * sizeRatio ** i);
    levels.push({
      priceTicks: BigInt(side === 'ask' ? bestTicks + Math.floor(away) : bestTicks - Math.floor(away)),
      lots: BigInt(Math.ceil(lots)),
    });
    away += Math.max(1, ((gaps[i] ?? 0) / gapSum) * width);
  }
  return levels.filter(({ priceTicks }) => priceTicks > 0n);
}

/** A random book, and the curve that the compressor makes of it, or one that is worse than that in places by more than rounding. */
export function adversarialSide(draw: Draw): AdversarialSide {
  const side: Side = draw(2) === 0 ? 'ask' : 'bid';
  const market = { lotUnits: draw(2) === 0 ? 1n : 10n ** BigInt(draw(15)) };
  const levels = adversarialLevels(draw, side);
  const maxKnots = [1, 2, 7, 7, 15, 15, 31, 31][draw(8)] ?? 7;
  const { segments } = compressSide(market, side, levels, maxKnots);
  if (draw(4) === 0) {
    let worse = 0n;
    for (const segment of segments) {
      if (draw(3) === 0) worse += magnitude(draw, 8);
      segment.subticks += side === 'ask' ? worse : -worse;
    }
  }
  const book = levels.map(({ priceTicks, lots }) => ({
    lengthUnits: lots * market.lotUnits,
    subticks: priceTicks * SUBTICKS_PER_TICK,
  }));
  const sold = segments.filter(({ subticks }) => subticks > 0n);
  return { market, side, levels, book, segments: sold, exactKnots: exactKnots(market, levels, sold) };
}

/**
 * The operator's lowest gain when takers take from `curve` and makers are credited with the best of `book`: the minimum over all breakpoints of both,
 * since both costs are linear between them. Zero before anything is sold.
 */
function lowestGain(side: Side, curve: readonly Run[], book: readonly Run[]): bigint {
  let lowest = 0n;
  let gain = 0n;
  let level = 0;
  let levelLeft = book[0]?.lengthUnits ?? 0n;
  for (const { lengthUnits, subticks } of curve) {
    for (let left = lengthUnits; left > 0n;) {
      while (levelLeft === 0n) {
        const next = book[++level];
        if (next === undefined) throw new RangeError('the curve sells more than the book has');
        levelLeft = next.lengthUnits;
      }
      const step = left < levelLeft ? left : levelLeft;
      const worse = subticks - (book[level]?.subticks ?? 0n);
      gain += side === 'ask' ? step * worse : -step * worse;
      if (gain < lowest) lowest = gain;
      left -= step;
      levelLeft -= step;
    }
  }
  return lowest;
}

/** The book less up to `units` of any of its levels. */
function without(draw: Draw, book: readonly Run[], units: bigint): Run[] {
  let left = units;
  const rest = book.map((run) => ({ ...run }));
  for (let tries = 1 + draw(6); tries > 0 && left > 0n; tries--) {
    const run = rest[draw(rest.length)];
    if (run === undefined) break;
    const most = run.lengthUnits < left ? run.lengthUnits : left;
    const taken = draw(2) === 0 ? most : (most * BigInt(draw(1_000))) / 1_000n;
    run.lengthUnits -= taken;
    left -= taken;
  }
  return rest;
}

/** Every breakpoint of a side and one unit around it, and a few points between. */
function carriesOf(draw: Draw, { book, segments }: AdversarialSide): bigint[] {
  const depth = depthUnits(segments);
  const carries = new Set<bigint>([1n]);
  for (const runs of [segments, book]) {
    let end = 0n;
    for (const { lengthUnits } of runs) {
      end += lengthUnits;
      for (const around of [-1n, 0n, 1n]) carries.add(end + around);
    }
  }
  for (let i = 0; i < 16; i++) carries.add((depth * BigInt(draw(1_000_000))) / 1_000_000n);
  return [...carries].filter((carry) => carry > 0n && carry <= depth);
}

/** What a search saw. Gains are the operator's, in subticks x base units. */
interface CarrySearch {
  curves: number;
  carries: number;
  /** Carries after which the new curve starts elsewhere. */
  raised: number;
  lowest: bigint;
  /** Where the lowest gain was, to be built again. */
  at: { seed: number; carryUnits: bigint } | null;
}

/** Where a rule lets a new curve start, of whose side so much was taken between cut and post. */
export type CarryRule = (one: AdversarialSide, carryUnits: bigint) => bigint;

/** The contract's rule. */
export const raising: CarryRule = (one, carryUnits) => raisedConsumption(one.segments, one.exactKnots, carryUnits);

/** Tries at least so many carries on curves of the seeds from `seed` on. */
export function searchCarries(seed: number, carries: number, rule: CarryRule): CarrySearch {
  const search: CarrySearch = { curves: 0, carries: 0, raised: 0, lowest: 0n, at: null };
  while (search.carries < carries) {
    const curveSeed = seed + search.curves;
    const draw = drawer(curveSeed);
    const one = adversarialSide(draw);
    const { side, book, segments } = one;
    for (const carryUnits of carriesOf(draw, one)) {
      const start = rule(one, carryUnits);
      if (start !== carryUnits) search.raised += 1;
      const sold = remaining(segments, start);
      for (const left of [remaining(book, carryUnits), without(draw, book, carryUnits)]) {
        const gain = lowestGain(side, sold, left);
        if (gain < search.lowest) [search.lowest, search.at] = [gain, { seed: curveSeed, carryUnits }];
      }
      search.carries += 1;
    }
    search.curves += 1;
  }
  return search;
}
