/** Present figures of each market and its largest makers, for metrics. */
import { HORIZONS_SEC, unrealisedUnits, type HorizonSec } from '../../core/market-data/markouts.js';
import { NO_POSITION, openUnits, type Position } from '../../core/market-data/positions.js';
import { decodeSide } from '../../core/curve/words.js';
import type { Address, Market } from '../../core/types.js';
import { lastGeneration } from '../chain/generations.js';
import { sendForRows } from '../db/dialects.js';
import { isPrepared, readPostSeen, readPublication } from '../publications/publication-log.js';
import { readPositionsOf } from '../market-data/position-rows.js';
import type { Queryable } from '../types.js';
import { middleAt } from './middles.js';
import { operatorSummary, totalOfDays, type GasSpent } from './operator.js';
import { largestMakers, marketActivity, type Span } from './reads.js';
import { DAY_MS, HOUR_MS, type MakerSum } from './tables.js';

/** Makers per market that metrics name: each label costs memory in the metrics database. */
const SHOWN_MAKERS = 5;

/** A fraction; of nothing when `whole` is zero. */
export interface Ratio {
  part: bigint;
  whole: bigint;
}

export interface MakerFacts {
  maker: Address;
  volumeUnits: bigint;
  realisedUnits: bigint;
  /** Base held open at the newest block since the first fill, less than zero for a short position. */
  positionUnits: bigint;
  /** What closing it at the middle of the live curve would bring in the quote token; null without such a middle. */
  unrealisedUnits: bigint | null;
  fillShare: Ratio;
  bookShare: Ratio;
  fillRate: Ratio;
  /** Markout of the volume that had a middle. */
  markouts: { seconds: HorizonSec; ratio: Ratio }[];
}

/** Sums are of the 24 whole hours that end with the present one, and profit of the present day in UTC. */
export interface MarketFacts {
  market: number;
  fills: bigint;
  volumeUnits: bigint;
  residualUnits: bigint;
  inputFeeUnits: bigint;
  profitUnits: bigint | null;
  /** Whether swaps can execute on a curve at the newest block. */
  isLive: boolean;
  /** Since the newest fill, or without any since the first curve; null before that. */
  idleMs: number | null;
  /** Best ask less best bid of the live curve, relative to the middle; null unless it has both sides. */
  spread: Ratio | null;
  /** How many makers had a fill, or an order behind a curve that was hit. */
  makerCount: number;
  /** The five largest of them by what was filled, largest first. */
  makers: MakerFacts[];
}

export interface BusinessFacts {
  markets: MarketFacts[];
  /** Of all transactions of the present day in UTC, in wei. */
  gasWei: GasSpent;
}

/** Reads all figures. Call it within `readTx`. */
export async function readBusiness(
  q: Queryable,
  markets: readonly Market[],
  { nativeToken, nowMs }: { nativeToken: Address; nowMs: number },
): Promise<BusinessFacts> {
  const headMs = (await lastGeneration(q))?.blockTimestampMs ?? 0;
  const dayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const today = { fromMs: dayMs, toMs: dayMs + DAY_MS };
  const summary = await operatorSummary(q, markets, { all: markets, span: today, nativeToken, nowMs });
  const toMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS + HOUR_MS;
  const span = { fromMs: toMs - DAY_MS, toMs };
  const facts: MarketFacts[] = [];
  for (const market of markets) {
    const days = summary.markets.find((one) => one.market === market.index)?.days ?? [];
    const { profitUnits } = totalOfDays(days);
    facts.push({ ...(await marketFacts(q, market, { span, headMs })), profitUnits });
  }
  return { markets: facts, gasWei: summary.gasWei };
}

async function marketFacts(
  q: Queryable,
  market: Market,
  { span, headMs }: { span: Span; headMs: number },
): Promise<Omit<MarketFacts, 'profitUnits'>> {
  const periods = await marketActivity(q, market.index, span, DAY_MS);
  const sum = (name: keyof (typeof periods)[number]['sums']): bigint =>
    periods.reduce((total, { sums }) => total + sums[name], 0n);
  const all = {
    filled: sum('bought_base') + sum('sold_base'),
    offered: sum('offered_ask') + sum('offered_bid'),
  };
  const { count, makers } = await largestMakers(q, market.index, span, SHOWN_MAKERS);
  const positions = await readPositionsOf(
    q,
    makers.map(({ maker }) => maker),
  );
  const positionOf = (maker: Address): Position =>
    positions.find((one) => one.maker === maker && one.market === market.index) ?? NO_POSITION;
  const middle = await middleAt(q, market.index, headMs / 1_000);
  return {
    market: market.index,
    fills: sum('fills'),
    volumeUnits: sum('bought_quote') + sum('sold_quote'),
    residualUnits: sum('gain_quote'),
    inputFeeUnits: sum('input_quote'),
    ...(await curveFacts(q, market, headMs)),
    idleMs: await idleMs(q, market.index, headMs),
    makerCount: count,
    makers: makers.map(({ maker, total }) => {
      const position = positionOf(maker);
      return {
        ...makerFacts(maker, total, all),
        positionUnits: openUnits(position),
        unrealisedUnits: middle === null ? null : unrealisedUnits(market, position, middle),
      };
    }),
  };
}

function makerFacts(
  maker: Address,
  total: Record<MakerSum, bigint>,
  all: { filled: bigint; offered: bigint },
): Omit<MakerFacts, 'positionUnits' | 'unrealisedUnits'> {
  const filled = total.bought_base + total.sold_base;
  const offered = total.offered_ask + total.offered_bid;
  return {
    maker,
    volumeUnits: total.bought_quote + total.sold_quote,
    realisedUnits: total.closed_quote,
    fillShare: { part: filled, whole: all.filled },
    bookShare: { part: offered, whole: all.offered },
    fillRate: { part: filled, whole: offered },
    markouts: HORIZONS_SEC.map((seconds) => ({
      seconds,
      ratio: { part: total[`markout_${seconds}`], whole: total[`marked_${seconds}`] },
    })),
  };
}

async function curveFacts(
  q: Queryable,
  market: Market,
  headMs: number,
): Promise<Pick<MarketFacts, 'isLive' | 'spread'>> {
  const post = await readPostSeen(q, market.index);
  if (post === null || post.deadlineSec * 1_000 <= headMs) return { isLive: false, spread: null };
  const publication = await readPublication(q, market.index, post.seq);
  if (publication === null || !isPrepared(publication, post)) return { isLive: true, spread: null };
  const [ask] = decodeSide(market, 'ask', publication.askWords);
  const [bid] = decodeSide(market, 'bid', publication.bidWords);
  if (ask === undefined || bid === undefined) return { isLive: true, spread: null };
  return { isLive: true, spread: { part: 2n * (ask.subticks - bid.subticks), whole: ask.subticks + bid.subticks } };
}

async function idleMs(q: Queryable, market: number, headMs: number): Promise<number | null> {
  const newest = 'select timestamp_ms as ms from fills where market = ? order by fill_seq desc limit 1';
  const first =
    'select block_timestamp_sec * 1000 as ms from posts_seen where market = ? order by block_timestamp_sec limit 1';
  const [fill] = await sendForRows<{ ms: number }>(q, newest, [market]);
  const [since] = fill === undefined ? await sendForRows<{ ms: number }>(q, first, [market]) : [fill];
  return since === undefined ? null : Math.max(headMs - since.ms, 0);
}
