/**
 * What a place trades at each rate, as a list of stretches. In each, `x` in brings `gain x / (base + slope x)` out. Constant liquidity is
 * such a stretch, a constant price is one without slope, and two stretches traded one after the other are one again. So the amount at which
 * the last unit brings a given rate has a closed form. Amounts within a stretch are rounded down, those of whole stretches are as given.
 */
import { maxBig, minBig } from '../amounts.js';
import { squareRoot, squareRootNear } from './pool-math.js';
import { RATE_BITS, RATE_ONE, type Rate, type Stretch, type Traded } from './source.js';

/** Stretches in the order in which they are traded, each worse than the one before. */
export interface Stretches {
  readonly list: readonly Stretch[];
  /** The most that is traded while the last unit still brings `rate`. */
  tradedAt(rate: Rate): Traded;
}

/** Binary digits that are kept of the terms of a stretch composed of two. */
const KEPT_BITS = 256;

interface Step {
  stretch: Stretch;
  /** Input and output of all stretches before it. */
  before: Traded;
  /** Rates of its first and its last unit, in parts of 2^256. */
  firstRate: bigint;
  lastRate: bigint;
  /** Square root of gain x base, in parts of 2^128; 0 until it is needed. */
  scaled: bigint;
}

export function stretchesOf(list: readonly Stretch[]): Stretches {
  let steps: Step[] | null = null;
  let total: Traded = { inUnits: 0n, outUnits: 0n };

  /** Computed when first needed. */
  function prepare(): Step[] {
    const made: Step[] = [];
    let before: Traded = { inUnits: 0n, outUnits: 0n };
    for (const stretch of list) {
      const { gain, base, slope, inUnits, outUnits } = stretch;
      const end = base + slope * inUnits;
      const firstRate = (gain << RATE_BITS) / base;
      const lastRate = slope === 0n ? firstRate : ((gain * base) << RATE_BITS) / (end * end);
      made.push({ stretch, before, firstRate, lastRate, scaled: 0n });
      before = { inUnits: before.inUnits + inUnits, outUnits: before.outUnits + outUnits };
    }
    total = before;
    return made;
  }

  return {
    list,
    tradedAt({ out, in: input, root: known }) {
      steps ??= prepare();
      if (out === 0n) return total;
      const rate = input === RATE_ONE ? out : (out << RATE_BITS) / input;
      // Binary search for the first stretch whose last unit does not bring the rate.
      let [low, high] = [0, steps.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (steps[middle]!.lastRate >= rate) low = middle + 1;
        else high = middle;
      }
      const step = steps[low];
      if (step === undefined) return total;
      const { gain, base, slope, inUnits, outUnits } = step.stretch;
      if (step.firstRate <= rate || slope === 0n) return step.before;
      const root = known ?? squareRoot(rate);
      if (step.scaled === 0n) step.scaled = squareRootNear((gain * base) << RATE_BITS, base * root);
      const units = minBig((step.scaled / root - base) / slope, inUnits);
      if (units <= 0n) return step.before;
      return {
        inUnits: step.before.inUnits + units,
        outUnits: step.before.outUnits + minBig((gain * units) / (base + slope * units), outUnits),
      };
    },
  };
}

/** Stretches of trading through the first list, and its output through the second. */
export function inSequence(first: readonly Stretch[], second: readonly Stretch[]): Stretch[] {
  const made: Stretch[] = [];
  let [i, j] = [0, 0];
  let [one, two] = [first[0], second[0]];
  while (one !== undefined && two !== undefined) {
    // Amount that passes between the two stretches until one of them ends.
    const passed = minBig(one.outUnits, two.inUnits);
    const [head, rest] = cutAtOutput(one, passed);
    const [taken, left] = cutAtInput(two, passed);
    if (head.inUnits > 0n && taken.outUnits > 0n) {
      const both = joined(head, taken);
      if (hasRate(both)) made.push(both);
    }
    one = rest ?? first[++i];
    two = left ?? second[++j];
  }
  return made;
}

function joined(one: Stretch, two: Stretch): Stretch {
  const gain = one.gain * two.gain;
  const base = one.base * two.base;
  const slope = two.base * one.slope + two.slope * one.gain;
  const least = gain < base ? gain : base;
  const shift = BigInt(Math.max(0, bitsOf(least) - KEPT_BITS));
  return {
    gain: gain >> shift,
    base: base >> shift,
    slope: slope >> shift,
    inUnits: one.inUnits,
    outUnits: two.outUnits,
  };
}

/** Terms that round to zero give no rate. */
const hasRate = ({ gain, base }: Stretch): boolean => gain > 0n && base > 0n;

const bitsOf = (value: bigint): number => value.toString(16).length * 4;

/** The rest of a stretch after `units` went in and `brought` came out; null when the rest brings nothing. */
function after(one: Stretch, units: bigint, brought: bigint): Stretch | null {
  const base = one.base + one.slope * units;
  const rest = {
    gain: (one.gain * one.base) / base,
    base,
    slope: one.slope,
    inUnits: one.inUnits - units,
    outUnits: one.outUnits - brought,
  };
  return hasRate(rest) ? rest : null;
}

function cutAtInput(one: Stretch, units: bigint): [Stretch, Stretch | null] {
  if (units >= one.inUnits) return [one, null];
  const brought = minBig((one.gain * units) / (one.base + one.slope * units), one.outUnits);
  return [{ ...one, inUnits: units, outUnits: brought }, after(one, units, brought)];
}

/** Splits a stretch where its output reaches `brought`, the most that the next leg takes. */
function cutAtOutput(one: Stretch, brought: bigint): [Stretch, Stretch | null] {
  if (brought >= one.outUnits) return [one, null];
  const below = one.gain - one.slope * brought;
  const units = below <= 0n ? one.inUnits : minBig(maxBig((one.base * brought) / below - 1n, 0n), one.inUnits);
  if (units === one.inUnits) return [{ ...one, outUnits: brought }, null];
  return [{ ...one, inUnits: units, outUnits: brought }, after(one, units, brought)];
}
