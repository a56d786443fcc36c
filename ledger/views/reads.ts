/** Reads for the public interfaces. Nothing here writes, and every list is bounded. */
import type { Address, ChainFill, Hex, Side } from '../../core/types.js';
import { readBalances } from '../chain/balances.js';
import { checkLimit, fromColumn } from '../db/columns.js';
import { readAttributedFill, toChainFill } from '../chain/fills.js';
import type { AttributedFill, BalanceRow, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

export { lastGeneration } from '../chain/ledger-log.js';

/** The `limit` (1..10000) newest fills of a market, newest last. */
export async function recentFills(q: Queryable, market: number, limit = 256): Promise<ChainFill[]> {
  const rows = await q('fills').where({ market }).orderBy('fill_seq', 'desc').limit(checkLimit(limit)).select();
  return rows.reverse().map(toChainFill);
}

/**
 * A key of the market's newest fill and of the generation that attributed it, empty without any. A reversal removes the newest fills, and
 * their replacements belong to a later generation, so an equal key means equal fills.
 */
export async function newestFill(q: Queryable, market: number): Promise<string> {
  const row = await q<Stored<'fills'>>('fills')
    .where({ market })
    .orderBy('fill_seq', 'desc')
    .first('fill_seq', 'generation');
  return row === undefined ? '' : `${row.fill_seq}:${row.generation}`;
}

/** A fill as it was committed, with the generation that did; null while it is not attributed. */
export async function fillWithLegs(
  q: Queryable,
  market: number,
  fillSeq: number,
): Promise<(AttributedFill & { generation: number }) | null> {
  const row = await q('fills').where({ market, fill_seq: fillSeq }).first();
  if (row === undefined) return null;
  return { ...(await readAttributedFill(q, row)), generation: row.generation };
}

/** Rows of one account, by token; empty for an unknown account. */
export async function makerBalances(q: Queryable, account: Address): Promise<BalanceRow[]> {
  return readBalances(q, { account });
}

/** Highest attributed fill of every market that had one, by market index. */
export async function fillSeqs(q: Queryable): Promise<Map<number, number>> {
  // One index lookup per market: grouping would read a row for every generation that ever had a fill.
  const newest = q('market_progress')
    .whereRaw('market_progress.market = listed.market')
    .orderBy('generation', 'desc')
    .limit(1)
    .select('fill_seq');
  const rows = await q('markets as listed')
    .orderBy('listed.market')
    .select<{ market: number; last: number | null }[]>('listed.market', newest.as('last'));
  return new Map(rows.flatMap((row) => (row.last === null ? [] : [[row.market, row.last] as const])));
}

/** One order's part of one fill, as its maker sees it. */
export interface UserFill {
  market: number;
  fillSeq: number;
  oid: number;
  tid: number;
  /** Client order id of the order, null without one. */
  cloid: string | null;
  side: Side;
  priceTicks: bigint;
  baseUnits: bigint;
  /** The maker's base balance before this part. */
  startBaseUnits: bigint;
  /** The part's quote amount, and the maker's profit from closing with it, in quote units. */
  quoteUnits: bigint;
  closedUnits: bigint;
  txHash: Hex;
  blockNumber: number;
  timestampMs: number;
  generation: number;
}

/** An order's part of a fill, with what its fill says. */
export type UserFillRow = Stored<'order_fills'> & Pick<Stored<'fills'>, 'tx_hash' | 'block_number'>;

/** Which of a maker's fills to read: those of generations after one up to another, without the newest `skip` of them. */
interface UserFillRange {
  after: number;
  upTo: number;
  skip: number;
}

/** The earliest time of fills of some generations, so that no older ones need be looked at. Plus zero: not by the index of times, which begins with the oldest. */
const FIRST_TIME = 'select min(timestamp_ms + 0) from fills where generation > ? and generation <= ?';

/**
 * The `limit` (1..10000) newest order fills of a maker, newest first, within the range if one is given: by their time, as blocks of a chain never
 * go back in it, and in the order of the chain at the same one.
 */
export async function userOrderFills(
  q: Queryable,
  maker: Address,
  limit = 2_000,
  range?: UserFillRange,
): Promise<UserFill[]> {
  const query = userFillQuery(q, maker)
    .orderBy([
      { column: 'part.timestamp_ms', order: 'desc' },
      { column: 'fill.block_number', order: 'desc' },
      { column: 'fill.log_index', order: 'desc' },
      { column: 'part.part_no', order: 'desc' },
    ])
    .limit(checkLimit(limit));
  if (range !== undefined) {
    void query.where('part.generation', '>', range.after).where('part.generation', '<=', range.upTo).offset(range.skip);
    if (range.after > 0) void query.whereRaw(`part.timestamp_ms >= (${FIRST_TIME})`, [range.after, range.upTo]);
  }
  return (await query).map(toUserFill);
}

/**
 * At most `limit` (1..10000) order fills of a maker whose block time lies within both bounds, in milliseconds: the oldest first, or
 * with `reversed` the newest first.
 */
export async function userOrderFillsByTime(
  q: Queryable,
  maker: Address,
  range: { fromMs: number; toMs: number; reversed: boolean; limit: number },
): Promise<UserFill[]> {
  const order = range.reversed ? 'desc' : 'asc';
  const rows = await userFillQuery(q, maker)
    .whereBetween('part.timestamp_ms', [range.fromMs, range.toMs])
    .orderBy([
      { column: 'part.timestamp_ms', order },
      { column: 'fill.block_number', order },
      { column: 'fill.log_index', order },
      { column: 'part.part_no', order },
    ])
    .limit(checkLimit(range.limit));
  return rows.map(toUserFill);
}

function userFillQuery(q: Queryable, maker: Address) {
  return q('order_fills as part')
    .join('fills as fill', (on) => {
      on.on('fill.market', 'part.market').on('fill.fill_seq', 'part.fill_seq');
    })
    .where('part.maker', maker)
    .select<UserFillRow[]>('part.*', 'fill.tx_hash', 'fill.block_number');
}

/** An order fill as it was read with what its fill says. */
export function toUserFill(row: UserFillRow): UserFill {
  return {
    market: row.market,
    fillSeq: row.fill_seq,
    oid: row.oid,
    tid: row.tid,
    cloid: row.cloid,
    side: row.side,
    priceTicks: fromColumn(row.price_ticks),
    baseUnits: fromColumn(row.base_units),
    startBaseUnits: fromColumn(row.start_base_units),
    quoteUnits: fromColumn(row.quote_units),
    closedUnits: fromColumn(row.closed_units),
    txHash: row.tx_hash,
    blockNumber: row.block_number,
    timestampMs: row.timestamp_ms,
    generation: row.generation,
  };
}
