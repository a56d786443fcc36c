/** The books that are compressed: generated ones of every kind that a market may have, and recorded ones from files. */
import { readFileSync } from 'node:fs';
import { parseDecimal } from '../../core/amounts.js';
import type { Level } from '../../core/curve/levels.js';
import type { Side } from '../../core/types.js';

/** One side of a book. A lot at a tick is worth `tickLotMicros` millionths of a dollar. */
export interface BenchSide {
  name: string;
  side: Side;
  levels: Level[];
  tickLotMicros: number;
}

/** WETH-USDC: tick 0.01, lot 0.0001, so that one tick of one lot is a millionth of a dollar; the mid is 3,000. */
const MID_TICKS = 300_000n;
const TICK_LOT_MICROS = 1;
const LOTS_PER_DOLLAR = 1e4 / 3_000;

/** Even draws from [0, 1) that are the same on every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Levels from sizes in dollars at distances in ticks; what falls on one price is one level. */
function sideOf(name: string, side: Side, placed: readonly (readonly [ticks: number, dollars: number])[]): BenchSide {
  const lotsAt = new Map<bigint, bigint>();
  for (const [ticks, dollars] of placed) {
    const away = BigInt(Math.max(1, Math.round(ticks)));
    const priceTicks = side === 'ask' ? MID_TICKS + away : MID_TICKS - away;
    const lots = BigInt(Math.max(1, Math.round(dollars * LOTS_PER_DOLLAR)));
    lotsAt.set(priceTicks, (lotsAt.get(priceTicks) ?? 0n) + lots);
  }
  return { name, side, levels: inOrder(side, lotsAt), tickLotMicros: TICK_LOT_MICROS };
}

function inOrder(side: Side, lotsAt: ReadonlyMap<bigint, bigint>): Level[] {
  const levels = [...lotsAt].map(([priceTicks, lots]) => ({ priceTicks, lots }));
  return levels.sort((a, b) => (a.priceTicks < b.priceTicks === (side === 'ask') ? -1 : 1));
}

/** Orders closest near the mid, sizes growing with the distance, as on a busy exchange. */
function dense(name: string, side: Side, orders: number, widthTicks: number, dollars: number, seed: number): BenchSide {
  const draw = draws(seed);
  const placed = Array.from({ length: orders }, () => {
    const far = draw() ** 1.6;
    return [far * widthTicks, (2 * dollars * (0.3 + draw()) * (0.2 + far)) / orders] as const;
  });
  return sideOf(name, side, placed);
}

/** Several makers' ladders with geometric steps and sizes. */
function makers(side: Side, count: number, rungs: number, widthTicks: number): BenchSide {
  const draw = draws(7);
  const placed = Array.from({ length: count }, () => {
    const [first, skew, size] = [5 + 20 * draw(), 0.9 + 0.2 * draw(), 2_000 + 2_000 * draw()];
    const ratio = (widthTicks / first) ** (1 / (rungs - 1));
    return Array.from({ length: rungs }, (_, i) => [first * ratio ** i * skew, size * 1.2 ** i] as const);
  });
  return sideOf(`makers ${count}x${rungs}`, side, placed.flat());
}

function thin(side: Side): BenchSide {
  const draw = draws(11);
  let ticks = 10;
  const placed = Array.from({ length: 30 }, (_, i) => {
    ticks += i % 7 === 6 ? 1_200 : 60 + 200 * draw();
    return [ticks, 1_500 + 6_000 * draw()] as const;
  });
  return sideOf('thin with gaps', side, placed);
}

function wall(side: Side): BenchSide {
  const book = dense('wall', side, 480, 6_000, 1_500_000, 13);
  const depth = book.levels.reduce((sum, { lots }) => sum + lots, 0n);
  const at = book.levels[Math.floor(book.levels.length / 5)];
  const levels = book.levels.map((level) => (level === at ? { ...level, lots: level.lots + 2n * depth } : level));
  return { ...book, levels };
}

