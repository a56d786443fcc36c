/**
 * Where to put the knots of one side. Only here and in lengths.ts does the curve use floating point: a knot decides how close the curve
 * comes to the book, but no amount that is paid, because every posted number is computed from the knots in integers and checked. Only IEEE
 * basic operations and square roots appear, so equal books give equal knots everywhere.
 *
 * The exact cost C of a side is convex and piecewise linear, its pieces the price levels (bids: -C). A curve is made of chords of C. The
 * farthest a chord from a given knot may reach, while its error R stays within eps x w at every breakpoint that it passes, grows with the
 * knot, so taking the farthest reach each time needs the fewest knots for eps; bisection finds the least eps for the knots at hand. The
 * weight w = C^1.25 keeps the relative error lower for small trades than for large ones.
 */

/** A price level: lots are whole, exact numbers; the price is negative on bids, so that prices always rise. */
export interface FloatLevel {
  price: number;
  lots: number;
}

/** Where the search stops: the bounds on eps differ by less than 0.05 %. */
const EPS_RATIO = 1.0005;
/** Bound on each phase of the search; a phase takes about 20 passes. */
const MAX_PASSES = 200;

/** Breakpoints of the exact cost: lots and cost after each level, and the weight of an error there. */
interface Breakpoints {
  lots: Float64Array;
  cost: Float64Array;
  weight: Float64Array;
  price: Float64Array;
  maxLots: number;
  ownLevels: number;
  maxError: number;
}

/** Further limits on the segments. */
export interface KnotLimits {
  /** How many leading levels have a segment each. */
  ownLevels?: number;
  /** Maximum error at any size, relative to the exact cost. */
  maxError?: number;
}

/**
 * The last lots of each segment, rising, at most `maxKnots` of them, the last one the depth of the side. Segments have at most `maxLots`
 * lots; the caller must give enough knots for all limits. Prices must rise strictly.
 */
export function chooseKnots(
  levels: readonly FloatLevel[],
  maxKnots: number,
  maxLots: number,
  limits: KnotLimits = {},
): number[] {
  const points = breakpoints(levels, maxLots, limits);
  if (points.lots.length === 0) return [];
  const exact = farthestReach(points, 0, maxKnots);
  if (exact !== null) return exact;
  // The error of K chords falls with the square of K.
  let high = singleChordEps(points) / (maxKnots * maxKnots);
  let best = farthestReach(points, high, maxKnots);
  for (let pass = 0; best === null && pass < MAX_PASSES; pass++) {
    high *= 4;
    best = farthestReach(points, high, maxKnots);
  }
  if (best === null) return reach(points, Infinity, maxKnots);
  let low = high;
  for (let pass = 0; low === high && pass < MAX_PASSES; pass++) {
    const knots = farthestReach(points, low / 4, maxKnots);
    low /= 4;
    if (knots !== null) [high, best] = [low, knots];
  }
  for (let pass = 0; high / low > EPS_RATIO && pass < MAX_PASSES; pass++) {
    const middle = Math.sqrt(low) * Math.sqrt(high);
    const knots = farthestReach(points, middle, maxKnots);
    if (knots === null) low = middle;
    else [high, best] = [middle, knots];
  }
  return best;
}

/** How many lots of the side at most `maxKnots` segments can offer within all limits, however large the errors at smaller sizes become. */
export function reachableLots(
  levels: readonly FloatLevel[],
  maxKnots: number,
  maxLots: number,
  limits: KnotLimits,
): number {
  return reach(breakpoints(levels, maxLots, limits), Infinity, maxKnots).at(-1) ?? 0;
}

function breakpoints(
  levels: readonly FloatLevel[],
  maxLots: number,
  { ownLevels = 0, maxError = Infinity }: KnotLimits,
): Breakpoints {
  const array = (): Float64Array => new Float64Array(levels.length);
  const points = { lots: array(), cost: array(), weight: array(), price: array(), maxLots, ownLevels, maxError };
  let lots = 0;
  let cost = 0;
  levels.forEach((level, i) => {
    lots += level.lots;
    cost += level.lots * level.price;
    const notional = Math.abs(cost);
    points.lots[i] = lots;
    points.cost[i] = cost;
    points.weight[i] = notional * Math.sqrt(Math.sqrt(notional));
    points.price[i] = level.price;
  });
  return points;
}

/** The eps at which one chord is good enough over all levels behind those that have a segment each. */
function singleChordEps({ lots, cost, weight, ownLevels }: Breakpoints): number {
  const [fromLots, fromCost] = [lots[ownLevels - 1] ?? 0, cost[ownLevels - 1] ?? 0];
  const slope = ((cost.at(-1) ?? 0) - fromCost) / ((lots.at(-1) ?? 1) - fromLots);
  let eps = Number.MIN_VALUE;
  for (let i = ownLevels; i < lots.length; i++) {
    const error = slope * ((lots[i] as number) - fromLots) - ((cost[i] as number) - fromCost);
    eps = Math.max(eps, error / (weight[i] as number));
  }
  return eps;
}

