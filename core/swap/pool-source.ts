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

/** Most ticks within a trade whose liquidity is checked before it: each check takes some 10,000 gas. */
export const MAX_CROSSED = 3;
/** Most answers about one pool that are kept until it is read again: more than the plans of a few quotes ask for. */
const MOST_KEPT = 64;

/** A v3 pool as a source, exact as far as its ranges are known. */
export function poolSource(state: PoolState): Source {
  const stretches = stretchesOf(stretchesOfPool(state, feeAdder(state)));
  const amountOf = (kind: SplitKind) => (units: bigint) => walked(state, kind, units)?.units ?? null;
  return {
    ...{ id: state.id, outputFor: amountOf('sell'), inputFor: amountOf('buy') },
    ...{ tradedAt: stretches.tradedAt, stretches: stretches.list, crossed: crossedIn(state) },
  };
}

/** `crossed` of a source, with the newest answers kept: the search for the worst case costs as much as planning a route. */
function crossedIn(state: PoolState): Required<Source>['crossed'] {
  const kept = new Map<string, number | null>();
  return (kind, units, boundUnits) => {
    const now = walked(state, kind, units)?.crossed ?? null;
    // The worst case crosses no fewer, and beyond that nobody asks how many.
    if (now === null || boundUnits === null || now > MAX_CROSSED) return now;
    const key = `${kind}:${units}:${boundUnits}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const crossed = poolBox(state, kind, units, boundUnits)?.crossed ?? null;
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, crossed);
    return crossed;
  };
}

/** What must be paid so that so much is left after the fee. */
const feeAdder =
  ({ feePpm }: Pick<PoolState, 'feePpm'>) =>
  (units: bigint): bigint =>
    units + ceilDiv(units * feePpm, FEE_DENOMINATOR - feePpm);

/** What a trade brings or costs, and how many ranges end within it. */
interface Walked {
  units: bigint;
  crossed: number;
}

/**
 * A sale or purchase of `units`, with so much less liquidity in each range (`missing`, by default none), from the state's price on; null for what
 * the known ranges can't trade.
 */
const walked = (state: PoolState, kind: SplitKind, units: bigint, missing = 0n): Walked | null =>
  kind === 'sell' ? sold(state, units, missing) : bought(state, units, missing);

function sold({ zeroForOne, feePpm, sqrtPrice, ranges }: PoolState, inUnits: bigint, missing: bigint): Walked | null {
  const afterFee = FEE_DENOMINATOR - feePpm;
  const withFee = feeAdder({ feePpm });
  let [left, price, out] = [inUnits, sqrtPrice, 0n];
  for (const [crossed, range] of ranges.entries()) {
    const { endSqrtPrice } = range;
    const liquidity = maxBig(range.liquidity - missing, 0n);
    const whole = inputBetween(liquidity, price, endSqrtPrice);
    const net = (left * afterFee) / FEE_DENOMINATOR;
    if (net < whole) {
      out += outputBetween(liquidity, price, priceAfterInput(liquidity, price, net, zeroForOne));
      return out === 0n ? null : { units: out, crossed };
    }
    out += outputBetween(liquidity, price, endSqrtPrice);
    left -= withFee(whole);
    if (left === 0n && out > 0n) return { units: out, crossed };
    price = endSqrtPrice;
  }
  return null;
}

function bought(
  { zeroForOne, feePpm, sqrtPrice, ranges }: PoolState,
  outUnits: bigint,
  missing: bigint,
): Walked | null {
  if (outUnits <= 0n) return null;
  const withFee = feeAdder({ feePpm });
  let [left, price, input] = [outUnits, sqrtPrice, 0n];
  for (const [crossed, range] of ranges.entries()) {
    const { endSqrtPrice } = range;
    const liquidity = maxBig(range.liquidity - missing, 0n);
    const whole = outputBetween(liquidity, price, endSqrtPrice);
    if (left < whole) {
      const next = priceAfterOutput(liquidity, price, left, zeroForOne);
      return next === null ? null : { units: input + withFee(inputBetween(liquidity, price, next)), crossed };
    }
    input += withFee(inputBetween(liquidity, price, endSqrtPrice));
    left -= whole;
    if (left === 0n) return { units: input, crossed };
    price = endSqrtPrice;
  }
  return null;
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
  const asNow = walked(state, kind, units);
  if (first === undefined || asNow === null) return null;
  const { units: now, crossed: crossedNow } = asNow;
  if (kind === 'sell' ? now < boundUnits : now > boundUnits) return null;
  const roundingUnits = ROUNDING_UNITS + BigInt(crossedNow) * ceilDiv(STEP_UNITS * now, units);
  const keeps = (one: PoolState, missing: bigint, bound: bigint): boolean => {
    const amount = walked(one, kind, units, missing)?.units;
    if (amount === undefined) return false;
    return kind === 'sell' ? amount >= bound + roundingUnits : amount <= bound - roundingUnits;
  };
  if (!keeps(state, 0n, boundUnits)) {
    const { liquidity } = first;
    const [prices, liquidities] = [
      { lowSqrtPrice: sqrtPrice, highSqrtPrice: sqrtPrice },
      { leastLiquidity: liquidity, mostLiquidity: liquidity },
    ];
    return { ...prices, ...liquidities, crossed: crossedNow, roundingUnits };
  }
  const halfway = kind === 'sell' ? ceilDiv(now + boundUnits, 2n) : (now + boundUnits) / 2n;
  // Where nothing may be lost, all must stay as it is.
  const missing = mostOf(0n, maxBig(first.liquidity - 1n, 0n), (some) => keeps(state, some, halfway)) ?? 0n;
  const moved = (move: bigint): PoolState => ({
    ...state,
    sqrtPrice: zeroForOne ? sqrtPrice - move : sqrtPrice + move,
  });
  const room = zeroForOne ? sqrtPrice - first.endSqrtPrice : first.endSqrtPrice - sqrtPrice;
  // At the end of the range another liquidity counts.
  const move = mostOf(0n, maxBig(room - 1n, 0n), (some) => keeps(moved(some), missing, boundUnits)) ?? 0n;
  const worst = moved(move);
  const [lowSqrtPrice, highSqrtPrice] = zeroForOne
    ? [worst.sqrtPrice, nearSqrtPrice]
    : [nearSqrtPrice, worst.sqrtPrice];
  const box = { lowSqrtPrice, highSqrtPrice, leastLiquidity: first.liquidity - missing, mostLiquidity: null };
  return { ...box, crossed: walked(worst, kind, units, missing)?.crossed ?? -1, roundingUnits };
}