/** Books up to 3 % wide, and one of 10 % with more than 5,000 levels. */
export function generatedBooks(): BenchSide[] {
  return [
    dense('dense 200', 'ask', 200, 6_000, 860_000, 1),
    dense('dense 500', 'bid', 500, 6_000, 2_000_000, 2),
    dense('dense 1000', 'ask', 1_000, 6_000, 4_500_000, 3),
    dense('dense 1000', 'bid', 1_000, 6_000, 4_500_000, 4),
    dense('dense 2000', 'ask', 2_000, 6_000, 9_500_000, 5),
    makers('ask', 5, 20, 7_800),
    makers('bid', 5, 20, 7_800),
    thin('ask'),
    thin('bid'),
    wall('ask'),
    wall('bid'),
    dense('stress', 'ask', 7_600, 30_000, 10_800_000, 6),
    dense('stress', 'bid', 7_600, 30_000, 10_800_000, 8),
  ];
}

/** A recorded book: decimal strings, any order. Sizes below a lot and prices between ticks are rounded, asks up and bids down. */
interface BookFile {
  name: string;
  tick_size: string;
  lot_size: string;
  bids: [price: string, size: string][];
  asks: [price: string, size: string][];
}

/** Larger lots are used until a side holds at most this many, so that 7 segments can offer all of them. */
const MOST_LOTS = 800_000_000n;

/** Both sides of the book in a file, up to `withinPercent` from the best price. Throws when the file is not a book. */
export function recordedBook(path: string, withinPercent: number): BenchSide[] {
  const file = JSON.parse(readFileSync(path, 'utf8')) as Partial<BookFile>;
  const { name = path, tick_size: tickSize, lot_size: lotSize, bids, asks } = file;
  if (tickSize === undefined || lotSize === undefined || !Array.isArray(bids) || !Array.isArray(asks)) {
    throw new Error(`${path}: a book is {"name", "tick_size", "lot_size", "bids": [["price", "size"]], "asks": […]}`);
  }
  return (['ask', 'bid'] as const).map((side) => {
    const rows = side === 'ask' ? asks : bids;
    const [tick, lot] = [decimal(tickSize), decimal(lotSize)];
    let lotUnits = lot;
    let levels = near(side, levelsOf(side, rows, tick, lotUnits), withinPercent);
    while (levels.reduce((sum, { lots }) => sum + lots, 0n) > MOST_LOTS) {
      lotUnits *= 10n;
      levels = near(side, levelsOf(side, rows, tick, lotUnits), withinPercent);
    }
    // tick and lot are in units of 10^-18.
    const tickLotMicros = Number(tick * lotUnits) / 1e30;
    return { name: `${name.split(',')[0]} ${withinPercent} %`, side, levels, tickLotMicros };
  });
}

const SCALE = 18;

/** A decimal in units of 10^-18. */
function decimal(text: string): bigint {
  const { digits, scale } = parseDecimal(text);
  if (scale > SCALE) throw new Error(`more than ${SCALE} decimals: ${text}`);
  return digits * 10n ** BigInt(SCALE - scale);
}

function levelsOf(side: Side, rows: readonly [string, string][], tick: bigint, lotUnits: bigint): Level[] {
  const lotsAt = new Map<bigint, bigint>();
  for (const [price, size] of rows) {
    const priceTicks = (decimal(price) + (side === 'ask' ? tick - 1n : 0n)) / tick;
    const lots = decimal(size) / lotUnits;
    if (lots > 0n) lotsAt.set(priceTicks, (lotsAt.get(priceTicks) ?? 0n) + lots);
  }
  return inOrder(side, lotsAt);
}

function near(side: Side, levels: readonly Level[], withinPercent: number): Level[] {
  const best = levels[0]?.priceTicks ?? 0n;
  const reach = (best * BigInt(Math.round(withinPercent * 100))) / 10_000n;
  return levels.filter(({ priceTicks }) => (side === 'ask' ? priceTicks - best : best - priceTicks) <= reach);
}
