/** Numbers that are the same for the same seed on every machine. */
export interface Random {
  /** An integer from `low` to `high`, both included, drawn evenly. */
  int(low: number, high: number): number;
  big(low: bigint, high: bigint): bigint;
  /** A number below 2^bits whose magnitude is drawn evenly, so that small ones are as likely as large ones. */
  magnitude(bits: number): bigint;
  pick<T>(items: readonly T[]): T;
}

/** A splitmix64 generator. */
export function seededRandom(seed: number): Random {
  let state = BigInt.asUintN(64, BigInt(seed));
  const next64 = (): bigint => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  };
  const big = (low: bigint, high: bigint): bigint => {
    const range = high - low + 1n;
    let drawn = 0n;
    // 64 bits more than needed make the draw even enough.
    for (let bits = 0; bits < range.toString(2).length + 64; bits += 64) drawn = (drawn << 64n) | next64();
    return low + (drawn % range);
  };
  const int = (low: number, high: number): number => Number(big(BigInt(low), BigInt(high)));
  return {
    big,
    int,
    magnitude: (bits) => big(0n, 2n ** BigInt(int(0, bits)) - 1n),
    pick: (items) => items[int(0, items.length - 1)]!,
  };
}

/** Even draws from 0 to `below` - 1, at most 2^32 - 1, the same for the same seed, where there are millions of them. */
export type Draw = (below: number) => number;

export function drawer(seed: number): Draw {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
