/** Reads stored fills for the sums of accounts. */
import type { Address, Market, MarketSnapshot, Side } from '../../core/types.js';
import { ordersIn, ownerOf } from '../chain/pair-gains.js';
import { toChainFill } from '../chain/fills.js';
import { readSnapshot } from '../chain/snapshots.js';
import { fromColumn } from '../db/columns.js';
import { sendForRows, type Binding } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import type { Stored } from '../db/tables.js';
import type { Queryable } from '../types.js';
import type { ActivityFill, ActivityPart } from './activity.js';
import { middleOfHit } from './middles.js';

/** Fills read at a time. */
const PAGE = 200;

interface PartRow {
  fill_seq: number;
  maker: Address;
  side: Side;
  base_units: string;
  quote_units: string;
  closed_units: string;
}

/** Fills of a market in generations after one, in their order, a page at a time; with zero all of them. */
export async function* fillsOfGenerations(
  q: Queryable,
  market: Market,
  afterGeneration: number,
): AsyncGenerator<ActivityFill[]> {
  const suspended = await suspendedFills(q, market.index);
  const ofGenerations = afterGeneration === 0 ? '' : ' and generation > ?';
  const sql = `select * from fills where market = ? and fill_seq > ?${ofGenerations} order by fill_seq limit ?`;
  let before: Stored<'fills'> | undefined;
  for (let after = 0; ;) {
    const generation: Binding[] = afterGeneration === 0 ? [] : [afterGeneration];
    const rows = await sendForRows<Stored<'fills'>>(q, sql, [market.index, after, ...generation, PAGE]);
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) return;
    before ??= await fillBefore(q, first);
    const parts = await partsOf(q, market.index, { first: first.fill_seq, last: last.fill_seq });
    const orders = await ordersIn(
      q,
      rows.map((row) => row.tx_hash),
    );
    const page: ActivityFill[] = [];
    for (const row of rows) {
      const fill = toChainFill(row);
      page.push({
        fill,
        owner: ownerOf(fill, orders),
        gainUnits: suspended.has(row.fill_seq) ? 0n : fromColumn(row.operator_gain_units),
        parts: parts.get(row.fill_seq) ?? [],
        middle: await middleOfHit(q, fill),
        book: isWithoutBook(suspended.get(row.fill_seq)) ? null : await bookOf(q, row, before),
      });
      before = row;
    }
    yield page;
    after = last.fill_seq;
  }
}

async function bookOf(
  q: Queryable,
  row: Stored<'fills'>,
  before: Stored<'fills'> | undefined,
): Promise<MarketSnapshot | null> {
  return before?.curve_seq === row.curve_seq ? null : readSnapshot(q, row.market, row.curve_seq);
}

async function fillBefore(q: Queryable, row: Stored<'fills'>): Promise<Stored<'fills'> | undefined> {
  const sql = 'select * from fills where market = ? and fill_seq = ?';
  return (await sendForRows<Stored<'fills'>>(q, sql, [row.market, row.fill_seq - 1]))[0];
}

/** Fills in suspense because no book explains them, with the code of what they lack. */
async function suspendedFills(q: Queryable, market: number): Promise<ReadonlyMap<number, string>> {
  const sql = `select seq, code from suspense where kind = 'fill' and maker is null and market = ?`;
  const rows = await sendForRows<{ seq: number; code: string }>(q, sql, [market]);
  return new Map(rows.map(({ seq, code }) => [seq, code]));
}

/**
 * Whether a fill was booked without knowing the book behind its curve. Such a book counts in no sum, even once it is stored: sums must
 * follow from what was known when the fill was booked, or a reversal would subtract what was never added.
 */
export const isWithoutBook = (suspendedCode: string | undefined): boolean => suspendedCode === 'unexplained_curve';

async function partsOf(
  q: Queryable,
  market: number,
  { first, last }: { first: number; last: number },
): Promise<Map<number, ActivityPart[]>> {
  const sql =
    'select fill_seq, maker, side, base_units, quote_units, closed_units from order_fills ' +
    'where market = ? and fill_seq between ? and ? order by fill_seq, part_no';
  const rows = await sendForRows<PartRow>(q, sql, [market, first, last]);
  const partOf = ({ maker, side, ...row }: PartRow): ActivityPart => ({
    maker,
    side,
    baseUnits: fromColumn(row.base_units),
    quoteUnits: fromColumn(row.quote_units),
    closedUnits: fromColumn(row.closed_units),
  });
  return new Map([...groupBy(rows, (row) => row.fill_seq)].map(([seq, own]) => [seq, own.map(partOf)]));
}
