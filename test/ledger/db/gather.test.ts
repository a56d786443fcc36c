import { expect } from 'chai';
import type { Knex } from 'knex';
import pg from 'pg';
import { insertAll, insertAbsent, upsertAll } from '../../../ledger/db/columns.js';
import { allOrFirstError, sendChange, sendForRows, type Binding } from '../../../ledger/db/dialects.js';
import { isUniqueViolation } from '../../../ledger/errors.js';
import type { Db } from '../../../ledger/types.js';
import { forPostgresDatabase } from '../../support/db.js';

const meta = (key: string, value = key): { key: string; value: string } => ({ key, value });
const balance = (account: string, units: string) => ({
  ...{ account, token: 't', generation: 1, balance_units: units, reserved_units: '0', net_capital_units: '-1' },
});

/** Runs a transaction on PostgreSQL, and returns what it answered and the statements that left for the server in it. */
async function statementsOf<T>(
  db: Db,
  work: (tx: Knex.Transaction) => Promise<T>,
): Promise<{ answer: T; sent: string[] }> {
  const sent: string[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, config: { text?: string }, ...rest: unknown[]) {
    sent.push(config.text ?? '');
    return (query as (...args: unknown[]) => unknown).call(this, config, ...rest);
  } as typeof query;
  try {
    return { answer: await db.knex.transaction(work), sent: sent.filter((sql) => !/^(?:begin|commit)/i.test(sql)) };
  } finally {
    pg.Client.prototype.query = query;
  }
}

const failureOf = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => new Error('it did not fail'),
    (error: unknown) => error as Error,
  );

