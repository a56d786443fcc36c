/** Concentrated liquidity as pools of Uniswap v3 and v4 keep it: a bitmap of initialised ticks, and by how much liquidity changes at each. */
import { MAX_TICK, sqrtPriceAtTick } from '../core/swap/pool-math.js';
import type { PoolRange } from '../core/swap/pool-source.js';

/** All that a pool can have, which counts in 128 bits. */
const MAX_LIQUIDITY = (1n << 128n) - 1n;
/** Words of the tick bitmap that are read to either side of the current one; each spans 256 tick spacings. */
const BITMAP_REACH = 2;
const WORD_BITS = 256;
/** Ticks beyond this many, nearest first, are not read: the known depth then ends there. */
const MAX_TICKS = 60;

/** Where a pool is, as its state says. */
interface PoolPlace {
  sqrtPrice: bigint;
  tick: number;
  spacing: number;
  liquidity: bigint;
}

/** Reads parts of a pool's state, each in the order asked for. */
interface TickReader {
  /** Words of the bitmap by their numbers. */
  bitmaps(words: readonly number[]): Promise<bigint[]>;
  /** Net liquidity of initialised ticks. */
  nets(ticks: readonly number[]): Promise<bigint[]>;
}

/** Where a range ends, and by how much liquidity changes there as the price rises through it; zero at the end of a word. */
interface RangeEnd {
  tick: number;
  net: bigint;
}

export interface KnownRanges {
  ranges: PoolRange[];
  /** Of each of the ranges. */
  ticks: RangeEnd[];
  /** How far the price may go against the direction of the swap within its range: to the next tick there, or the end of the word. */
  nearSqrtPrice: bigint;
}

/**
 * The ranges that a swap walks through, with the steps that the contract takes: it stops, and rounds, also at the end of each word of the bitmap.
 * Empty for a pool that has nothing to give. Throws RangeError for a state that no pool can have.
 */
export async function rangesAhead(place: PoolPlace, zeroForOne: boolean, reader: TickReader): Promise<KnownRanges> {
  assertPossible(place);
  const { tick, spacing } = place;
  const compressed = Math.floor(tick / spacing);
  const direction = zeroForOne ? -1 : 1;
  // The current tick's own boundary is crossed by a falling price only.
  const isAhead = (one: number): boolean => (zeroForOne ? one <= compressed : one > compressed);
  const words = Array.from({ length: BITMAP_REACH + 1 }, (_, i) => (compressed >> 8) + i * direction);
  const bitmaps = await reader.bitmaps(words);
  const found = bitmaps.flatMap((bitmap, i) => bitsOf(bitmap).map((bit) => (words[i] ?? 0) * WORD_BITS + bit));
  const nearest = found
    .filter(isAhead)
    .sort((a, b) => (a - b) * direction)
    .slice(0, MAX_TICKS);
  const last = nearest.at(-1);
  if (last === undefined) return { ranges: [], ticks: [], nearSqrtPrice: place.sqrtPrice };
  const nets = await reader.nets(nearest.map((one) => one * spacing));
  const netAt = new Map(nearest.map((one, i) => [one, nets[i]!]));
  for (const word of words) {
    const end = word * WORD_BITS + (zeroForOne ? 0 : WORD_BITS - 1);
    if (isAhead(end) && (last - end) * direction > 0 && !netAt.has(end)) netAt.set(end, 0n);
  }
  const ticks = [...netAt].sort(([a], [b]) => (a - b) * direction).map(([one, net]) => ({ tick: one * spacing, net }));
  const nearSqrtPrice = nearSqrtPriceOf(place, zeroForOne, bitmaps[0]!);
  return { ranges: rangesOf(place.liquidity, ticks, zeroForOne), ticks, nearSqrtPrice };
}

/** A price that is at a tick may count as that of the tick below, which another liquidity follows: the tick itself is out of reach. */
function nearSqrtPriceOf({ sqrtPrice, tick, spacing }: PoolPlace, zeroForOne: boolean, bits: bigint): bigint {
  const compressed = Math.floor(tick / spacing);
  const start = (compressed >> 8) * WORD_BITS;
  const found = bitsOf(bits).map((bit) => start + bit);
  const end = zeroForOne
    ? (found.find((one) => one > compressed) ?? start + WORD_BITS)
    : (found.findLast((one) => one <= compressed) ?? start);
  // Beyond the last tick there is no price.
  const endPrice = sqrtPriceAtTick(Math.min(Math.max(end * spacing, -MAX_TICK), MAX_TICK));
  const reach = zeroForOne ? endPrice - 1n : endPrice + 1n;
  return (zeroForOne ? reach > sqrtPrice : reach < sqrtPrice) ? reach : sqrtPrice;
}

function assertPossible({ sqrtPrice, tick, spacing, liquidity }: PoolPlace): void {
  // A price that fell to the boundary of a tick is still that of the tick below.
  if (tick === MAX_TICK || sqrtPrice < sqrtPriceAtTick(tick) || sqrtPrice > sqrtPriceAtTick(tick + 1))
    throw new RangeError(`a pool's square-root price of ${sqrtPrice} is none of tick ${tick}`);
  if (liquidity > MAX_LIQUIDITY) throw new RangeError(`no pool has a liquidity of ${liquidity}`);
  if (spacing < 1 || spacing > MAX_TICK) throw new RangeError(`no pool has a tick spacing of ${spacing}`);
}

function bitsOf(word: bigint): number[] {
  return Array.from({ length: WORD_BITS }, (_, bit) => bit).filter((bit) => (word >> BigInt(bit)) & 1n);
}

/** Liquidity changes by a tick's net amount when the price rises through it, and the other way when it falls. */
function rangesOf(first: bigint, ticks: readonly RangeEnd[], zeroForOne: boolean): PoolRange[] {
  let liquidity = first;
  return ticks.map(({ tick, net }) => {
    const range = { liquidity, endSqrtPrice: sqrtPriceAtTick(tick) };
    liquidity += zeroForOne ? -net : net;
    if (liquidity < 0n || liquidity > MAX_LIQUIDITY) throw new RangeError(`no pool has a liquidity of ${liquidity}`);
    return range;
  });
}
