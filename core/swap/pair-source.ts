/** A pair of reserves whose product never falls, as Uniswap v2 has them: exact to the unit, and traded until nothing fits the pair any more. */
import { FEE_DENOMINATOR } from './pool-math.js';
import type { Source } from './source.js';
import { stretchesOf } from './stretches.js';

/** A pair as one direction of swaps meets it. */
interface PairState {
  id: string;
  /** Of what goes in, taken before it trades. */
  feePpm: bigint;
  reserveIn: bigint;
  reserveOut: bigint;
}

/** A pair counts its reserves in 112 bits, and takes nothing beyond. */
export const MAX_RESERVE = (1n << 112n) - 1n;

/** Null for a pair that has nothing to give. */
export function pairSource({ id, feePpm, reserveIn, reserveOut }: PairState): Source | null {
  if (reserveIn <= 0n || reserveOut <= 0n) return null;
  const afterFee = FEE_DENOMINATOR - feePpm;
  const mostIn = MAX_RESERVE - reserveIn;
  const brought = (inUnits: bigint): bigint =>
    (inUnits * afterFee * reserveOut) / (reserveIn * FEE_DENOMINATOR + inUnits * afterFee);

  function outputFor(inUnits: bigint): bigint | null {
    if (inUnits <= 0n || inUnits > mostIn) return null;
    const out = brought(inUnits);
    return out === 0n ? null : out;
  }

  function inputFor(outUnits: bigint): bigint | null {
    if (outUnits <= 0n || outUnits >= reserveOut) return null;
    const input = (reserveIn * outUnits * FEE_DENOMINATOR) / ((reserveOut - outUnits) * afterFee) + 1n;
    return input > mostIn ? null : input;
  }

  const whole = {
    gain: reserveOut * afterFee,
    base: reserveIn * FEE_DENOMINATOR,
    slope: afterFee,
    inUnits: mostIn,
    outUnits: brought(mostIn),
  };
  const { tradedAt, list } = stretchesOf(mostIn === 0n ? [] : [whole]);
  return { id, outputFor, inputFor, tradedAt, stretches: list };
}
