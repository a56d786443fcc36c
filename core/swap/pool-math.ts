/**
 * Concentrated liquidity of Uniswap v3 in exact integers: prices are square roots of token1 per token0, as Q96 fixed-point numbers,
 * and a swap rounds in the pool's favour at each range that it walks through.
 */
import { ceilDiv } from '../amounts.js';

const Q96 = 2n ** 96n;
const MAX_U256 = 2n ** 256n - 1n;
export const FEE_DENOMINATOR = 1_000_000n;
/** The highest tick that has a price; the lowest is its negative. */
export const MAX_TICK = 887_272;

/** sqrt(1.0001)^-(2^i) as Q128, for i from 0: what the pool's contract multiplies by. */
const TICK_FACTORS = [
  0xfffcb933bd6fad37aa2d162d1a594001n,
  0xfff97272373d413259a46990580e213an,
  0xfff2e50f5f656932ef12357cf3c7fdccn,
  0xffe5caca7e10e4e61c3624eaa0941cd0n,
  0xffcb9843d60f6159c9db58835c926644n,
  0xff973b41fa98c081472e6896dfb254c0n,
  0xff2ea16466c96a3843ec78b326b52861n,
  0xfe5dee046a99a2a811c461f1969c3053n,
  0xfcbe86c7900a88aedcffc83b479aa3a4n,
  0xf987a7253ac413176f2b074cf7815e54n,
  0xf3392b0822b70005940c7a398e4b70f3n,
  0xe7159475a2c29b7443b29c7fa6e889d9n,
  0xd097f3bdfd2022b8845ad8f792aa5825n,
  0xa9f746462d870fdf8a65dc1f90e061e5n,
  0x70d869a156d2a1b890bb3df62baf32f7n,
  0x31be135f97d08fd981231505542fcfa6n,
  0x9aa508b5b7a84e1c677de54f3e99bc9n,
  0x5d6af8dedb81196699c329225ee604n,
  0x2216e584f5fa1ea926041bedfe98n,
  0x48a170391f7dc42444e8fa2n,
];

/** The square-root price of a tick, to the unit. Throws RangeError beyond the last tick. */
export function sqrtPriceAtTick(tick: number): bigint {
  const distance = BigInt(Math.abs(tick));
  if (distance > BigInt(MAX_TICK)) throw new RangeError(`tick ${tick} is beyond ${MAX_TICK}`);
  let ratio = 2n ** 128n;
  TICK_FACTORS.forEach((factor, bit) => {
    if ((distance >> BigInt(bit)) & 1n) ratio = (ratio * factor) >> 128n;
  });
  if (tick > 0) ratio = MAX_U256 / ratio;
  return ceilDiv(ratio, 2n ** 32n);
}

/** Amount of token0 between two prices, rounded up or down. */
function amount0(liquidity: bigint, low: bigint, high: bigint, roundUp: boolean): bigint {
  const numerator = liquidity * Q96 * (high - low);
  // Two divisions in the contract's order, since each of them rounds.
  return roundUp ? ceilDiv(ceilDiv(numerator, high), low) : numerator / high / low;
}

/** Amount of token1 between two prices, rounded up or down. */
function amount1(liquidity: bigint, low: bigint, high: bigint, roundUp: boolean): bigint {
  const numerator = liquidity * (high - low);
  return roundUp ? ceilDiv(numerator, Q96) : numerator / Q96;
}

/** What a range takes, without the fee, between two prices in the direction of the swap. */
export function inputBetween(liquidity: bigint, from: bigint, to: bigint): bigint {
  return to < from ? amount0(liquidity, to, from, true) : amount1(liquidity, from, to, true);
}

/** What a range gives between two prices in the direction of the swap. */
export function outputBetween(liquidity: bigint, from: bigint, to: bigint): bigint {
  return to < from ? amount1(liquidity, to, from, false) : amount0(liquidity, from, to, false);
}

/** The price after an input, the fee not included. Token0 pushes the price down, token1 up. */
export function priceAfterInput(liquidity: bigint, from: bigint, inUnits: bigint, zeroForOne: boolean): bigint {
  if (!zeroForOne) return from + (inUnits * Q96) / liquidity;
  const scaled = liquidity * Q96;
  return ceilDiv(scaled * from, scaled + inUnits * from);
}

/** The price after an output, or null when the range can't give that much. */
export function priceAfterOutput(
  liquidity: bigint,
  from: bigint,
  outUnits: bigint,
  zeroForOne: boolean,
): bigint | null {
  if (zeroForOne) {
    const next = from - ceilDiv(outUnits * Q96, liquidity);
    return next > 0n ? next : null;
  }
  const scaled = liquidity * Q96;
  const rest = scaled - outUnits * from;
  return rest > 0n ? ceilDiv(scaled * from, rest) : null;
}

/** Integer square root, rounded down. */
export function squareRoot(value: bigint): bigint {
  if (value < 2n) return value;
  return rootFrom(value, 1n << BigInt(Math.ceil(value.toString(2).length / 2)));
}

/** The same; a `guess` (above zero) near the root saves steps. */
export function squareRootNear(value: bigint, guess: bigint): bigint {
  if (value < 2n) return value;
  // After one step from any guess the value is never below the root.
  return rootFrom(value, (guess + value / guess) / 2n);
}

/** Newton's method from a guess that is not below the root. */
function rootFrom(value: bigint, guess: bigint): bigint {
  let root = guess;
  for (;;) {
    const next = (root + value / root) / 2n;
    if (next >= root) return root;
    root = next;
  }
}
