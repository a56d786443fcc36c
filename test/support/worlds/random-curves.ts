import { compressSide } from '../../../core/curve/compress.js';
import { costOf, depthUnits, quoteCeil, quoteFloor, remaining, type TradeMode } from '../../../core/curve/walk.js';
import { decodeSide, packSide, type Knot } from '../../../core/curve/words.js';
import type { Level } from '../../../core/curve/levels.js';
import type { Segment, Side } from '../../../core/types.js';
import type { Random } from '../random.js';

interface Grid {
  lotUnits: bigint;
  tickLotUnits: bigint;
}

export interface RandomCurve {
  grid: Grid;
  askWords: bigint[];
  bidWords: bigint[];
  asks: Segment[];
  bids: Segment[];
}

/** Grids of real pairs, and any that the contract would list. */
function randomGrid(random: Random): Grid {
  const real = [
    { lotUnits: 10n ** 14n, tickLotUnits: 1n },
    { lotUnits: 10n ** 14n, tickLotUnits: 10n ** 12n },
    { lotUnits: 1000n, tickLotUnits: 10n },
    { lotUnits: 1n, tickLotUnits: 1n },
  ];
  if (random.int(0, 1) === 0) return random.pick(real);
  const tickLotUnits = random.big(1n, 1023n) * 10n ** BigInt(random.int(0, 31));
  return { lotUnits: 10n ** BigInt(random.int(0, 18)), tickLotUnits };
}

function bookSide(random: Random, grid: Grid, side: Side, bestTicks: bigint): bigint[] {
  const levels: Level[] = [];
  let priceTicks = bestTicks;
  for (let i = random.int(0, 60); i > 0 && priceTicks > 0n; i--) {
    levels.push({ priceTicks, lots: 1n + random.magnitude(28) });
    priceTicks += (side === 'ask' ? 1n : -1n) * (1n + random.magnitude(10));
  }
  return compressSide(grid, side, levels, random.pick([1, 7, 15, 23, 31])).words;
}

/** Any side that can be packed: unsorted prices, bids that run below zero, a zero mantissa in the middle. */
function anySide(random: Random): bigint[] {
  const knots: Knot[] = Array.from({ length: random.int(0, 31) }, () => ({
    mantissa: 1n + random.magnitude(11),
    exponent: random.big(0n, 15n),
    offset: random.magnitude(16),
  }));
  const words = packSide({ shift: random.big(0n, 15n), basePrice: random.magnitude(25), knots });
  if (words.length === 0 || random.int(0, 3) > 0) return words;
  const word = random.int(0, words.length - 1);
  const slot = BigInt(random.int(0, word === 0 ? 6 : 7));
  words[word] = words[word]! & ~(0xfff00000n << (32n * slot));
  return words;
}

/** Both sides of a random book, compressed, or anything that can be packed. */
export function randomCurve(random: Random): RandomCurve {
  const grid = randomGrid(random);
  const bestBid = 1n + random.magnitude(30);
  const isBook = random.int(0, 2) > 0;
  const askWords = isBook ? bookSide(random, grid, 'ask', bestBid + 1n + random.magnitude(8)) : anySide(random);
  const bidWords = isBook ? bookSide(random, grid, 'bid', bestBid) : anySide(random);
  return { grid, askWords, bidWords, asks: decodeSide(grid, 'ask', askWords), bids: decodeSide(grid, 'bid', bidWords) };
}

/** What is taken already: nothing, a part, a whole number of segments, one unit next to that, everything, or more. */
export function randomConsumed(random: Random, segments: readonly Segment[]): bigint {
  const depth = depthUnits(segments);
  const boundary = depthUnits(segments.slice(0, random.int(0, segments.length)));
  const choices = [0n, 0n, random.big(0n, depth), boundary, boundary + 1n, boundary > 0n ? boundary - 1n : 0n];
  return random.int(0, 19) === 0 ? random.big(0n, 2n ** 92n - 1n) : random.pick(choices);
}

/** Amounts for one mode, mostly such at which the result changes: whole segments and their prices, one unit next to them, limits; and any others. */
export function randomAmount(
  random: Random,
  grid: Grid,
  segments: readonly Segment[],
  consumed: bigint,
  mode: TradeMode,
): bigint {
  const left = remaining(segments, consumed);
  const depth = depthUnits(left);
  const base = random.pick([
    depth,
    depthUnits(left.slice(0, random.int(0, left.length))),
    random.big(0n, depth),
    random.magnitude(90),
  ]);
  const isBase = mode === 'buyExactOut' || mode === 'sellExactIn';
  const cost = costOf(left, base) ?? 0n;
  const round = mode === 'buyExactIn' ? quoteCeil : quoteFloor;
  const at = (isBase ? base : round(grid, cost)) + BigInt(random.pick([-1, 0, 0, 1]));
  const special = [0n, 1n, 2n ** 100n - 1n, 2n ** 100n, 2n ** 256n - 1n, random.magnitude(101)];
  return random.int(0, 9) === 0 || at < 0n ? random.pick(special) : at;
}
