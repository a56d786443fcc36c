/** Queries of verification over several tables. They only read; `keepers/verify/` judges the results. */
import type { Address, Hex } from '../../core/types.js';
import { fillRef } from '../chain/invariants.js';
import { reversedRef } from '../chain/refs.js';
import { chunks } from '../db/columns.js';
import { placeholders, sendForRows } from '../db/dialects.js';
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

/** A post as it was seen, with the cut of the book behind it; nulls where it was not prepared here. */
type SeenPost = Stored<'posts_seen'> & { cut_generation: number | null; cut_order_seq: number | null };

/**
 * Curves and touches that were seen on-chain, in the order in which their books were cut, so that one book can follow them all. The posts of a market
 * are cut in the order of their numbers; of each market `page` posts are held at most, however many there are. Those that were not prepared here come
 * as soon as their market's turn does.
 */
export async function* readSeenInCutOrder(q: Queryable, page = 200): AsyncGenerator<Stored<'posts_seen'>> {
  const markets = await sendForRows<{ market: number }>(q, 'select distinct market from posts_seen order by market');
  const lines = markets.map(({ market }) => readSeenOf(q, market, page));
  const heads: { line: (typeof lines)[number]; post: SeenPost }[] = [];
  for (const line of lines) await take(line);
  for (let first = heads[0]; first !== undefined; first = heads[0]) {
    const next = heads.reduce((a, b) => (isCutBefore(b.post, a.post) ? b : a), first);
    const { cut_generation: _generation, cut_order_seq: _orderSeq, ...post } = next.post;
    yield post;
    heads.splice(heads.indexOf(next), 1);
    await take(next.line);
  }

  async function take(line: (typeof lines)[number]): Promise<void> {
    const { value } = await line.next();
    if (value !== undefined) heads.push({ line, post: value });
  }
}

function isCutBefore(a: SeenPost, b: SeenPost): boolean {
  const generations = (a.cut_generation ?? 0) - (b.cut_generation ?? 0);
  return (generations || (a.cut_order_seq ?? 0) - (b.cut_order_seq ?? 0) || a.market - b.market) < 0;
}

/** The posts of one market by their numbers, read a page at a time. */
async function* readSeenOf(q: Queryable, market: number, page: number): AsyncGenerator<SeenPost, undefined> {
  const sql = `select seen.*, made.cut_generation, made.cut_order_seq from posts_seen as seen
    left join publications as made on made.market = seen.market and made.seq = seen.seq
    where seen.market = ? and (seen.era, seen.seq) > (?, ?) order by seen.era, seen.seq limit ?`;
  for (let after = { era: -1, seq: -1 }; ;) {
    const rows = await sendForRows<SeenPost>(q, sql, [market, after.era, after.seq, page]);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < page) return undefined;
    after = last;
  }
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

/** Those of some postings that another one took back. */
export async function readReversedAmong(q: Queryable, refs: readonly string[]): Promise<Set<string>> {
  const reversed = new Set<string>();
  for (const part of chunks(refs)) {
    const sql = `select distinct ref from entries where ref in (${placeholders(part.length)})`;
    const rows = await sendForRows<{ ref: string }>(q, sql, part.map(reversedRef));
    for (const { ref } of rows) reversed.add(ref.slice(reversedRef('').length));
  }
  return reversed;
}

/** Names of the postings of fills in some generations, and of those that took one back. */
export async function readFillRefs(q: Queryable, { from, to }: { from: number; to: number }): Promise<string[]> {
  const sql = `select distinct ref from entries where generation between ? and ? and account = ? and (ref like ? or ref like ?)`;
  const bindings = [from, to, VAULT, 'fill:%', `${reversedRef('fill:')}%`];
  const stored = (await sendForRows<{ ref: string }>(q, sql, bindings)).map(({ ref }) => ref);
  const fills = await sendForRows<{ id: Hex; fill_seq: number }>(
    q,
    'select listed.id, fill.fill_seq from fills as fill join markets as listed on listed.market = fill.market ' +
      'where fill.booked_by is not null and fill.generation between ? and ?',
    [from, to],
  );
  return [...stored, ...fills.map((row) => fillRef(row, row.fill_seq))];
}

/** Amounts that the vault received without an event, newest first, with the first block of the generation that found each. */
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
