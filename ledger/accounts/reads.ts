/** Figures of makers, takers and markets in a span of time, for the public interfaces. Call each function within `readTx`. */
import type { Address } from '../../core/types.js';
import { lastGeneration } from '../chain/generations.js';
import { checkLimit, chunks } from '../db/columns.js';
import { placeholders, sendForRows } from '../db/dialects.js';
import { readPositionsOf, type MakerPosition } from '../market-data/position-rows.js';
import type { Queryable } from '../types.js';
import { middleAt } from './middles.js';
import { openOf, selectSums, selectTotals, totalOf, type SumRow } from './sums.js';
import {
  DAY_MS,
  MAKER_HOURS,
  MARKET_HOURS,
  TAKER_DAYS,
  type MakerSum,
  type MarketSum,
  type SumTable,
  type TakerSum,
} from './tables.js';

/** Periods that begin from `fromMs` on and before `toMs`. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** Sums of one period. */
interface Period<T extends string> {
  openMs: number;
  sums: Record<T, bigint>;
}

/** What a maker did in one market. */
export interface MakerActivity {
  market: number;
  total: Record<MakerSum, bigint>;
  /** The same sums over all makers of the market. */
  all: Record<MarketSum, bigint>;
  /** Hours with a non-zero sum, oldest first. */
  hours: Period<MakerSum>[];
  /** Open position in base units before the span. */
  openBeforeUnits: bigint;
  /** As of the newest block; null before the first fill. */
  position: MakerPosition | null;
  /** The middle at the newest block, in half subticks; null when there is none. */
  middle: bigint | null;
}

/** A maker's activity and positions in these markets. */
export async function makerActivity(
  q: Queryable,
  maker: Address,
  markets: readonly number[],
  span: Span,
): Promise<MakerActivity[]> {
  const head = await lastGeneration(q);
  const headSec = Math.floor((head?.blockTimestampMs ?? 0) / 1_000);
  const positions = await readPositionsOf(q, [maker]);
  const later = await boughtSince(q, maker, markets, span.toMs);
  const found: MakerActivity[] = [];
  for (const market of markets) {
    const own = await selectSums(q, MAKER_HOURS, 'maker = ? and market = ? and hour_ms >= ? and hour_ms < ?', [
      ...[maker, market, span.fromMs, span.toMs],
    ]);
    const position = positions.find((one) => one.market === market) ?? null;
    if (position === null && own.length === 0) continue;
    // Only present positions are stored; an earlier one is the present one less all that was bought since.
    const total = totalOf(MAKER_HOURS, own);
    const sinceUnits = total.bought_base - total.sold_base + (later.get(market) ?? 0n);
    const openUnits = position === null ? 0n : position.boughtBaseUnits - position.soldBaseUnits;
    found.push({
      market,
      total,
      all: await marketTotal(q, market, span),
      hours: own.map((row) => ({ openMs: openOf(row), sums: totalOf(MAKER_HOURS, [row]) })),
      openBeforeUnits: openUnits - sinceUnits,
      position,
      middle: await middleAt(q, market, headSec),
    });
  }
  return found;
}

/** Base that a maker bought from a time on, less what it sold, by market. */
async function boughtSince(
  q: Queryable,
  maker: Address,
  markets: readonly number[],
  fromMs: number,
): Promise<Map<number, bigint>> {
  const bought = new Map<number, bigint>();
  const of = { name: MAKER_HOURS.name, columns: ['bought_base', 'sold_base'] } as const;
  for (const part of chunks(markets)) {
    const where = `maker = ? and market in (${placeholders(part.length)}) and hour_ms >= ?`;
    const totals = await selectTotals(q, of, where, [maker, ...part, fromMs]);
    for (const [market, { bought_base, sold_base }] of totals) bought.set(market, bought_base - sold_base);
  }
  return bought;
}

/** The sums of a market in a span; zeros when nothing happened in it. */
async function marketTotal(q: Queryable, market: number, span: Span): Promise<Record<MarketSum, bigint>> {
  const of = { name: MARKET_HOURS.name, columns: MARKET_HOURS.sums };
  const where = 'market = ? and hour_ms >= ? and hour_ms < ?';
  const totals = await selectTotals(q, of, where, [market, span.fromMs, span.toMs]);
  return totals.get(market) ?? totalOf(MARKET_HOURS, []);
}

const marketRows = (q: Queryable, market: number, { fromMs, toMs }: Span): Promise<SumRow[]> =>
  selectSums(q, MARKET_HOURS, 'market = ? and hour_ms >= ? and hour_ms < ?', [market, fromMs, toMs]);

