import { ceilDiv, maxBig } from '../amounts.js';
import { FEE_DENOMINATOR, inputBetween, outputBetween, priceAfterInput, priceAfterOutput } from './pool-math.js';
import { mostOf } from './search.js';
import type { Source, Stretch } from './source.js';
import type { SplitKind } from './split.js';
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
  /** How far the price may go against the direction of the swap before it leaves the first range. Default: nowhere. */
  nearSqrtPrice?: bigint;
}

/** A v3 pool as a source, exact as far as its ranges are known. */
export function poolSource(state: PoolState): Source {
  const stretches = stretchesOf(stretchesOfPool(state, feeAdder(state)));
  return {
    ...{ id: state.id, ...amountsOf(state), tradedAt: stretches.tradedAt, stretches: stretches.list },
    crossed: (kind, units, boundUnits) => poolBox(state, kind, units, boundUnits)?.crossed ?? null,
  };
}

/** What must be paid so that so much is left after the fee. */
const feeAdder =
  ({ feePpm }: Pick<PoolState, 'feePpm'>) =>
  (units: bigint): bigint =>
    units + ceilDiv(units * feePpm, FEE_DENOMINATOR - feePpm);

/** What a pool gives and takes; null for what it can't trade. */
function amountsOf(state: PoolState): Pick<Source, 'outputFor' | 'inputFor'> {
  const { zeroForOne, feePpm } = state;
  const afterFee = FEE_DENOMINATOR - feePpm;
  const withFee = feeAdder(state);

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

  return { outputFor, inputFor };
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

/** What rounding may take or give in a trade over a few ranges, in units: within a box amounts rise and fall by it besides. */
const ROUNDING_UNITS = 8n;
/** Units of what is given that rounding may take at the end of each range; they are worth so many of the other side as the trade gives. */
const STEP_UNITS = 4n;

/** Between which prices and liquidities a trade keeps its bound, while the ticks within it, and by how much each changes the liquidity, are as they are now. */
interface PoolBox {
  lowSqrtPrice: bigint;
  highSqrtPrice: bigint;
  leastLiquidity: bigint;
  /** Null for none. */
  mostLiquidity: bigint | null;
  /** How many of the ranges end within the trade, from the worst price on. */
  crossed: number;
  /** What rounding may take besides, of the side that is bounded. */
  roundingUnits: bigint;
}

/**
 * How far a pool's price may move within its range, and how much of its liquidity may go, until a sale of `units` brings less than
 * `boundUnits`, or a purchase of `units` costs more. Half of what may be lost is for the liquidity. Where no more may be lost than rounding
 * takes, the box is what the pool is now, and nothing beside it: better prices round otherwise. Null where the trade does not keep the bound now.
 */
export function poolBox(state: PoolState, kind: SplitKind, units: bigint, boundUnits: bigint): PoolBox | null {
  const { zeroForOne, sqrtPrice, nearSqrtPrice = sqrtPrice, ranges } = state;
  const [first] = ranges;
  const now = traded(state, kind, units);
  if (first === undefined || now === null) return null;
  if (kind === 'sell' ? now < boundUnits : now > boundUnits) return null;
  const roundingUnits = ROUNDING_UNITS + BigInt(crossedBy(state, kind, units)) * ceilDiv(STEP_UNITS * now, units);
  const keeps = (one: PoolState, bound: bigint): boolean => {
    const amount = traded(one, kind, units);
    return amount !== null && (kind === 'sell' ? amount >= bound + roundingUnits : amount <= bound - roundingUnits);
  };
  if (!keeps(state, boundUnits)) {
    const { liquidity } = first;
    const [prices, liquidities] = [
      { lowSqrtPrice: sqrtPrice, highSqrtPrice: sqrtPrice },
      { leastLiquidity: liquidity, mostLiquidity: liquidity },
    ];
    return { ...prices, ...liquidities, crossed: crossedBy(state, kind, units), roundingUnits };
  }
  const thinned = (missing: bigint): PoolState => ({
    ...state,
    ranges: ranges.map((one) => ({ ...one, liquidity: maxBig(one.liquidity - missing, 0n) })),
  });
  const halfway = kind === 'sell' ? ceilDiv(now + boundUnits, 2n) : (now + boundUnits) / 2n;
  // Where nothing may be lost, all must stay as it is.
  const missing = mostOf(0n, maxBig(first.liquidity - 1n, 0n), (some) => keeps(thinned(some), halfway)) ?? 0n;
  const moved = (move: bigint): PoolState => ({
    ...thinned(missing),
    sqrtPrice: zeroForOne ? sqrtPrice - move : sqrtPrice + move,
  });
  const room = zeroForOne ? sqrtPrice - first.endSqrtPrice : first.endSqrtPrice - sqrtPrice;
  // At the end of the range another liquidity counts.
  const move = mostOf(0n, maxBig(room - 1n, 0n), (some) => keeps(moved(some), boundUnits)) ?? 0n;
  const worst = moved(move);
  const [lowSqrtPrice, highSqrtPrice] = zeroForOne
    ? [worst.sqrtPrice, nearSqrtPrice]
    : [nearSqrtPrice, worst.sqrtPrice];
  const box = { lowSqrtPrice, highSqrtPrice, leastLiquidity: first.liquidity - missing, mostLiquidity: null };
  return { ...box, crossed: crossedBy(worst, kind, units), roundingUnits };
}

/** How many ranges end within a trade; -1 for one that they don't hold. */
const crossedBy = (state: PoolState, kind: SplitKind, units: bigint): number =>
  state.ranges.findIndex((_, i) => traded({ ...state, ranges: state.ranges.slice(0, i + 1) }, kind, units) !== null);

const traded = (state: PoolState, kind: SplitKind, units: bigint): bigint | null =>
  kind === 'sell' ? amountsOf(state).outputFor(units) : amountsOf(state).inputFor(units);
