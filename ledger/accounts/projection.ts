/**
 * Updates the sums of accounts for each generation and each reversal. A fill counts in its own generation, its markouts in the generation
 * with the first block after their time. Both follow from fills, posts and books alone: `verify` derives them again.
 */
import type { Knex } from 'knex';
import { HORIZONS_SEC, type HorizonSec } from '../../core/market-data/markouts.js';
import type { Address, Market, Side } from '../../core/types.js';
import { readSnapshot } from '../chain/snapshots.js';
import { ownerOf } from '../chain/pair-gains.js';
import { chunks, fromColumn } from '../db/columns.js';
import { allOrFirstError, sendForRows } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import type { PartDetails } from '../market-data/projection.js';
import type { AttributedPart, GenerationWrite, Queryable } from '../types.js';
import {
  addFill,
  addMarkouts,
  createActivity,
  type Activity,
  type ActivityFill,
  type ActivityPart,
} from './activity.js';
import { fillsOfGenerations, isWithoutBook } from './fill-rows.js';
import {
  NO_POSTS,
  middleAt,
  middleOfPosts,
  postOfHit,
  unstoredPosts,
  type HitCurve,
  type SeenMiddle,
  type UnstoredPosts,
} from './middles.js';
import { addSums, storeSums } from './sums.js';

/** What the sums of a generation depend on that is stored and does not depend on anything else that is read for it. */
interface ActivityFacts {
  /** Stored fills whose markouts are due with the generation, by horizon. */
  due: ReadonlyMap<HorizonSec, readonly DueFill[]>;
  /** The stored posts behind its fills, by `hitKey`. */
  hits: ReadonlyMap<string, SeenMiddle | null>;
  /** The curve that the last stored fill of each of its markets hit. */
  curvesBefore: ReadonlyMap<number, number | null>;
}

const hitKey = ({ market, curveSeq, blockNumber }: HitCurve): string => `${market}:${curveSeq}:${blockNumber}`;
const headMsOf = (write: GenerationWrite): number => write.blocks.at(-1)!.timestampSec * 1_000;

/** Reads the facts of a generation that continues the stored ones, in one round trip. */
export async function readActivityFacts(q: Queryable, write: GenerationWrite): Promise<ActivityFacts> {
  // It contradicts itself, which the checks say.
  if (write.blocks.length === 0) return { due: new Map(), hits: new Map(), curvesBefore: new Map() };
  // Fills of one block hit few curves.
  const curves = new Map(write.fills.map(({ fill }) => [hitKey(fill), fill]));
  const firsts = [...groupBy(write.fills, ({ fill }) => fill.market).values()].map((own) => own[0]!.fill);
  const [due, hits, curvesBefore] = await allOrFirstError([
    fillsDue(q, 'head', headMsOf(write)),
    allOrFirstError([...curves.values()].map((fill) => postOfHit(q, fill))),
    allOrFirstError(firsts.map(({ market, fillSeq }) => storedCurveSeq(q, market, fillSeq - 1))),
  ]);
  return {
    due,
    hits: new Map([...curves.keys()].map((key, i) => [key, hits[i]!])),
    curvesBefore: new Map(firsts.map(({ market }, i) => [market, curvesBefore[i]!])),
  };
}

/** The fills of a generation and the markouts whose time it passes, before its rows are stored. */
export async function activityOf(
  q: Queryable,
  write: GenerationWrite,
  known: {
    facts: ActivityFacts;
    markets: readonly Market[];
    details: ReadonlyMap<AttributedPart, PartDetails>;
    /** Middles of its own posts, in their order. */
    middles: readonly (bigint | null)[];
    /** Time of the last block before this generation; null before the first. */
    beforeMs: number | null;
  },
): Promise<Activity> {
  const activity = createActivity();
  const { facts, markets, details, beforeMs } = known;
  const posts = write.posts.map((post, i): SeenMiddle => ({
    market: post.market,
    era: post.era,
    seq: post.seq,
    blockNumber: post.blockNumber,
    timeSec: post.blockTimestampSec,
    deadlineSec: post.deadlineSec,
    middle: known.middles[i]!,
  }));
  const unstored = unstoredPosts(posts);
  const fills = write.fills.map((one): Omit<ActivityFill, 'book'> => ({
    fill: one.fill,
    owner: ownerOf(one.fill, write.settledOrders ?? []),
    gainUnits: one.suspended === undefined ? one.decomposition.operatorGainUnits : 0n,
    parts: one.orderFills.map((part) => ({ ...part, ...details.get(part)! })),
    middle: middleOfPosts(facts.hits.get(hitKey(one.fill)) ?? null, one.fill, unstored),
  }));
  // Sent together, so that a fill costs one round trip and not one for each of its reads.
  await allOrFirstError([
    addWindow(
      q,
      activity,
      { markets, fromMs: beforeMs ?? 0, toMs: headMsOf(write), stored: facts.due, fills, unstored },
      1n,
    ),
    allOrFirstError(
      write.fills.map(async ({ fill, suspended }, i) => {
        const book = isWithoutBook(suspended?.code) ? null : await newlyHitBook(q, fill, write, facts);
        addFill(activity, markets[fill.market]!, { ...fills[i]!, book });
      }),
    ),
  ]);
  return activity;
}

