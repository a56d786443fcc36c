/** The poster's measurements, for status pages and alarms. */
import type { LeftOut } from './prepare.js';

/** Quantiles in milliseconds of the newest samples; null before the first one. `count` counts all samples ever. */
interface Quantiles {
  p50: number | null;
  p99: number | null;
  count: number;
}

export interface PosterMetrics {
  /** Of orders that were acknowledged and are in a curve, per pair: until its transaction was signed, and until it was seen on-chain. */
  latency: { pair: string; orderToSignMs: Quantiles; orderToLandedMs: Quantiles }[];
  /** Records sent, by kind, and why nothing was sent where something might have been. */
  sent: { full: number; partial: number; touch: number };
  skipped: Readonly<Record<string, number>>;
  transactions: { sent: number; replacements: number; landed: number; reverted: number; failedRounds: number };
  /** Blocks that went by while a publication of ours waited to be mined. */
  missedBlocks: number;
  /** Depth that the newest curves of the markets left out, as far as any was posted since the start. */
  leftOut: (LeftOut & { pair: string })[];
}

const REMEMBERED = 1_024;

/** A sliding window of samples. */
export function createSamples(): { add(ms: number): void; quantiles(): Quantiles } {
  const window: number[] = [];
  let count = 0;
  return {
    add(ms) {
      window[count % REMEMBERED] = Math.max(0, ms);
      count += 1;
    },
    quantiles() {
      const sorted = [...window].sort((a, b) => a - b);
      const at = (permille: number): number | null =>
        sorted.length === 0
          ? null
          : (sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * permille) / 1_000))] ?? null);
      return { p50: at(500), p99: at(990), count };
    },
  };
}

type Counters = Pick<PosterMetrics, 'sent' | 'transactions' | 'missedBlocks'> & { skipped: Record<string, number> };

interface Meter {
  readonly counters: Counters;
  /** An order row that opens orders in this market was compacted; it goes into the market's next publication. */
  ordered(market: number, timeMs: number): void;
  /** A publication with a new snapshot was signed. */
  signed(market: number, seq: number, nowMs: number): void;
  /** The newest publication of the market that landed, and when that was seen. */
  landed(market: number, seq: number, seenMs: number): void;
  /** What the market's newest curve leaves out. Returns whether a side leaves depth out for its error that did not, or no longer. */
  leftOut(market: number, leftOut: readonly LeftOut[]): boolean;
  read(pairOf: (market: number) => string): PosterMetrics;
}

/** Bounds on what waits for a landing, per market; beyond them the oldest samples are dropped. */
const MAX_ORDERS = 1_000;
const MAX_WAITING = 64;

interface MarketMeter {
  orders: number[];
  waiting: { seq: number; orders: number[] }[];
  toSign: ReturnType<typeof createSamples>;
  toLanded: ReturnType<typeof createSamples>;
  leftOut: readonly LeftOut[];
}

/** An empty meter. */
export function createMeter(): Meter {
  const counters: Counters = {
    sent: { full: 0, partial: 0, touch: 0 },
    skipped: {},
    transactions: { sent: 0, replacements: 0, landed: 0, reverted: 0, failedRounds: 0 },
    missedBlocks: 0,
  };
  const markets = new Map<number, MarketMeter>();
  const of = (market: number): MarketMeter => {
    const known = markets.get(market) ?? {
      orders: [],
      waiting: [],
      toSign: createSamples(),
      toLanded: createSamples(),
      leftOut: [],
    };
    markets.set(market, known);
    return known;
  };

  return {
    counters,
    ordered(market, timeMs) {
      const { orders } = of(market);
      orders.push(timeMs);
      if (orders.length > MAX_ORDERS) orders.shift();
    },
    signed(market, seq, nowMs) {
      const meter = of(market);
      for (const timeMs of meter.orders) meter.toSign.add(nowMs - timeMs);
      meter.waiting = [...meter.waiting, { seq, orders: meter.orders }].slice(-MAX_WAITING);
      meter.orders = [];
    },
    landed(market, seq, seenMs) {
      const meter = of(market);
      for (const one of meter.waiting) {
        if (one.seq <= seq) for (const timeMs of one.orders) meter.toLanded.add(seenMs - timeMs);
      }
      meter.waiting = meter.waiting.filter((one) => one.seq > seq);
    },
    leftOut(market, leftOut) {
      const meter = of(market);
      const sides = (all: readonly LeftOut[]): string =>
        all.map(({ side, reason, lots }) => (reason === 'error' && lots > 0n ? side : '')).join('');
      const isNews = sides(meter.leftOut) !== sides(leftOut);
      meter.leftOut = leftOut;
      return isNews;
    },
    read(pairOf) {
      const { sent, skipped, transactions, missedBlocks } = counters;
      return {
        latency: [...markets].map(([market, { toSign, toLanded }]) => ({
          pair: pairOf(market),
          orderToSignMs: toSign.quantiles(),
          orderToLandedMs: toLanded.quantiles(),
        })),
        sent: { ...sent },
        skipped: { ...skipped },
        transactions: { ...transactions },
        missedBlocks,
        leftOut: [...markets].flatMap(([market, { leftOut }]) =>
          leftOut.map((one) => ({ pair: pairOf(market), ...one })),
        ),
      };
    },
  };
}
