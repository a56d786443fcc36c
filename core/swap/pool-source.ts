import { ceilDiv } from '../amounts.js';
import { FEE_DENOMINATOR, inputBetween, outputBetween, priceAfterInput, priceAfterOutput } from './pool-math.js';
import type { Source, Stretch } from './source.js';
import { stretchesOf } from './stretches.js';

/** A stretch of constant liquidity, as far as the price can go in it. */
export interface PoolRange {
  liquidity: bigint;
  /** Where it ends in the direction of the swap. */
  endSqrtPrice: bigint;
}

/** A pool as one direction of swaps meets it. Prices are square roots of token1 per token0, Q96. */
export interface PoolState {
  id: string;
  /** The sell token is token0, so that the price falls. */
  zeroForOne: boolean;
  feePpm: bigint;
  sqrtPrice: bigint;
  /** In the order in which a swap walks through them; what lies beyond the last is not known. */
  ranges: readonly PoolRange[];
}

/** A v3 pool as a source, exact as far as its ranges are known. */
export function poolSource(state: PoolState): Source {
  const { zeroForOne, feePpm } = state;
  const afterFee = FEE_DENOMINATOR - feePpm;
  const withFee = (units: bigint): bigint => units + ceilDiv(units * feePpm, afterFee);

  function outputFor(inUnits: bigint): bigint | null {
    let left = inUnits;
    let price = state.sqrtPrice;
    let out = 0n;
    for (const { liquidity, endSqrtPrice } of state.ranges) {
      const whole = inputBetween(liquidity, price, endSqrtPrice);
      const net = (left * afterFee) / FEE_DENOMINATOR;
      if (net < whole) {
        out += outputBetween(liquidity, price, priceAfterInput(liquidity, price, net, zeroForOne));
        return out === 0n ? null : out;
      }
      out += outputBetween(liquidity, price, endSqrtPrice);
      left -= withFee(whole);
      price = endSqrtPrice;
    }
    return left === 0n && out > 0n ? out : null;
  }

  function inputFor(outUnits: bigint): bigint | null {
    if (outUnits <= 0n) return null;
    let left = outUnits;
    let price = state.sqrtPrice;
    let input = 0n;
    for (const { liquidity, endSqrtPrice } of state.ranges) {
      const whole = outputBetween(liquidity, price, endSqrtPrice);
      if (left < whole) {
        const next = priceAfterOutput(liquidity, price, left, zeroForOne);
        return next === null ? null : input + withFee(inputBetween(liquidity, price, next));
      }
      input += withFee(inputBetween(liquidity, price, endSqrtPrice));
      left -= whole;
      if (left === 0n) return input;
      price = endSqrtPrice;
    }
    return null;
  }

  const stretches = stretchesOf(stretchesOfPool(state, withFee));
  return { id: state.id, outputFor, inputFor, tradedAt: stretches.tradedAt, stretches: stretches.list };
}

/** Binary digits that terms of a stretch have behind the point. */
const POINT_BITS = 64n;

/** Constant liquidity trades as reserves do whose product is constant; what is paid counts without the fee. */
function stretchesOfPool(
  { zeroForOne, feePpm, sqrtPrice, ranges }: PoolState,
  withFee: (units: bigint) => bigint,
): Stretch[] {
  const afterFee = FEE_DENOMINATOR - feePpm;
  const list: Stretch[] = [];
  let price = sqrtPrice;
  for (const { liquidity, endSqrtPrice } of ranges) {
    const inUnits = withFee(inputBetween(liquidity, price, endSqrtPrice));
    if (liquidity > 0n && inUnits > 0n) {
      const scaled = liquidity << POINT_BITS;
      const [reserve0, reserve1] = [(scaled << 96n) / price, (scaled * price) >> 96n];
      const [reserveIn, reserveOut] = zeroForOne ? [reserve0, reserve1] : [reserve1, reserve0];
      const outUnits = outputBetween(liquidity, price, endSqrtPrice);
      const [gain, base] = [reserveOut * afterFee, reserveIn * FEE_DENOMINATOR];
      // A reserve that rounds to nothing has no rate.
      if (gain > 0n && base > 0n) list.push({ gain, base, slope: afterFee << POINT_BITS, inUnits, outUnits });
    }
    price = endSqrtPrice;
  }
  return list;
}
