import { expect } from 'chai';
import type { Stored } from '../../ledger/db/tables.js';
import { insertAll } from '../../ledger/db/columns.js';
import { migrate } from '../../ledger/db/db.js';
import { readReversedAmong, readSeenInCutOrder } from '../../ledger/views/audit.js';
import type { Db, Queryable } from '../../ledger/types.js';
import { forEachDatabase } from '../support/db.js';

const MARKETS = 3;
const POSTS = 500;

const seen = (market: number, seq: number): Stored<'posts_seen'> => ({
  market,
  seq,
  base_seq: seq,
  posted_seq: seq,
  era: 0,
  deadline_sec: 1,
  block_number: seq,
  block_timestamp_sec: seq,
  generation: seq,
  snap_ask_units: '0',
  snap_bid_units: '0',
  words_hash: '0x',
  tx_hash: '0x',
  middle_half_subticks: null,
});

const prepared = (market: number, seq: number): Stored<'publications'> => ({
  market,
  seq,
  base_seq: seq,
  cut_order_seq: MARKETS * seq + market,
  cut_generation: Math.floor(seq / 7),
  cut_time_ms: 0,
  fill_seq: 0,
  ask_volume_units: '0',
  bid_volume_units: '0',
  trims: '[]',
  snapshot_hash: '0x',
  ask_words: '[]',
  bid_words: '[]',
  words_hash: '0x',
  tx_key: `${market}:${seq}`,
  deadline_sec: 1,
  prepared_ms: 0,
  kind: 'full',
  excluded: '[]',
  block_hash: '0x',
  block_number: 0,
  ask_knots: 0,
  bid_knots: 0,
  compression: 0,
  exact_ask_knots: 0,
  exact_bid_knots: 0,
  max_error_milli_bps: 0,
  ask_error_ppb: null,
  bid_error_ppb: null,
});

/** The connection, with the most rows at a time that were read and not yet passed on. */
function countHeld(db: Db): { q: Queryable; passOn(): void; most(): number } {
  let held = 0;
  let most = 0;
  const raw = async (sql: string, bindings: readonly string[]): Promise<unknown> => {
    const answer: unknown = await db.knex.raw(sql, bindings);
    held += Array.isArray(answer) ? answer.length : (answer as { rows: unknown[] }).rows.length;
    most = Math.max(most, held);
    return answer;
  };
  const q = new Proxy(db.knex, { get: (target, name) => (name === 'raw' ? raw : Reflect.get(target, name)) });
  return { q, passOn: () => void (held -= 1), most: () => most };
}

describe('what verification asks', () => {
  forEachDatabase((_name, open) => {
    it('has posts in the order of their cuts, and holds a page of each market, however many there are', async () => {
      const db = await open();
      await migrate(db);
      const posts = Array.from({ length: MARKETS * POSTS }, (_one, i) => [i % MARKETS, Math.floor(i / MARKETS) + 1]);
      await db.knex.transaction(async (tx) => {
        await insertAll(
          tx,
          'posts_seen',
          posts.map(([market, seq]) => seen(market!, seq!)),
        );
        await insertAll(
          tx,
          'publications',
          posts.map(([market, seq]) => prepared(market!, seq!)),
        );
      });
      const page = 10;
      const { q, passOn, most } = countHeld(db);
      const found: number[][] = [];
      for await (const { market, seq } of readSeenInCutOrder(q, page)) {
        found.push([market, seq]);
        passOn();
      }
      expect(found).to.deep.equal(posts);
      // Beside the names of the markets.
      expect(most()).to.be.at.most(MARKETS * page + MARKETS);
    });

    it('goes on at the next numbering of a market, and passes over no post that was not prepared here', async () => {
      const db = await open();
      await migrate(db);
      const rows = [
        { ...seen(0, 5), era: 0 },
        { ...seen(0, 2), era: 1 },
        { ...seen(0, 5), era: 1 },
        { ...seen(1, 1), era: 0 },
      ];
      await db.knex.transaction(async (tx) => {
        await insertAll(tx, 'posts_seen', rows);
        await insertAll(tx, 'publications', [prepared(0, 5), prepared(1, 1)]);
      });
      const found: string[] = [];
      for await (const { market, era, seq } of readSeenInCutOrder(db.knex, 1)) found.push(`${market}:${era}:${seq}`);
      expect(found).to.have.members(['0:0:5', '0:1:2', '0:1:5', '1:0:1']);
      expect(found.indexOf('0:0:5')).to.be.lessThan(found.indexOf('0:1:2'));
    });

    it('knows which postings were taken back by their names', async () => {
      const db = await open();
      await migrate(db);
      const line = { kind: 'deposit', account: 'vault', token: '0xaa', line: 0, generation: 1, amount_units: '1' };
      const refs = ['deposited:0x01:0', 'deposited:0x02:0', 'reversed:deposited:0x01:0'];
      await db.knex.transaction((tx) =>
        insertAll(
          tx,
          'entries',
          refs.map((ref) => ({ ref, ...line })),
        ),
      );
      expect([...(await readReversedAmong(db.knex, refs))]).to.deep.equal(['deposited:0x01:0']);
    });
  });
});
