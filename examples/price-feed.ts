/**
 * A made-up price feed, in place of the one that a real maker brings. Prices wander with the wall clock, so that all processes see
 * the same price at the same time without talking to each other.
 */
import { scaled } from './support.js';

/** Where each token starts, in millionths of a dollar. */
const START_MICROS: Record<string, bigint> = {
  WETH: 2_500_000_000n,
  cbBTC: 65_000_000_000n,
  USDC: 1_000_000n,
  DAI: 1_000_000n,
};

/** Tokens that don't wander. */
const STABLE = new Set(['USDC', 'DAI']);

/** Slow and quick waves: [period in ms, swing in millionths of the price]. Together they move less than 0.02 % a second. */
const WAVES = [
  [8_000, 150],
  [45_000, 1_000],
  [300_000, 4_000],
] as const;

/** A price in millionths of a dollar. Throws for a token that the feed doesn't know. */
export function usdMicros(symbol: string, nowMs: number): bigint {
  const start = START_MICROS[symbol];
  if (start === undefined) throw new Error(`The example's price feed doesn't know ${symbol}`);
  if (STABLE.has(symbol)) return start;
  const ppm = WAVES.map(([periodMs, swing]) => wave(symbol, nowMs, periodMs, swing)).reduce(
    (sum, part) => sum + part,
    0n,
  );
  return (start * (1_000_000n + ppm)) / 1_000_000n;
}

/** Price of a pair in whole ticks. */
export function referenceTicks(pair: string, tickSize: string, nowMs: number): bigint {
  const [base = '', quote = ''] = pair.split('-');
  return (usdMicros(base, nowMs) * scaled('1')) / (usdMicros(quote, nowMs) * scaled(tickSize));
}

/** Straight lines between random points, one point per period: a continuous walk that needs no memory. */
function wave(symbol: string, nowMs: number, periodMs: number, swing: number): bigint {
  const step = Math.floor(nowMs / periodMs);
  const from = BigInt(randomPoint(symbol, step, periodMs, swing));
  const to = BigInt(randomPoint(symbol, step + 1, periodMs, swing));
  return from + ((to - from) * BigInt(nowMs - step * periodMs)) / BigInt(periodMs);
}

/** A fixed pseudo-random integer in -swing..swing for each step of each wave (FNV-1a, then a final mix). */
function randomPoint(symbol: string, step: number, periodMs: number, swing: number): number {
  let hash = 0x811c9dc5;
  for (const char of `${symbol}:${periodMs}:${step}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (((hash ^ (hash >>> 13)) >>> 0) % (2 * swing + 1)) - swing;
}