describe('statements gathered into one', () => {
  forPostgresDatabase((_name, open) => {
    /** Reads all statements in one turn, the second time as one; returns both answers. */
    async function bothWays(db: Db, reads: readonly (readonly [sql: string, bindings?: readonly Binding[]])[]) {
      const run = (tx: Knex.Transaction): Promise<unknown[]> =>
        allOrFirstError(reads.map(([sql, bindings = []]) => sendForRows(tx, sql, bindings)));
      await db.knex.transaction(run);
      const alone: unknown[] = [];
      await db.knex.transaction(async (tx) => {
        for (const [sql, bindings = []] of reads) alone.push(await sendForRows(tx, sql, bindings));
      });
      const { answer, sent } = await statementsOf(db, run);
      return { alone, together: answer, sent };
    }

    it('reads: one statement answers as each does alone, whatever the types, in each one’s order', async () => {
      const db = await open();
      await db.knex.transaction((tx) =>
        insertAll(tx, 'balances', [balance('a', `${10n ** 77n + 1n}`), balance('b', '-3')]),
      );
      const text = `quotes ' " \\ ? $1 { } , é 💧`;
      const { alone, together, sent } = await bothWays(db, [
        ['select * from balances order by account desc'],
        ['select * from balances where account = ? or account = ?', ['b', 'none']],
        ['select * from balances where account = ?', ['none']],
        [
          'select true as yes, false as no, 1::int2 as small, 7 as whole, 9007199254740991::bigint as most, \'{"a":[1,null]}\'::json as json',
        ],
        [
          "select '\\x00ff'::bytea as bytes, 1.50::numeric(10,2) as exact, 0.1::float8 as real, null::text as nothing, timestamptz '2026-01-02 03:04:05.678Z' as at",
        ],
        ['select ?::text as text, count(*) as total, sum(balance_units) as sum from balances', [text]],
        ['select i from generate_series(1, 300) as i order by i desc limit ?', [250]],
        ["select array['a', null, 'c,d'] as list, '' as empty"],
      ]);
      expect(together).to.deep.equal(alone);
      expect(sent).to.have.length(1);
    });

    it('reads that can’t be gathered are sent by themselves, and answer the same', async () => {
      const db = await open();
      const { alone, together, sent } = await bothWays(db, [
        ["select 'a  '::char(5) as padded"],
        ['select 1 as twice, 2 as twice'],
        ['select "key" from meta order by "key" for update'],
        ['select 1 as one'],
        ['select 2 as two'],
      ]);
      expect(together).to.deep.equal(alone);
      expect(sent).to.have.length(4);
    });

    it('reads: a number beyond what JavaScript holds is an error and not a rounded one', async () => {
      const db = await open();
      const reads = (most: string): (readonly [string, readonly Binding[]])[] => [
        ['select ?::bigint as most', [most]],
        ['select ?::bigint as other', ['1']],
      ];
      await bothWays(db, reads('1'));
      const work = db.knex.transaction((tx) =>
        allOrFirstError(reads('9007199254740993').map(([sql, bindings]) => sendForRows(tx, sql, bindings))),
      );
      expect((await failureOf(work)).message).to.match(/9007199254740993/);
    });

    it('inserts: different tables are one statement, and the same one twice is two', async () => {
      const db = await open();
      const { sent } = await statementsOf(db, (tx) =>
        allOrFirstError([
          insertAll(tx, 'meta', [meta('a'), meta('b')]),
          upsertAll(tx, 'balances', ['account', 'token'], [balance('a', '5')]),
          insertAbsent(tx, 'meta', ['key'], [meta('b', 'other'), meta('c')]),
          insertAll(tx, 'writers', [{ log: 'x', epoch: 1 }]),
        ]),
      );
      expect(sent).to.have.length(2);
      expect(await db.knex('meta').whereIn('key', ['a', 'b', 'c']).orderBy('key')).to.deep.equal(
        ['a', 'b', 'c'].map((key) => meta(key)),
      );
      expect(await db.knex('balances').where('account', 'a').pluck('balance_units')).to.deep.equal(['5']);
      expect(await db.knex('writers').where('log', 'x').pluck('epoch')).to.deep.equal([1]);
    });

    it('inserts: the same pair of tables twice in one turn is sent twice, and parsed once', async () => {
      const db = await open();
      const run = (round: string) => (tx: Knex.Transaction) =>
        allOrFirstError(
          ['x', 'y'].flatMap((name) => [
            insertAll(tx, 'meta', [meta(`${name}${round}`)]),
            insertAll(tx, 'writers', [{ log: `${name}${round}`, epoch: 1 }]),
          ]),
        );
      expect((await statementsOf(db, run('1'))).sent).to.have.length(2);
      expect((await statementsOf(db, run('2'))).sent).to.have.length(2);
      expect(await db.knex('meta').orderBy('key').pluck('key')).to.deep.equal(['x1', 'x2', 'y1', 'y2']);
      expect(await db.knex('writers').whereIn('log', ['x1', 'x2', 'y1', 'y2']).pluck('epoch')).to.have.length(4);
    });

    it('reads: a changed table fails once, and is read as it is from then on', async () => {
      const db = await open();
      const run = (tx: Knex.Transaction): Promise<unknown[]> =>
        allOrFirstError([sendForRows(tx, 'select * from odd order by 1'), sendForRows(tx, 'select 3 as three')]);
      await db.knex.raw('create table odd (a int, b int)');
      await db.knex.raw('insert into odd values (1, 2)');
      await db.knex.transaction(run);
      await db.knex.transaction(run);
      await db.knex.raw('alter table odd drop column b');
      expect((await failureOf(db.knex.transaction(run))).message).to.match(/odd/);
      expect(await db.knex.transaction(run)).to.deep.equal([[{ a: 1 }], [{ three: 3 }]]);
    });

    it('keep their order among others of the same turn', async () => {
      const db = await open();
      const of = (tx: Knex.Transaction) =>
        sendForRows<{ key: string }>(tx, `select "key" from meta where value = 'order' order by "key"`);
      const run = (tx: Knex.Transaction, round: string) =>
        allOrFirstError([
          of(tx),
          insertAll(tx, 'meta', [meta(`a${round}`, 'order')]),
          of(tx),
          sendChange(tx, `update meta set value = 'other' where value = 'order'`, []),
          of(tx),
          insertAll(tx, 'meta', [meta(`b${round}`, 'order')]),
          of(tx),
          of(tx),
        ] as Promise<unknown>[]);
      await db.knex.transaction((tx) => run(tx, '1'));
      const answer = await db.knex.transaction((tx) => run(tx, '2'));
      const rows = (...keys: string[]) => keys.map((key) => ({ key }));
      expect(answer.filter(Array.isArray)).to.deep.equal([rows('b1'), rows('a2', 'b1'), [], rows('b2'), rows('b2')]);
    });

    it('fail together, each with the text of its own statement, and nothing is stored', async () => {
      const db = await open();
      await db.knex('meta').insert(meta('taken'));
      const failures: Error[] = [];
      const note = (work: Promise<unknown>): Promise<unknown> =>
        work.catch((error: Error) => void failures.push(error));
      const whole = db.knex.transaction(async (tx) => {
        await Promise.all([
          note(insertAll(tx, 'writers', [{ log: 'y', epoch: 1 }])),
          note(insertAll(tx, 'meta', [meta('taken')])),
        ]);
      });
      expect((await failureOf(whole)).message).to.match(/rolled back/);
      expect(failures).to.have.length(2);
      expect(failures.every(isUniqueViolation)).to.equal(true);
      expect(failures.map(({ message }) => /insert into "(\w+)"/.exec(message)![1])).to.deep.equal(['writers', 'meta']);
      expect(failures.map(({ message }) => message.match(/insert into/g)!.length)).to.deep.equal([1, 1]);
      expect(await db.knex('writers').where('log', 'y')).to.deep.equal([]);
    });

    it('go on in further statements beyond what one takes', async () => {
      const db = await open();
      const sql = (i: number): string => `select ?::int + ${i % 3} as sum`;
      const run = (tx: Knex.Transaction): Promise<unknown[][]> =>
        allOrFirstError(Array.from({ length: 130 }, (_, i) => sendForRows(tx, sql(i), [i])));
      await db.knex.transaction(run);
      const { answer, sent } = await statementsOf(db, run);
      expect(answer).to.deep.equal(Array.from({ length: 130 }, (_, i) => [{ sum: i + (i % 3) }]));
      expect(sent).to.have.length(3);
    });
  });
});
