/**
 * Updates the sums of accounts for each generation and each reversal. A fill counts in its own generation, its markouts in the generation
 * with the first block after their time. Both follow from fills, posts and books alone: `verify` derives them again.
 */
import type { Knex } from 'knex';
import { HORIZONS_SEC } from '../../core/market-data/markouts.js';
import type { Address, Market, Side } from '../../core/types.js';
import { readSnapshot } from '../chain/snapshots.js';
import { ownerOf } from '../chain/pair-gains.js';
import { fromColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
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
  for (const one of write.fills) {
    const { fill, decomposition, orderFills } = one;
    const market = markets[fill.market]!;
    const added: ActivityFill = {
      fill,
      owner: ownerOf(fill, write.settledOrders ?? []),
      gainUnits: one.suspended === undefined ? decomposition.operatorGainUnits : 0n,
      parts: orderFills.map((part) => ({ ...part, ...details.get(part)! })),
      middle: await middleOfHit(tx, fill),
      book: isWithoutBook(one.suspended?.code) ? null : await newlyHitBook(tx, fill, write),
    };
    addFill(activity, market, added);
  }
  const head = write.blocks.at(-1)!.timestampSec * 1_000;
  await addWindow(tx, activity, { markets, fromMs: known.beforeMs ?? 0, toMs: head }, 1n);
  await storeActivity(tx, activity);
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
  for (const sums of [makers, takers, markets]) await storeSums(tx, sums);
}

/** The book behind a fill's curve when the fill before it hit another one. */
async function newlyHitBook(
  q: Queryable,
  { market, fillSeq, curveSeq }: { market: number; fillSeq: number; curveSeq: number },
  write: Pick<GenerationWrite, 'snapshots'>,
) {
  const sql = 'select curve_seq from fills where market = ? and fill_seq = ?';
  const [before] = await sendForRows<{ curve_seq: number }>(q, sql, [market, fillSeq - 1]);
  if (before?.curve_seq === curveSeq) return null;
  const own = write.snapshots.find((one) => one.seq === curveSeq && one.snapshot.market === market);
  return own?.snapshot ?? (await readSnapshot(q, market, curveSeq));
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
  // One query range per horizon: a common one would read every part of the last minute in each generation.
  for (const horizonSec of HORIZONS_SEC) {
    const fills = await fillsBetween(q, { fromMs: fromMs - horizonSec * 1_000, toMs: toMs - horizonSec * 1_000 });
    for (const [index, own] of groupBy(fills, ({ market }) => market)) {
      const market = markets[index]!;
      for (let start = 0; start < own.length; start += PAGE) {
        const page = own.slice(start, start + PAGE);
        const parts = await partsBetween(q, index, { first: page[0]!.fill_seq, last: page.at(-1)!.fill_seq });
        for (const { fill_seq: fillSeq, timestamp_ms: timestampMs } of page) {
          const at = await middle(index, timestampMs / 1_000 + horizonSec);
          const fill = { timestampMs, parts: parts.get(fillSeq) ?? [] };
          addMarkouts(activity, market, fill, { horizonSec, middle: at }, sign);
        }
      }
    }
  }
}

/** Fills from one time (included) to a later one (excluded), in order per market. */
const fillsBetween = (
  q: Queryable,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<Pick<PartRow, 'market' | 'fill_seq' | 'timestamp_ms'>[]> =>
  sendForRows(
    q,
    'select market, fill_seq, timestamp_ms from fills where timestamp_ms >= ? and timestamp_ms < ? order by timestamp_ms, market, fill_seq',
    [fromMs, toMs],
  );

/** Middles by market and time, each read once. */
export function rememberMiddles(q: Queryable): (market: number, timeSec: number) => Promise<bigint | null> {
  const read = new Map<string, bigint | null>();
  return async (market, timeSec) => {
    const key = `${market}:${timeSec}`;
    const known = read.get(key);
    if (known !== undefined) return known;
    const middle = await middleAt(q, market, timeSec);
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
