/** What is measured of a side: how far its curve is from it, and how long making and checking it takes. */
import { checkCurve, type PostedSides } from '../../core/curve/check.js';
import { compressSide } from '../../core/curve/compress.js';
import { costPoints, type CostPoint } from '../../core/curve/error.js';
import type { Level } from '../../core/curve/levels.js';
import type { Market, MarketSnapshot, Segment, Side } from '../../core/types.js';
import type { BenchSide } from './books.js';

/** Only the size of a lot matters here. */
const MARKET = { index: 0, lotUnits: 1n } as Market;

export interface Errors {
  book: string;
  side: Side;
  levels: number;
  dollars: number;
  widthPercent: number;
  knots: number;
  /** Worst overpay at any size from $100 on, and the mean over sizes from $100 to $100,000 spread evenly in magnitude, in bps. */
  worstBps: number;
  meanBps: number;
  /** Depth that the curve leaves out. */
  lostBps: number;
}

const SIZES = 61;

/** The errors of a side's curve with at most so many knots, of the words as they are posted. */
export function errorsOf(book: BenchSide, knots: number): Errors {
  const { segments, leftOutLots } = compressSide(MARKET, book.side, book.levels, knots);
  const points = costPoints(MARKET, book.levels, segments);
  const dollars = (cost: bigint): number => (Number(cost) / 256 / 1e6) * book.tickLotMicros;
  const total = dollars(points.at(-1)?.exact ?? 0n);
  let worstBps = errorAt(points, book, 100);
  for (const point of points) if (dollars(point.exact) >= 100) worstBps = Math.max(worstBps, bps(point));
  let sum = 0;
  const to = Math.min(100_000, total);
  for (let i = 0; i < SIZES; i++) sum += errorAt(points, book, 100 * (to / 100) ** (i / (SIZES - 1)));
  const lots = book.levels.reduce((lotsSum, level) => lotsSum + level.lots, 0n);
  const [best, last] = [book.levels[0]?.priceTicks ?? 1n, book.levels.at(-1)?.priceTicks ?? 1n];
  return {
    book: book.name,
    side: book.side,
    levels: book.levels.length,
    dollars: Math.round(total),
    widthPercent: Math.abs(Number(last - best) / Number(best)) * 100,
    knots,
    worstBps,
    meanBps: sum / SIZES,
    lostBps: (Number(leftOutLots) / Number(lots)) * 10_000,
  };
}

const bps = ({ exact, posted }: Pick<CostPoint, 'exact' | 'posted'>): number =>
  (Math.abs(Number(posted - exact)) / Number(exact)) * 10_000;

/** Overpay of the first so many dollars: both costs are linear between two points. */
function errorAt(points: readonly CostPoint[], book: BenchSide, dollars: number): number {
  const cost = (dollars * 256 * 1e6) / book.tickLotMicros;
  let before: CostPoint = { units: 0n, exact: 0n, posted: 0n };
  for (const point of points) {
    if (Number(point.exact) >= cost) {
      const part = (cost - Number(before.exact)) / Number(point.exact - before.exact);
      const posted = Number(before.posted) + part * Number(point.posted - before.posted);
      return (Math.abs(posted - cost) / cost) * 10_000;
    }
    before = point;
  }
  return points.length === 0 ? 0 : bps(before);
}

export interface Times {
  book: string;
  side: Side;
  levels: number;
  /** Medians in milliseconds of: one pass over the levels, compressing them into 15 segments, and checking these with one order per level. */
  readMs: number;
  compressMs: number;
  checkMs: number;
}

const ROUNDS = 61;
const WARM_UP = 40;

/** Times of one side, warmed up and interleaved. */
export function timesOf(book: BenchSide): Times {
  const snapshot = snapshotOf(book.side, book.levels);
  const { segments } = compressSide(MARKET, book.side, book.levels, 15);
  const works = [
    () => readOnce(book.levels),
    () => compressSide(MARKET, book.side, book.levels, 15),
    () => checkCurve(MARKET, snapshot, sidesOf(book.side, segments)),
  ];
  const samples = works.map((): number[] => []);
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    works.forEach((work, i) => {
      const startedMs = performance.now();
      work();
      if (round >= WARM_UP) samples[i]?.push(performance.now() - startedMs);
    });
  }
  const [readMs = 0, compressMs = 0, checkMs = 0] = samples.map(median);
  return { book: book.name, side: book.side, levels: book.levels.length, readMs, compressMs, checkMs };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The least work that reads every level: it sums up depth and cost of the side. */
function readOnce(levels: readonly Level[]): bigint {
  let [lots, cost] = [0n, 0n];
  for (const level of levels) {
    lots += level.lots;
    cost += level.lots * level.priceTicks;
  }
  return lots + cost;
}

function snapshotOf(side: Side, levels: readonly Level[]): MarketSnapshot {
  const orders = levels.map(({ priceTicks, lots }, oid) => ({ oid, maker: '0x' as const, priceTicks, sizeLots: lots }));
  const empty: MarketSnapshot = { market: 0, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, asks: [], bids: [] };
  return side === 'ask' ? { ...empty, asks: orders } : { ...empty, bids: orders };
}

const sidesOf = (side: Side, segments: Segment[]): PostedSides => ({
  asks: side === 'ask' ? segments : [],
  bids: side === 'bid' ? segments : [],
  exactAskKnots: 0,
  exactBidKnots: 0,
});
