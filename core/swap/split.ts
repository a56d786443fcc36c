import { maxBig, minBig } from '../amounts.js';
import { squareRoot } from './pool-math.js';
import { RATE_BITS, RATE_ONE, type Rate, type Source } from './source.js';

/** One source's part: exactly `units` go in (kind sell) or come out (kind buy). */
export interface Part {
  id: string;
  inUnits: bigint;
  outUnits: bigint;
  /** For a path: the amounts that pass from one leg to the next, in the tokens between. Absent for a single place. */
  via?: readonly bigint[];
}

export type SplitKind = 'sell' | 'buy';

/** The rate of a square root in parts of 2^128. The search goes by roots, because amounts follow from them by a division. */
export const rateOf = (root: bigint): Rate => ({ out: root * root, in: RATE_ONE, root });
/** The meeting rate of a split is found to this many binary digits; the loss from that is about the square of the error. */
const PRECISION_BITS = 36n;
/** The same for a rate that only bounds routes. */
const ROUGH_BITS = 20n;
/** The search for the root begins with steps of this many binary digits. */
const STRIDE_BITS = 2n;

/**
 * Divides an exact input (sell) or an exact output (buy) among sources so that the last unit has the same rate everywhere. That is the best
 * split, because no source gets better with size. Empty parts are left out. Null when the sources together can't trade the amount.
 */
export function split(kind: SplitKind, sources: readonly Source[], amountUnits: bigint): Part[] | null {
  const [only] = sources;
  if (sources.length === 1 && only !== undefined) return complete(kind, [[only, amountUnits]]);
  const tradedAt = (root: bigint): bigint[] => {
    const rate = rateOf(root);
    return sources.map((source) => {
      const { inUnits, outUnits } = source.tradedAt(rate);
      return kind === 'sell' ? inUnits : outUnits;
    });
  };
  const enough = enoughAt(kind, sources, amountUnits);
  if (!enough(0n)) return null;
  const [low, high] = meetingRoot(enough, averageRoot(sources));
  return complete(kind, allocate(sources, tradedAt(high), tradedAt(low), amountUnits));
}

/** The square root of the rate at which all sources meet, in parts of 2^128, never 0; null when they can't trade so much together. */
export function meetingRootOf(kind: SplitKind, sources: readonly Source[], amountUnits: bigint): bigint | null {
  const enough = enoughAt(kind, sources, amountUnits);
  if (!enough(0n)) return null;
  const [low] = meetingRoot(enough, averageRoot(sources), ROUGH_BITS);
  return maxBig(low, 1n);
}

/** Whether all sources together trade so much while each still brings the rate of a root. */
function enoughAt(kind: SplitKind, sources: readonly Source[], amountUnits: bigint): (root: bigint) => boolean {
  return (root) => {
    const rate = rateOf(root);
    let sum = 0n;
    for (const source of sources) {
      const { inUnits, outUnits } = source.tradedAt(rate);
      sum += kind === 'sell' ? inUnits : outUnits;
      if (sum >= amountUnits) return true;
    }
    return false;
  };
}

/**
 * Two neighbouring roots: the sources trade enough at the lower one, and not at the higher one. The search begins at `guess`, above zero.
 */
function meetingRoot(
  enough: (root: bigint) => boolean,
  guess: bigint,
  precisionBits = PRECISION_BITS,
): [bigint, bigint] {
  let low = 0n;
  let high = guess;
  if (enough(high)) {
    do [low, high] = [high, high << STRIDE_BITS];
    while (enough(high));
  } else {
    for (let lower = high >> STRIDE_BITS; lower > 0n && low === 0n; lower >>= STRIDE_BITS) {
      if (enough(lower)) low = lower;
      else high = lower;
    }
  }
  while (high - low > 1n && high - low > high >> precisionBits) {
    const middle = (low + high) >> 1n;
    if (enough(middle)) low = middle;
    else high = middle;
  }
  return [low, high];
}

/** Root of the average rate at which the sources trade all they can; the meeting rate is near it. */
function averageRoot(sources: readonly Source[]): bigint {
  let [input, output] = [0n, 0n];
  for (const source of sources) {
    const { inUnits, outUnits } = source.tradedAt(rateOf(0n));
    input += inUnits;
    output += outUnits;
  }
  return input === 0n ? 1n : maxBig(squareRoot((output << RATE_BITS) / input), 1n);
}

/**
 * Each source trades what it has at better rates than the meeting rate; sources with more at that rate get the rest, in the order of the
 * sources.
 */
function allocate(
  sources: readonly Source[],
  better: readonly bigint[],
  atRate: readonly bigint[],
  amountUnits: bigint,
): [Source, bigint][] {
  let rest = amountUnits - better.reduce((sum, units) => sum + units, 0n);
  return sources.map((source, i) => {
    const base = better[i] ?? 0n;
    const extra = minBig(rest, (atRate[i] ?? 0n) - base);
    rest -= extra;
    return [source, base + extra];
  });
}

function complete(kind: SplitKind, units: readonly (readonly [Source, bigint])[]): Part[] | null {
  const parts: Part[] = [];
  for (const [source, amount] of units) {
    if (amount === 0n) continue;
    const other = kind === 'sell' ? source.outputFor(amount) : source.inputFor(amount);
    if (other === null) return null;
    const [inUnits, outUnits] = kind === 'sell' ? [amount, other] : [other, amount];
    parts.push({ id: source.id, inUnits, outUnits });
  }
  return parts.length === 0 ? null : parts;
}
