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
import { middleAt, middleOfHit } from './middles.js';
import { storeSums } from './sums.js';

/** Adds the fills of a generation and the markouts whose time it passes, inside its transaction, after its rows were stored. */
export async function updateActivity(
  tx: Knex.Transaction,
  write: GenerationWrite,
  known: {
    markets: readonly Market[];
    details: ReadonlyMap<AttributedPart, PartDetails>;
    /** Time of the last block before this generation; null before the first. */
    beforeMs: number | null;
  },
): Promise<void> {
  const activity = createActivity();
  const { markets, details } = known;
  const toMs = write.blocks.at(-1)!.timestampSec * 1_000;
  // Sent together, so that a fill costs one round trip and not one for each of its reads.
  await allOrFirstError([
    addFills(tx, activity, write, { markets, details }),
    addWindow(tx, activity, { markets, fromMs: known.beforeMs ?? 0, toMs }, 1n),
  ]);
  await storeActivity(tx, activity);
}

/** Fills whose facts are read together. */
const TOGETHER = 100;

async function addFills(
  tx: Knex.Transaction,
  activity: Activity,
  write: GenerationWrite,
  { markets, details }: { markets: readonly Market[]; details: ReadonlyMap<AttributedPart, PartDetails> },
): Promise<void> {
  // Fills of one block hit few curves.
  const middles = new Map<string, Promise<bigint | null>>();
  const middleOf = (fill: { market: number; curveSeq: number; blockNumber: number }): Promise<bigint | null> => {
    const curve = `${fill.market}:${fill.curveSeq}:${fill.blockNumber}`;
    const middle = middles.get(curve) ?? middleOfHit(tx, fill);
    middles.set(curve, middle);
    return middle;
  };
  for (const part of chunks(write.fills, TOGETHER)) {
    const read = part.map(({ fill, suspended }) =>
      allOrFirstError([
        middleOf(fill),
        isWithoutBook(suspended?.code) ? Promise.resolve(null) : newlyHitBook(tx, fill, write),
      ]),
    );
    for (const [i, [middle, book]] of (await allOrFirstError(read)).entries()) {
      const { fill, decomposition, orderFills, suspended } = part[i]!;
      const added: ActivityFill = {
        fill,
        owner: ownerOf(fill, write.settledOrders ?? []),
        gainUnits: suspended === undefined ? decomposition.operatorGainUnits : 0n,
        parts: orderFills.map((one) => ({ ...one, ...details.get(one)! })),
        middle,
        book,
      };
      addFill(activity, markets[fill.market]!, added);
    }
  }
}

/** Subtracts the generations after the kept one from the sums; call it before their rows are moved to the orphans. */
export async function reverseActivity(
  tx: Knex.Transaction,
  range: { markets: readonly Market[]; keptGeneration: number; keptMs: number; headMs: number },
): Promise<void> {
  const activity = createActivity();
  const { markets, keptMs, headMs } = range;
  await addWindow(tx, activity, { markets, fromMs: keptMs, toMs: headMs }, -1n);
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
) {
  const fillBefore = write.fills.find(({ fill }) => fill.market === market && fill.fillSeq === fillSeq - 1)?.fill;
  const seqBefore = fillBefore === undefined ? await storedCurveSeq(q, market, fillSeq - 1) : fillBefore.curveSeq;
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

/** Adds or subtracts the markouts whose times lie from one block's time (included) to a later one's (excluded). */
async function addWindow(
  q: Queryable,
  activity: Activity,
  { markets, fromMs, toMs }: { markets: readonly Market[]; fromMs: number; toMs: number },
  sign: 1n | -1n,
): Promise<void> {
  const middle = rememberMiddles(q);
  const pages: DuePage[] = [];
  for (const [horizonSec, fills] of await fillsDue(q, fromMs, toMs)) {
    for (const [market, own] of groupBy(fills, (fill) => fill.market))
      for (const part of chunks(own, PAGE)) pages.push({ horizonSec, market, fills: part });
  }
  for (const part of chunks(pages, PAGES_TOGETHER)) {
    await allOrFirstError(
      part.map(async ({ horizonSec, market, fills }) => {
        const [parts, middles] = await allOrFirstError([
          partsBetween(q, market, { first: fills[0]!.fill_seq, last: fills.at(-1)!.fill_seq }),
          allOrFirstError(fills.map((fill) => middle(market, fill.timestamp_ms / 1_000 + horizonSec))),
        ]);
        for (const [i, { fill_seq: fillSeq, timestamp_ms: timestampMs }] of fills.entries()) {
          const fill = { timestampMs, parts: parts.get(fillSeq) ?? [] };
          addMarkouts(activity, markets[market]!, fill, { horizonSec, middle: middles[i]! }, sign);
        }
      }),
    );
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

/** By horizon, the fills from one time (included) to a later one (excluded) less the horizon, in order per market. */
async function fillsDue(q: Queryable, fromMs: number, toMs: number): Promise<Map<HorizonSec, DueFill[]>> {
  // One range of times per horizon: a common one would read every fill of the last minute in each generation.
  const ranges = HORIZONS_SEC.map(
    (horizonSec) =>
      `select ${horizonSec} as horizon_sec, market, fill_seq, timestamp_ms from fills where timestamp_ms >= ? and timestamp_ms < ?`,
  );
  const sql = `select * from (${ranges.join(' union all ')}) as due order by horizon_sec, timestamp_ms, market, fill_seq`;
  const bounds = HORIZONS_SEC.flatMap((horizonSec) => [fromMs - horizonSec * 1_000, toMs - horizonSec * 1_000]);
  return groupBy(await sendForRows<DueFill & { horizon_sec: HorizonSec }>(q, sql, bounds), (row) => row.horizon_sec);
}

/** Middles by market and time, each read once. */
export function rememberMiddles(q: Queryable): (market: number, timeSec: number) => Promise<bigint | null> {
  const read = new Map<string, Promise<bigint | null>>();
  return (market, timeSec) => {
    const key = `${market}:${timeSec}`;
    const known = read.get(key);
    if (known !== undefined) return known;
    const middle = middleAt(q, market, timeSec);
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