/** Adds what `activityOf` found. A row of sums counts a fill or a book, which only a reversal takes out again. */
export async function addActivity(tx: Knex.Transaction, { makers, takers, markets }: Activity): Promise<void> {
  await allOrFirstError([makers, takers, markets].map((sums) => addSums(tx, sums)));
}

/** Subtracts the generations after the kept one from the sums; call it before their rows are moved to the orphans. */
export async function reverseActivity(
  tx: Knex.Transaction,
  range: { markets: readonly Market[]; keptGeneration: number; keptMs: number; headMs: number },
): Promise<void> {
  const activity = createActivity();
  const { markets, keptMs, headMs } = range;
  const stored = await fillsDue(tx, keptMs, headMs);
  await addWindow(tx, activity, { markets, fromMs: keptMs, toMs: headMs, stored, fills: [], unstored: NO_POSTS }, -1n);
  for (const market of markets) {
    for await (const page of fillsOfGenerations(tx, market, range.keptGeneration)) {
      for (const fill of page) addFill(activity, market, fill, -1n);
    }
  }
  await storeActivity(tx, activity);
}

export async function storeActivity(tx: Knex.Transaction, { makers, takers, markets }: Activity): Promise<void> {
  await allOrFirstError([makers, takers, markets].map((sums) => storeSums(tx, sums)));
}

/** The book behind a fill's curve when the fill before it hit another one. */
async function newlyHitBook(
  q: Queryable,
  { market, fillSeq, curveSeq }: { market: number; fillSeq: number; curveSeq: number },
  write: Pick<GenerationWrite, 'fills' | 'snapshots'>,
  { curvesBefore }: ActivityFacts,
) {
  const fillBefore = write.fills.find(({ fill }) => fill.market === market && fill.fillSeq === fillSeq - 1)?.fill;
  const seqBefore = fillBefore === undefined ? (curvesBefore.get(market) ?? null) : fillBefore.curveSeq;
  if (seqBefore === curveSeq) return null;
  const own = write.snapshots.find((one) => one.seq === curveSeq && one.snapshot.market === market);
  return own?.snapshot ?? (await readSnapshot(q, market, curveSeq));
}

async function storedCurveSeq(q: Queryable, market: number, fillSeq: number): Promise<number | null> {
  const sql = 'select curve_seq from fills where market = ? and fill_seq = ?';
  const [row] = await sendForRows<{ curve_seq: number }>(q, sql, [market, fillSeq]);
  return row?.curve_seq ?? null;
}

interface PartRow {
  market: number;
  fill_seq: number;
  maker: Address;
  side: Side;
  base_units: string;
  quote_units: string;
  timestamp_ms: number;
}

/** Fills read at a time. */
const PAGE = 500;

interface Window {
  markets: readonly Market[];
  fromMs: number;
  toMs: number;
  /** Stored fills whose markouts are due in it. */
  stored: ReadonlyMap<HorizonSec, readonly DueFill[]>;
  /** Fills and posts that are about to be stored. */
  fills: readonly Pick<ActivityFill, 'fill' | 'parts'>[];
  unstored: UnstoredPosts;
}

