/** The middle of each posted curve, stored with the post, and the middle at a given time. */
import type { Knex } from 'knex';
import { decodeWords } from '../../core/json.js';
import { middleOf } from '../../core/market-data/markouts.js';
import type { Hex, Market } from '../../core/types.js';
import { chunks, fromColumn, toColumn } from '../db/columns.js';
import { sendChange, sendForRows } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import { isPrepared } from '../publications/publication-log.js';
import type { PostSeen, PublicationKind, Queryable } from '../types.js';

type PostName = Pick<PostSeen, 'market' | 'seq' | 'baseSeq' | 'wordsHash'>;

interface WordsRow {
  market: number;
  seq: number;
  kind: PublicationKind;
  base_seq: number;
  words_hash: Hex;
  ask_words: string;
  bid_words: string;
}

/** What was prepared under the numbers of some posts, by market and number. */
type PreparedWords = ReadonlyMap<string, WordsRow>;

export async function readPreparedWords(q: Queryable, posts: readonly PostName[]): Promise<PreparedWords> {
  const prepared = new Map<string, WordsRow>();
  for (const part of chunks(posts, 60)) {
    const any = part.map(() => '(market = ? and seq = ?)').join(' or ');
    const sql = `select market, seq, kind, base_seq, words_hash, ask_words, bid_words from publications where ${any}`;
    const bindings = part.flatMap(({ market, seq }) => [market, seq]);
    for (const row of await sendForRows<WordsRow>(q, sql, bindings)) prepared.set(`${row.market}:${row.seq}`, row);
  }
  return prepared;
}

/** The middle of each of these posts, null for a curve with an empty side and for one that was not prepared here. */
export function middlesOf(
  prepared: PreparedWords,
  markets: readonly Pick<Market, 'lotUnits'>[],
  posts: readonly PostName[],
): (bigint | null)[] {
  return posts.map((post) => {
    const row = prepared.get(`${post.market}:${post.seq}`);
    const own = row && { kind: row.kind, baseSeq: row.base_seq, wordsHash: row.words_hash };
    if (row === undefined || own === undefined || !isPrepared(own, post)) return null;
    return middleOf(markets[post.market]!, {
      askWords: decodeWords(row.ask_words),
      bidWords: decodeWords(row.bid_words),
    });
  });
}

interface MiddleRow {
  market: number;
  era: number;
  seq: number;
  base_seq: number;
  words_hash: Hex;
  middle_half_subticks: string | null;
}

const PAGE = 500;

/** Posts of a market in their order, a page at a time. */
export async function* postPages(q: Queryable, market: number): AsyncGenerator<MiddleRow[]> {
  const sql =
    'select market, era, seq, base_seq, words_hash, middle_half_subticks from posts_seen ' +
    'where market = ? and (era > ? or (era = ? and seq > ?)) order by era, seq limit ?';
  for (let last = { era: -1, seq: 0 }; ;) {
    const rows = await sendForRows<MiddleRow>(q, sql, [market, last.era, last.era, last.seq, PAGE]);
    if (rows.length === 0) return;
    yield rows;
    last = rows.at(-1)!;
  }
}

/** Derives the middles of all stored posts again. */
export async function rebuildMiddles(tx: Knex.Transaction, markets: readonly Market[]): Promise<void> {
  for (const { index } of markets) {
    for await (const rows of postPages(tx, index)) {
      const posts = rows.map(postName);
      const middles = middlesOf(await readPreparedWords(tx, posts), markets, posts);
      for (const [i, { market, era, seq, middle_half_subticks: before }] of rows.entries()) {
        const middle = middles[i]!;
        const stored = middle === null ? null : toColumn(middle);
        if (stored === before) continue;
        const sql = 'update posts_seen set middle_half_subticks = ? where market = ? and era = ? and seq = ?';
        await sendChange(tx, sql, [stored, market, era, seq]);
      }
    }
  }
}

export const postName = (row: MiddleRow): PostName => ({
  market: row.market,
  seq: row.seq,
  baseSeq: row.base_seq,
  wordsHash: row.words_hash,
});

/** Posts of a generation that is about to be stored, by market and by curve. */
export interface UnstoredPosts {
  of(market: number): readonly SeenMiddle[];
  ofCurve(market: number, seq: number): readonly SeenMiddle[];
}