/** A taker's sums in each market where it swapped, by market. */
export async function takerActivity(
  q: Queryable,
  taker: Address,
  { fromMs, toMs }: Span,
): Promise<{ market: number; total: Record<TakerSum, bigint> }[]> {
  const of = { name: TAKER_DAYS.name, columns: TAKER_DAYS.sums };
  const totals = await selectTotals(q, of, 'taker = ? and day_ms >= ? and day_ms < ?', [taker, fromMs, toMs]);
  return [...totals].map(([market, total]) => ({ market, total }));
}

/** Sums of a market by period of so many milliseconds, oldest first; periods without a fill are left out. */
export async function marketActivity(
  q: Queryable,
  market: number,
  span: Span,
  periodMs: number,
): Promise<Period<MarketSum>[]> {
  return byPeriod(MARKET_HOURS, await marketRows(q, market, span), periodMs);
}

/** Rows gathered into longer periods, oldest first. */
function byPeriod<T extends SumTable>(
  table: T,
  rows: readonly SumRow[],
  periodMs: number,
): Period<T['sums'][number]>[] {
  const periods = Map.groupBy(rows, (row) => Math.floor(openOf(row) / periodMs) * periodMs);
  return [...periods].sort(([a], [b]) => a - b).map(([openMs, own]) => ({ openMs, sums: totalOf(table, own) }));
}

/**
 * The `limit` makers of a market of whose orders most was filled in a span, largest first, with their sums, and how many makers had a fill
 * or an order behind a curve that was hit. Only these makers are read; the database sorts them, comparing volumes to 15 digits.
 */
export async function largestMakers(
  q: Queryable,
  market: number,
  { fromMs, toMs }: Span,
  limit: number,
): Promise<{ count: number; makers: { maker: Address; total: Record<MakerSum, bigint> }[] }> {
  const within = 'market = ? and hour_ms >= ? and hour_ms < ?';
  const filled = 'sum(cast(bought_base as double precision) + cast(sold_base as double precision))';
  const named = await sendForRows<{ maker: Address; count: number }>(
    q,
    `select maker, count(*) over () as count from ${MAKER_HOURS.name} where ${within} group by maker order by ${filled} desc, maker limit ?`,
    [market, fromMs, toMs, checkLimit(limit)],
  );
  const [first] = named;
  if (first === undefined) return { count: 0, makers: [] };
  const names = named.map(({ maker }) => maker);
  const any = names.map(() => '?').join(', ');
  const rows = await selectSums(q, MAKER_HOURS, `${within} and maker in (${any})`, [market, fromMs, toMs, ...names]);
  const own = Map.groupBy(rows, ({ key }) => key[0]);
  const makers = names.map((maker) => ({ maker, total: totalOf(MAKER_HOURS, own.get(maker) ?? []) }));
  const filledOf = ({ total }: (typeof makers)[number]): bigint => total.bought_base + total.sold_base;
  makers.sort((a, b) => (filledOf(a) < filledOf(b) ? 1 : filledOf(a) > filledOf(b) ? -1 : a.maker < b.maker ? -1 : 1));
  return { count: first.count, makers };
}

/** Quote units that were traded on one day in UTC: made and taken by an account, and in all. */
interface DayVolume {
  made?: bigint;
  taken?: bigint;
  all?: bigint;
}

/** Volumes in these markets by the beginning of the day; days without any are left out. */
export async function volumesByDay(
  q: Queryable,
  account: Address,
  markets: readonly number[],
  { fromMs, toMs }: Span,
): Promise<Map<number, DayVolume>> {
  const days = new Map<number, DayVolume>();
  const add = (name: keyof DayVolume, openMs: number, units: bigint): void => {
    const day = days.get(openMs) ?? {};
    days.set(openMs, { ...day, [name]: (day[name] ?? 0n) + units });
  };
  for (const market of markets) {
    const made = await selectSums(q, MAKER_HOURS, 'maker = ? and market = ? and hour_ms >= ? and hour_ms < ?', [
      ...[account, market, fromMs, toMs],
    ]);
    const taken = await selectSums(q, TAKER_DAYS, 'taker = ? and market = ? and day_ms >= ? and day_ms < ?', [
      ...[account, market, fromMs, toMs],
    ]);
    const all = await marketRows(q, market, { fromMs, toMs });
    for (const { openMs, sums } of byPeriod(MAKER_HOURS, made, DAY_MS))
      add('made', openMs, sums.bought_quote + sums.sold_quote);
    for (const { openMs, sums } of byPeriod(TAKER_DAYS, taken, DAY_MS))
      add('taken', openMs, sums.bought_quote + sums.sold_quote);
    for (const { openMs, sums } of byPeriod(MARKET_HOURS, all, DAY_MS))
      add('all', openMs, sums.bought_quote + sums.sold_quote);
  }
  return days;
}