/** The fewest knots for eps, or null when they are more than `maxKnots`. */
function farthestReach(points: Breakpoints, eps: number, maxKnots: number): number[] | null {
  const knots = reach(points, eps, maxKnots);
  return knots.at(-1) === points.lots.at(-1) ? knots : null;
}

/**
 * Up to `maxKnots` knots for eps. Each is the farthest whole lot that one chord from the knot before it may end at, and at least one lot
 * away. Nearly all time goes into the passes over the breakpoints, so nothing is allocated in them.
 */
function reach(points: Breakpoints, eps: number, maxKnots: number): number[] {
  const { lots, cost, weight, price, maxLots, ownLevels, maxError } = points;
  const isBounded = maxError !== Infinity;
  const count = lots.length;
  const knots: number[] = [];
  let [fromLots, fromCost, level] = [0, 0, 0];
  for (; level < ownLevels && knots.length < maxKnots; level++) {
    [fromLots, fromCost] = [lots[level] as number, cost[level] as number];
    knots.push(fromLots);
  }
  while (level < count && knots.length < maxKnots) {
    let steepest = Infinity;
    let [atLots, atCost] = [fromLots, fromCost];
    for (; level < count; level++) {
      const runCost = (cost[level] as number) - fromCost;
      const run = (lots[level] as number) - fromLots;
      if (run > maxLots || runCost > steepest * run) break;
      const loosest = eps * (weight[level] as number);
      const error = isBounded ? Math.min(loosest, maxError * Math.abs(cost[level] as number)) : loosest;
      const bound = (runCost + error) / run;
      if (bound < steepest) steepest = bound;
      [atLots, atCost] = [lots[level] as number, cost[level] as number];
    }
    if (level < count) {
      // The chord may end inside the level that is too far, as long as it stays within the bounds of the levels before.
      const step = price[level] as number;
      const free = Math.min(lots[level] as number, fromLots + maxLots) - atLots;
      const slack = steepest * (atLots - fromLots) - (atCost - fromCost);
      const within = steepest < step ? Math.floor(slack / (step - steepest)) : free;
      const taken = Math.max(0, Math.min(free, within));
      [atLots, atCost] = [atLots + taken, atCost + taken * step];
      if (atLots === lots[level]) level++;
    }
    knots.push(atLots);
    [fromLots, fromCost] = [atLots, atCost];
  }
  return knots;
}

/**
 * Errors of a choice of knots relative to the exact cost: at the worst size, and the mean over sizes spaced evenly on a logarithmic scale.
 */
export interface KnotErrors {
  worst: number;
  mean: number;
}

/** Sizes that the mean is taken over: from 1/1024 of the depth to all of it, four to an octave. */
const MEAN_SIZES = 41;

/** Errors of knots, as `chooseKnots` gives them, before anything is rounded. */
export function knotErrors(levels: readonly FloatLevel[], knots: readonly number[]): KnotErrors {
  const points = breakpoints(levels, Infinity, {});
  const depth = points.lots.at(-1) ?? 0;
  if (depth === 0) return { worst: 0, mean: 0 };
  const sizes = [depth];
  while (sizes.length < MEAN_SIZES) sizes.unshift((sizes[0] as number) / Math.sqrt(Math.sqrt(2)));
  const exactCosts = costsAt(points.lots, points.cost, sizes);
  const knotCosts = costsAt(points.lots, points.cost, knots);
  const errors = (postedCosts: readonly number[], exact: ArrayLike<number>): number[] =>
    postedCosts.map((posted, i) => Math.abs(posted / (exact[i] as number) - 1));
  const atSizes = errors(costsAt(knots, knotCosts, sizes), exactCosts);
  const atLevels = errors(costsAt(knots, knotCosts, points.lots), points.cost);
  return {
    worst: atLevels.reduce((worst, error) => Math.max(worst, error), 0),
    mean: atSizes.reduce((sum, error) => sum + error, 0) / MEAN_SIZES,
  };
}

/** The cost of so many first lots, at each of these rising sizes. */
export function costsOf(levels: readonly FloatLevel[], sizes: readonly number[]): number[] {
  let [level, lotsBefore, costBefore] = [0, 0, 0];
  return sizes.map((size) => {
    for (; level < levels.length - 1; level++) {
      const { price, lots } = levels[level] as FloatLevel;
      if (lotsBefore + lots >= size) break;
      lotsBefore += lots;
      costBefore += lots * price;
    }
    return costBefore + (size - lotsBefore) * (levels[level]?.price ?? 0);
  });
}

/** Values at rising `sizes` of the piecewise linear function through the origin and these rising points. */
function costsAt(lots: ArrayLike<number>, cost: ArrayLike<number>, sizes: ArrayLike<number>): number[] {
  let i = 0;
  return Array.from(sizes, (size) => {
    while (i < lots.length - 1 && (lots[i] as number) < size) i++;
    const [from, fromCost] = i === 0 ? [0, 0] : [lots[i - 1] as number, cost[i - 1] as number];
    const [to, toCost] = [lots[i] as number, cost[i] as number];
    return toCost - ((toCost - fromCost) * (to - size)) / (to - from);
  });
}