/** Grouped once: a scan that catches up has very many posts and fills. */
export function unstoredPosts(posts: readonly SeenMiddle[]): UnstoredPosts {
  const markets = groupBy(posts, ({ market }) => market);
  const curves = groupBy(posts, ({ market, seq }) => `${market}:${seq}`);
  return { of: (market) => markets.get(market) ?? [], ofCurve: (market, seq) => curves.get(`${market}:${seq}`) ?? [] };
}

export const NO_POSTS: UnstoredPosts = unstoredPosts([]);

/** A post, as far as the middle at a time or of a fill depends on it. */
export interface SeenMiddle {
  market: number;
  era: number;
  seq: number;
  blockNumber: number;
  timeSec: number;
  deadlineSec: number;
  middle: bigint | null;
}

interface StoredMiddle {
  era: number;
  seq: number;
  block_number: number;
  block_timestamp_sec: number;
  middle: string | null;
  deadline_sec: number;
}

const MIDDLE =
  'select era, seq, block_number, block_timestamp_sec, middle_half_subticks as middle, deadline_sec from posts_seen';

const toSeen = (market: number, row: StoredMiddle): SeenMiddle => ({
  market,
  era: row.era,
  seq: row.seq,
  blockNumber: row.block_number,
  timeSec: row.block_timestamp_sec,
  deadlineSec: row.deadline_sec,
  middle: row.middle === null ? null : fromColumn(row.middle),
});

/** The last by an order, of a stored post and of those that are not stored yet. */
function lastOf(posts: readonly SeenMiddle[], isAfter: (a: SeenMiddle, b: SeenMiddle) => boolean): SeenMiddle | null {
  return posts.reduce<SeenMiddle | null>((last, one) => (last === null || isAfter(one, last) ? one : last), null);
}

const isNewer = (a: SeenMiddle, b: SeenMiddle): boolean =>
  a.timeSec !== b.timeSec ? a.timeSec > b.timeSec : a.era !== b.era ? a.era > b.era : a.seq > b.seq;

/**
 * The middle of a market at a time: that of the newest curve in a block up to it, of the stored ones and of those that are about to be. Null
 * when that curve has none, or had expired, or when there is no curve at all.
 */
export async function middleAt(
  q: Queryable,
  market: number,
  timeSec: number,
  unstored = NO_POSTS,
): Promise<bigint | null> {
  // Block times are whole seconds.
  const second = Math.floor(timeSec);
  const sql = `${MIDDLE} where market = ? and block_timestamp_sec <= ? order by block_timestamp_sec desc, era desc, seq desc limit 1`;
  const rows = await sendForRows<StoredMiddle>(q, sql, [market, second]);
  const own = unstored.of(market).filter((post) => post.timeSec <= second);
  const post = lastOf([...rows.map((row) => toSeen(market, row)), ...own], isNewer);
  return post === null || post.deadlineSec <= second ? null : post.middle;
}

/** The middle of the curve that a fill hit. */
export const middleOfHit = async (q: Queryable, fill: HitCurve): Promise<bigint | null> =>
  (await postOfHit(q, fill))?.middle ?? null;

/** Which curve a fill hit. */
export interface HitCurve {
  market: number;
  curveSeq: number;
  blockNumber: number;
}

/** The stored post of the curve that a fill hit, null when there is none. */
export async function postOfHit(q: Queryable, { market, curveSeq, blockNumber }: HitCurve): Promise<SeenMiddle | null> {
  // After a reset of sequence numbers two curves may have the same number; the newer one was posted in a later block.
  const sql = `${MIDDLE} where market = ? and seq = ? and block_number <= ? order by era desc limit 1`;
  const [row] = await sendForRows<StoredMiddle>(q, sql, [market, curveSeq, blockNumber]);
  return row === undefined ? null : toSeen(market, row);
}

/** The middle of the curve that a fill hit, of the stored post and of those that are about to be stored. */
export function middleOfPosts(stored: SeenMiddle | null, fill: HitCurve, unstored: UnstoredPosts): bigint | null {
  const own = unstored.ofCurve(fill.market, fill.curveSeq).filter(({ blockNumber }) => blockNumber <= fill.blockNumber);
  return lastOf([...(stored === null ? [] : [stored]), ...own], (a, b) => a.era > b.era)?.middle ?? null;
}
