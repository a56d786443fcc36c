import { ceilDiv, maxBig, minBig } from '../amounts.js';
import {
  FEE_DENOMINATOR,
  inputBetween,
  outputBetween,
  priceAfterInput,
  priceAfterOutput,
  squareRoot,
} from './pool-math.js';
import type { Rate, Source, Traded } from './source.js';

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

  /** Where the pool's price, the fee included, has fallen to `rate`, on the far side of the range's end at most. */
  function priceAt({ out, in: input }: Rate): bigint {
    // Selling token0 brings price x (1 - fee), selling token1 brings (1 - fee) / price.
    const [above, below] = zeroForOne
      ? [out * FEE_DENOMINATOR, input * afterFee]
      : [input * afterFee, out * FEE_DENOMINATOR];
    return below === 0n ? 0n : squareRoot((above << 192n) / below);
  }

  function tradedAt(rate: Rate): Traded {
    const target = priceAt(rate);
    const noBound = !zeroForOne && rate.out === 0n;
    let price = state.sqrtPrice;
    const traded = { inUnits: 0n, outUnits: 0n };
    for (const { liquidity, endSqrtPrice } of state.ranges) {
      const end = noBound ? endSqrtPrice : zeroForOne ? maxBig(endSqrtPrice, target) : minBig(endSqrtPrice, target);
      if (zeroForOne ? end >= price : end <= price) break;
      traded.inUnits += withFee(inputBetween(liquidity, price, end));
      traded.outUnits += outputBetween(liquidity, price, end);
      price = end;
      if (end !== endSqrtPrice) break;
    }
    return traded;
  }

  return { id: state.id, outputFor, inputFor, tradedAt };
}
