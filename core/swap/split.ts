import { maxBig, minBig } from '../amounts.js';
import type { Rate, Source } from './source.js';

/** One source's part: exactly `units` go in (kind sell) or come out (kind buy). */
export interface Part {
  id: string;
  inUnits: bigint;
  outUnits: bigint;
}

export type SplitKind = 'sell' | 'buy';

const RATE_BITS = 128n;
/** The denominator of rates that are looked for. */
export const RATE_ONE = 1n << RATE_BITS;
const rateOf = (value: bigint): Rate => ({ out: value, in: 1n << RATE_BITS });
/** The price at which a split meets is found to this many binary digits; what that leaves on the table is about the square of it. */
const PRECISION_BITS = 40n;
/** To so many where the price only bounds what there is. */
const ROUGH_BITS = 24n;
/** The search for that price begins with steps of so many binary digits. */
const STRIDE_BITS = 4n;

/**
 * Divides an exact input (sell) or an exact output (buy) among sources so that the last unit brings the same everywhere, which is the
 * best there is because no source gets better with size. Parts of nothing are left out. Null when the sources together can't do it.
 */
export function split(kind: SplitKind, sources: readonly Source[], amountUnits: bigint): Part[] | null {
  const [only] = sources;
  if (sources.length === 1 && only !== undefined) return complete(kind, [[only, amountUnits]]);
  const tradedAt = (rate: bigint): bigint[] =>
    sources.map((source) => {
      const { inUnits, outUnits } = source.tradedAt(rateOf(rate));
      return kind === 'sell' ? inUnits : outUnits;
    });
  const enough = (rate: bigint): boolean => tradedAt(rate).reduce((sum, units) => sum + units, 0n) >= amountUnits;
  if (!enough(0n)) return null;
  const [low, high] = meetingRate(enough, averageRate(sources));
  return complete(kind, allocate(sources, tradedAt(high), tradedAt(low), amountUnits));
}

/** The rate at which all sources meet, in parts of RATE_ONE, never 0; null when they can't trade so much together. */
export function meetingRateOf(kind: SplitKind, sources: readonly Source[], amountUnits: bigint): bigint | null {
  const enough = (rate: bigint): boolean =>
    sources.reduce((sum, source) => {
      const { inUnits, outUnits } = source.tradedAt(rateOf(rate));
      return sum + (kind === 'sell' ? inUnits : outUnits);
    }, 0n) >= amountUnits;
  if (!enough(0n)) return null;
  const [low] = meetingRate(enough, averageRate(sources), ROUGH_BITS);
  return maxBig(low, 1n);
}

/** Two neighbouring rates: enough is traded at the lower one, and not at the higher one. The search begins at `guess`, above zero. */
function meetingRate(
  enough: (rate: bigint) => boolean,
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
    const middle = (low + high) / 2n;
    if (enough(middle)) low = middle;
    else high = middle;
  }
  return [low, high];
}

/** What the sources bring on average when they trade all they can: a rate near any at which they meet. */
function averageRate(sources: readonly Source[]): bigint {
  let [input, output] = [0n, 0n];
  for (const source of sources) {
    const { inUnits, outUnits } = source.tradedAt(rateOf(0n));
    input += inUnits;
    output += outUnits;
  }
  return input === 0n ? 1n : maxBig((output << RATE_BITS) / input, 1n);
}

/** Everybody gets what is better than the meeting rate; who has more at that rate gets the rest, in the order of the sources. */
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