/** Adds or subtracts the markouts whose times lie from one block's time (included) to a later one's (excluded). */
async function addWindow(
  q: Queryable,
  activity: Activity,
  { markets, fromMs, toMs, stored, fills, unstored }: Window,
  sign: 1n | -1n,
): Promise<void> {
  const middle = rememberMiddles(q, unstored);
  const middleAfter = (fill: { market: number; timestampMs: number }, horizonSec: HorizonSec): Promise<bigint | null> =>
    middle(fill.market, fill.timestampMs / 1_000 + horizonSec);
  const pages: DuePage[] = [];
  for (const [horizonSec, due] of stored) {
    for (const [market, own] of groupBy(due, (fill) => fill.market))
      for (const part of chunks(own, PAGE)) pages.push({ horizonSec, market, fills: part });
  }
  for (const part of chunks(pages, PAGES_TOGETHER)) {
    await allOrFirstError(
      part.map(async ({ horizonSec, market, fills: due }) => {
        const [parts, middles] = await allOrFirstError([
          partsBetween(q, market, { first: due[0]!.fill_seq, last: due.at(-1)!.fill_seq }),
          allOrFirstError(due.map((fill) => middleAfter({ market, timestampMs: fill.timestamp_ms }, horizonSec))),
        ]);
        for (const [i, { fill_seq: fillSeq, timestamp_ms: timestampMs }] of due.entries()) {
          const fill = { timestampMs, parts: parts.get(fillSeq) ?? [] };
          addMarkouts(activity, markets[market]!, fill, { horizonSec, middle: middles[i]! }, sign);
        }
      }),
    );
  }
  for (const horizonSec of HORIZONS_SEC) {
    const [from, to] = [fromMs - horizonSec * 1_000, toMs - horizonSec * 1_000];
    const own = fills.filter(({ fill }) => fill.timestampMs >= from && fill.timestampMs < to);
    for (const part of chunks(own, PAGE)) {
      const middles = await allOrFirstError(part.map(({ fill }) => middleAfter(fill, horizonSec)));
      for (const [i, { fill, parts }] of part.entries())
        addMarkouts(
          activity,
          markets[fill.market]!,
          { timestampMs: fill.timestampMs, parts },
          { horizonSec, middle: middles[i]! },
          sign,
        );
    }
  }
}

type DueFill = Pick<PartRow, 'market' | 'fill_seq' | 'timestamp_ms'>;

/** Consecutive fills of a market whose markouts of one horizon are due. */
interface DuePage {
  horizonSec: HorizonSec;
  market: number;
  fills: DueFill[];
}

/** Pages of fills that are read together. */
const PAGES_TOGETHER = 4;

/** Time of the last stored block, zero before the first. */
const HEAD_MS = 'coalesce((select block_timestamp_ms from generations order by generation desc limit 1), 0)';

/**
 * By horizon, the stored fills from one time (included), or that of the last stored block, to a later one (excluded) less the horizon, in
 * order per market.
 */
async function fillsDue(q: Queryable, from: number | 'head', toMs: number): Promise<Map<HorizonSec, DueFill[]>> {
  // One range of times per horizon: a common one would read every fill of the last minute in each generation.
  const since = (horizonSec: number): string => (from === 'head' ? `${HEAD_MS} - ${horizonSec * 1_000}` : '?');
  const ranges = HORIZONS_SEC.map(
    (horizonSec) =>
      `select ${horizonSec} as horizon_sec, market, fill_seq, timestamp_ms from fills where timestamp_ms >= ${since(horizonSec)} and timestamp_ms < ?`,
  );
  const sql = `select * from (${ranges.join(' union all ')}) as due order by horizon_sec, timestamp_ms, market, fill_seq`;
  const bounds = HORIZONS_SEC.flatMap((horizonSec) => {
    const to = toMs - horizonSec * 1_000;
    return from === 'head' ? [to] : [from - horizonSec * 1_000, to];
  });
  return groupBy(await sendForRows<DueFill & { horizon_sec: HorizonSec }>(q, sql, bounds), (row) => row.horizon_sec);
}

/** Middles by market and time, each read once. */
export function rememberMiddles(
  q: Queryable,
  unstored = NO_POSTS,
): (market: number, timeSec: number) => Promise<bigint | null> {
  const read = new Map<string, Promise<bigint | null>>();
  return (market, timeSec) => {
    const key = `${market}:${timeSec}`;
    const known = read.get(key);
    if (known !== undefined) return known;
    const middle = middleAt(q, market, timeSec, unstored);
    // Fills come in the order of time and need little more than one minute, so clearing the cache costs few repeated reads.
    if (read.size > 10_000) read.clear();
    read.set(key, middle);
    return middle;
  };
}

async function partsBetween(
  q: Queryable,
  market: number,
  { first, last }: { first: number; last: number },
): Promise<Map<number, Omit<ActivityPart, 'closedUnits'>[]>> {
  const sql =
    'select fill_seq, maker, side, base_units, quote_units from order_fills where market = ? and fill_seq between ? and ? order by fill_seq, part_no';
  const rows = await sendForRows<PartRow>(q, sql, [market, first, last]);
  const parts = new Map<number, Omit<ActivityPart, 'closedUnits'>[]>();
  for (const [fillSeq, own] of groupBy(rows, (row) => row.fill_seq)) {
    parts.set(
      fillSeq,
      own.map(({ maker, side, ...row }) => ({
        maker,
        side,
        baseUnits: fromColumn(row.base_units),
        quoteUnits: fromColumn(row.quote_units),
      })),
    );
  }
  return parts;
}
