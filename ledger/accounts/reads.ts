/** What makers, takers and markets came to in a span of time, as it is served. Read each answer within one state of the database. */
import type { Address } from '../../core/types.js';
import { lastGeneration } from '../chain/generations.js';
import { readPositionsOf, type MakerPosition } from '../market-data/position-rows.js';
import type { Queryable } from '../types.js';
import { middleAt } from './middles.js';
import { selectSums, totalOf, type SumRow } from './sums.js';
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
  /** The same of all makers of the market together. */
  all: Record<MarketSum, bigint>;
  /** Hours with anything in them, oldest first. */
  hours: Period<MakerSum>[];
  /** Base units that fills had left the maker with before the span. */
  openBeforeUnits: bigint;
  /** As of the newest block; null before the first fill. */
  position: MakerPosition | null;
  /** The middle at the newest block, in half subticks; null when there is none. */
  middle: bigint | null;
}

/** What a maker did in these markets, and where it stands. */
export async function makerActivity(
  q: Queryable,
  maker: Address,
  markets: readonly number[],
  span: Span,
): Promise<MakerActivity[]> {
  const head = await lastGeneration(q);
  const headSec = Math.floor((head?.blockTimestampMs ?? 0) / 1_000);
  const positions = await readPositionsOf(q, [maker]);
  const found: MakerActivity[] = [];
  for (const market of markets) {
    // Positions are known as they are now: what they were is that less all flows since.
    const since = await selectSums(q, MAKER_HOURS, 'maker = ? and market = ? and hour_ms >= ?', [
      maker,
      market,
      span.fromMs,
    ]);
    const own = since.filter((row) => openOf(row) < span.toMs);
    const position = positions.find((one) => one.market === market) ?? null;
    if (position === null && own.length === 0) continue;
    const flows = totalOf(MAKER_HOURS, since);
    const openUnits = position === null ? 0n : position.boughtBaseUnits - position.soldBaseUnits;
    found.push({
      market,
      total: totalOf(MAKER_HOURS, own),
      all: await marketTotal(q, market, span),
      hours: own.map((row) => ({ openMs: openOf(row), sums: totalOf(MAKER_HOURS, [row]) })),
      openBeforeUnits: openUnits - (flows.bought_base - flows.sold_base),
      position,
      middle: await middleAt(q, market, headSec),
    });
  }
  return found;
}

const openOf = ({ key }: SumRow): number => key.at(-1) as number;

async function marketTotal(q: Queryable, market: number, span: Span): Promise<Record<MarketSum, bigint>> {
  return totalOf(MARKET_HOURS, await marketRows(q, market, span));
}

const marketRows = (q: Queryable, market: number, { fromMs, toMs }: Span): Promise<SumRow[]> =>
  selectSums(q, MARKET_HOURS, 'market = ? and hour_ms >= ? and hour_ms < ?', [market, fromMs, toMs]);

/** What a taker swapped in each market where it did, by market. */
export async function takerActivity(
  q: Queryable,
  taker: Address,
  { fromMs, toMs }: Span,
): Promise<{ market: number; total: Record<TakerSum, bigint> }[]> {
  const rows = await selectSums(q, TAKER_DAYS, 'taker = ? and day_ms >= ? and day_ms < ?', [taker, fromMs, toMs]);
  const markets = [...new Set(rows.map(({ key }) => key[1] as number))];
  return markets.map((market) => ({
    market,
    total: totalOf(
      TAKER_DAYS,
      rows.filter(({ key }) => key[1] === market),
    ),
  }));
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

/** Makers of a market by what was filled of their orders in a span, largest first, with their sums. */
export async function makersOf(
  q: Queryable,
  market: number,
  { fromMs, toMs }: Span,
): Promise<{ maker: Address; total: Record<MakerSum, bigint> }[]> {
  const rows = await selectSums(q, MAKER_HOURS, 'market = ? and hour_ms >= ? and hour_ms < ?', [market, fromMs, toMs]);
  const own = Map.groupBy(rows, ({ key }) => key[0] as Address);
  const makers = [...own].map(([maker, its]) => ({ maker, total: totalOf(MAKER_HOURS, its) }));
  const filled = ({ total }: (typeof makers)[number]): bigint => total.bought_base + total.sold_base;
  return makers.sort((a, b) => (filled(a) < filled(b) ? 1 : filled(a) > filled(b) ? -1 : a.maker < b.maker ? -1 : 1));
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
