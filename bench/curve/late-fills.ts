/**
 * Cost for takers after a late fill, which lands between the cut of a curve and its post: the depth that raising the consumption to the end
 * of a segment withholds until the next post, and the price of what is left.
 */
import { exactKnots, raisedConsumption } from '../../core/curve/carry.js';
import { compressSide } from '../../core/curve/compress.js';
import { SUBTICKS_PER_TICK } from '../../core/market.js';
import type { Market, Side } from '../../core/types.js';
import type { BenchSide } from './books.js';

/** Only the lot's size is used here. It has many units, so that a late fill can be smaller than a lot. */
const MARKET = { lotUnits: 1_000_000n } as Market;

/** How much more a taker pays than the book after the late fill asks for, in bps of that; if it is negative, the operator pays. */
interface Overpay {
  meanBps: number;
  lowestBps: number;
  worstBps: number;
}

/** Late fills of one kind on one side. */
export interface LateFillCost {
  book: string;
  side: Side;
  knots: number;
  lateFills: 'one wei' | '$100 to $100,000';
  /** Depth that a late fill withholds beyond itself, in percent of the side's. */
  withheldMeanPercent: number;
  withheldWorstPercent: number;
  /** For takers of $100 to $100,000 after it: with the consumption raised, and for comparison without. */
  raised: Overpay;
  unraised: Overpay;
}

/** Sizes of late fills, and of the takers after each, spread evenly in magnitude. */
const SIZES = 31;
const FROM_DOLLARS = 100;
const TO_DOLLARS = 100_000;

/** What late fills cost takers on the curve of a side with at most `knots` knots: late fills of one wei, and realistic ones. */
export function lateFillCosts(book: BenchSide, knots: number): LateFillCost[] {
  const { segments } = compressSide(MARKET, book.side, book.levels, knots);
  const exact = exactKnots(MARKET, book.levels, segments);
  const posted = costLine(segments, book.tickLotMicros);
  const priced = book.levels.map(({ priceTicks, lots }) => ({
    lengthUnits: lots * MARKET.lotUnits,
    subticks: priceTicks * SUBTICKS_PER_TICK,
  }));
  const fair = costLine(priced, book.tickLotMicros);
  const ofSizes = (lateFills: LateFillCost['lateFills'], lateUnits: readonly number[]): LateFillCost => {
    const after = lateUnits.map((late) => ({ late, raised: Number(raisedConsumption(segments, exact, BigInt(late))) }));
    const withheld = after.map(({ late, raised }) => ((raised - late) / posted.depth) * 100);
    const sign = book.side === 'ask' ? 1 : -1;
    const overpayFrom = (start: 'late' | 'raised'): Overpay =>
      overpay(after.flatMap((one) => pricesAfter(fair, posted, one.late, one[start]).map((bps) => sign * bps)));
    return {
      book: book.name,
      side: book.side,
      knots,
      lateFills,
      withheldMeanPercent: mean(withheld),
      withheldWorstPercent: Math.max(...withheld),
      raised: overpayFrom('raised'),
      unraised: overpayFrom('late'),
    };
  };
  const realistic = sizes(fair.costAt(posted.depth)).map((dollars) => Math.round(fair.unitsFor(dollars)));
  return [ofSizes('one wei', [1]), ofSizes('$100 to $100,000', realistic)];
}

/** Sizes in dollars, below the whole side: a late fill that takes all of it leaves nothing to measure. */
function sizes(dollars: number): number[] {
  const to = Math.min(TO_DOLLARS, dollars * 0.999);
  return Array.from({ length: SIZES }, (_, i) => FROM_DOLLARS * (to / FROM_DOLLARS) ** (i / (SIZES - 1)));
}

/** By how much takers of each size pay more on the curve from `start` on than on the book from `late` on, in bps. */
function pricesAfter(fair: CostLine, posted: CostLine, late: number, start: number): number[] {
  const [fairBefore, postedBefore] = [fair.costAt(late), posted.costAt(start)];
  const leftDollars = fair.costAt(late + posted.depth - start) - fairBefore;
  if (leftDollars < FROM_DOLLARS) return [];
  return sizes(leftDollars).map((dollars) => {
    const units = fair.unitsFor(fairBefore + dollars) - late;
    return ((posted.costAt(start + units) - postedBefore) / dollars - 1) * 10_000;
  });
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const overpay = (bps: readonly number[]): Overpay => ({
  meanBps: mean(bps),
  lowestBps: bps.reduce((lowest, value) => Math.min(lowest, value), Infinity),
  worstBps: bps.reduce((worst, value) => Math.max(worst, value), -Infinity),
});

/** A cost in dollars of the first base units of a side, and how many units cost so much. */
interface CostLine {
  depth: number;
  costAt(units: number): number;
  unitsFor(dollars: number): number;
}

function costLine(pieces: readonly { lengthUnits: bigint; subticks: bigint }[], tickLotMicros: number): CostLine {
  const [units, dollars] = [[0], [0]];
  let [unitsSum, costSum] = [0n, 0n];
  for (const { lengthUnits, subticks } of pieces) {
    unitsSum += lengthUnits;
    costSum += lengthUnits * subticks;
    units.push(Number(unitsSum));
    dollars.push((Number(costSum / MARKET.lotUnits) / Number(SUBTICKS_PER_TICK) / 1e6) * tickLotMicros);
  }
  return {
    depth: Number(unitsSum),
    costAt: (at) => interpolate(units, dollars, at),
    unitsFor: (at) => interpolate(dollars, units, at),
  };
}

/** The value at `at` of the line through these points, both rising. */
function interpolate(xs: readonly number[], ys: readonly number[], at: number): number {
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= at) low = middle;
    else high = middle;
  }
  const [fromX, fromY] = [xs[low] as number, ys[low] as number];
  const [toX, toY] = [xs[high] as number, ys[high] as number];
  return toX === fromX ? fromY : fromY + ((toY - fromY) * (at - fromX)) / (toX - fromX);
}
