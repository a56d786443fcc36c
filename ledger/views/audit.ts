/** What verification asks of several tables at once. It only reads; what the answers must be, `keepers/verify/` judges. */
import type { Address } from '../../core/types.js';
import { reversedRef } from '../chain/refs.js';
import { sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import { VAULT, type Queryable } from '../types.js';

/** Tables whose rows name the block that they come from. */
export const PLACED_TABLES = ['custody_events', 'posts_seen', 'seq_resets', 'fills', 'settled_orders'] as const;
export type PlacedTable = (typeof PLACED_TABLES)[number];

/** A row of another generation than its block's, or of a block that was not scanned; undefined without any. */
export async function readMisplaced(
  q: Queryable,
  table: PlacedTable,
): Promise<{ blockNumber: number; generation: number } | undefined> {
  const sql = `select one.block_number as "blockNumber", one.generation from "${table}" as one
    left join blocks as at on at.number = one.block_number
    where at.number is null or at.generation <> one.generation limit 1`;
  const [row] = await sendForRows<{ blockNumber: number; generation: number }>(q, sql);
  return row;
}

/** Curves and touches that were seen on-chain, in the order in which their books were cut; those that were not prepared here last or first. */
export async function readSeenInCutOrder(q: Queryable): Promise<Stored<'posts_seen'>[]> {
  return q('posts_seen as seen')
    .leftJoin('publications as made', (on) => {
      on.on('made.market', 'seen.market').on('made.seq', 'seen.seq');
    })
    .orderBy(['made.cut_generation', 'made.cut_order_seq', 'seen.market', 'seen.seq'])
    .select<Stored<'posts_seen'>[]>('seen.*');
}

/** The number of a market's last fill before a place in the chain, 0 without any. */
export async function lastFillBefore(
  q: Queryable,
  market: number,
  { blockNumber, logIndex }: { blockNumber: number; logIndex: number },
): Promise<number> {
  const sql = `select max(fill_seq) as last from fills
    where market = ? and (block_number < ? or (block_number = ? and log_index < ?))`;
  const [row] = await sendForRows<{ last: number | null }>(q, sql, [market, blockNumber, blockNumber, logIndex]);
  return row?.last ?? 0;
}

/** What a market's tokens said when it was listed, with the last block of the generation that listed it. */
export async function readListing(
  q: Queryable,
  market: number,
): Promise<(Pick<Stored<'markets'>, 'read_block' | 'base_said' | 'quote_said'> & { to_block: number }) | undefined> {
  const sql = `select listed.read_block, listed.base_said, listed.quote_said, at.to_block from markets as listed
    join generations as at on at.generation = listed.generation where listed.market = ?`;
  const [row] = await sendForRows<
    Pick<Stored<'markets'>, 'read_block' | 'base_said' | 'quote_said'> & { to_block: number }
  >(q, sql, [market]);
  return row;
}

/** Orders' parts of the fills of some generations with their markets, in the order of the fills. */
export async function readPartsWithMarket(
  q: Queryable,
  { from, to }: { from: number; to: number },
): Promise<(Stored<'order_fills'> & Pick<Stored<'markets'>, 'id' | 'base_address'>)[]> {
  return q('order_fills as part')
    .join('markets as market', 'market.market', 'part.market')
    .whereBetween('part.generation', [from, to])
    .orderBy(['part.market', 'part.fill_seq', 'part.part_no'])
    .select<(Stored<'order_fills'> & Pick<Stored<'markets'>, 'id' | 'base_address'>)[]>(
      'part.*',
      'market.id',
      'market.base_address',
    );
}

/** Newest generation in which the counters that postings do not explain changed, by account and token. */
export async function readLastChanges(
  q: Queryable,
): Promise<(Pick<Stored<'balance_changes'>, 'account' | 'token'> & { last: number })[]> {
  return sendForRows(q, 'select account, token, max(generation) as last from balance_changes group by account, token');
}

/** Names of all postings that took another one back. */
export async function readReversedRefs(q: Queryable): Promise<string[]> {
  const sql = 'select distinct ref from entries where ref like ?';
  return (await sendForRows<{ ref: string }>(q, sql, [`${reversedRef('')}%`])).map(({ ref }) => ref);
}

/** Names of the postings of fills in some generations, and of those that took one back. */
export async function readFillRefs(q: Queryable, { from, to }: { from: number; to: number }): Promise<string[]> {
  const sql = `select distinct ref from entries where generation between ? and ? and account = ? and (ref like ? or ref like ?)`;
  const bindings = [from, to, VAULT, 'fill:%', `${reversedRef('fill:')}%`];
  return (await sendForRows<{ ref: string }>(q, sql, bindings)).map(({ ref }) => ref);
}

/** What the vault got beside all events, newest first, with the first block of the generation that found it. */
export async function readSurpluses(
  q: Queryable,
  account: string,
  token: Address,
): Promise<(Pick<Stored<'entries'>, 'generation' | 'amount_units'> & { from_block: number })[]> {
  const sql = `select entry.generation, entry.amount_units, at.from_block from entries as entry
    join generations as at on at.generation = entry.generation
    where entry.account = ? and entry.token = ? order by entry.generation desc`;
  return sendForRows(q, sql, [account, token]);
}

/** How prepared settlements ended, each with the transaction of its event, null without one. */
export async function readEnds(
  q: Queryable,
): Promise<(Stored<'settlement_outcomes'> & { tx_hash: Stored<'custody_events'>['tx_hash'] | null })[]> {
  const sql = `select ended.*, seen.tx_hash from settlement_outcomes as ended
    left join custody_events as seen on seen.settlement_no = ended.settlement_no`;
  return sendForRows(q, sql);
}

/** The newest state of a claim up to a generation, undefined before its first. */
export async function claimUpTo(
  q: Queryable,
  { maker, token }: { maker: Address; token: Address },
  generation: number,
): Promise<Stored<'claim_changes'> | undefined> {
  const sql = `select * from claim_changes where maker = ? and token = ? and generation <= ?
    order by generation desc limit 1`;
  const [row] = await sendForRows<Stored<'claim_changes'>>(q, sql, [maker, token, generation]);
  return row;
}
