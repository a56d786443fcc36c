/** A pair of reserves whose product never falls, as Uniswap v2 has them: exact to the unit, and traded until nothing fits the pair any more. */
import { ceilDiv } from '../amounts.js';
import { FEE_DENOMINATOR } from './pool-math.js';
import { mostOf } from './search.js';
import type { Source } from './source.js';
import type { SplitKind } from './split.js';
import { stretchesOf } from './stretches.js';

/** A pair as one direction of swaps meets it. */
export interface PairState {
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

/** Reserves between which a trade keeps its bound. */
interface PairBox {
  mostReserveIn: bigint;
  leastReserveOut: bigint;
}

/**
 * How far trades of others may move a pair's reserves until a sale of `units` brings less than `boundUnits`, or a purchase of `units` costs
 * more: whatever lies between, a trade keeps the bound. Null where it does not keep it now.
 */
export function pairBox(state: PairState, kind: SplitKind, units: bigint, boundUnits: bigint): PairBox | null {
  const { reserveIn, reserveOut } = state;
  const boxAt = (mostReserveIn: bigint): PairBox => ({
    mostReserveIn,
    // Trades leave no smaller product.
    leastReserveOut: ceilDiv(reserveIn * reserveOut, mostReserveIn),
  });
  const keeps = (mostReserveIn: bigint): boolean => {
    const source = pairSource({ ...state, reserveIn: mostReserveIn, reserveOut: boxAt(mostReserveIn).leastReserveOut });
    const traded = kind === 'sell' ? source?.outputFor(units) : source?.inputFor(units);
    if (traded === null || traded === undefined) return false;
    return kind === 'sell' ? traded >= boundUnits : traded <= boundUnits;
  };
  const most = mostOf(reserveIn, 2n * reserveIn, keeps);
  return most === null ? null : boxAt(most);
}
