import { expect } from 'chai';
import pg from 'pg';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { amount, fromColumn, toColumn } from '../../../ledger/db/columns.js';
import { bindDeployment, migrate, openDb, readDeploymentId, readTx } from '../../../ledger/db/db.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { isUniqueViolation } from '../../../ledger/errors.js';
import { migrations } from '../../../ledger/migrations/index.js';
import { appendOrderRows, lastOrderSeq } from '../../../ledger/orders/order-log.js';
import type { Db, Transaction } from '../../../ledger/types.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import { MAKERS } from '../../support/markets.js';

const maker = MAKERS[0]!;
const MAX_U256 = 2n ** 256n - 1n;

function recordSql(db: Db): string[] {
  const sent: string[] = [];
  for (const knex of new Set([db.knex, db.reads])) knex.on('query', (query: { sql: string }) => sent.push(query.sql));
  return sent;
}

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
  return 'nothing was thrown';
}

describe('database', () => {
  forEachDatabase((_name, open, openBare) => {
    it('keeps amounts of 256 bits exact, and negative ones', async () => {
      const db = await open();
      await db.knex.schema.createTable('exact', (table) => {
        table.bigInteger('id').primary();
        amount(db.knex, table, 'units').notNullable();
      });
      const values = [0n, 1n, -1n, 2n ** 53n + 1n, 2n ** 64n + 3n, MAX_U256, -MAX_U256, 10n ** 78n - 1n];
      for (const [id, units] of values.entries()) await db.knex('exact').insert({ id, units: toColumn(units) });
      const rows = await db.knex<{ id: number; units: unknown }>('exact').orderBy('id').select('units');
      expect(rows.map((row) => fromColumn(row.units))).to.deep.equal(values);
      expect(() => toColumn(10n ** 78n)).to.throw(RangeError);
    });

    it('reads 2^53 - 1 exactly', async () => {
      const db = await open();
      await db.knex.schema.createTable('ints', (table) => table.bigInteger('n'));
      await db.knex('ints').insert({ n: Number.MAX_SAFE_INTEGER });
      expect(await db.knex('ints').first('n')).to.deep.equal({ n: Number.MAX_SAFE_INTEGER });
    });

    it('migrates once, however often and from however many connections it is asked', async () => {
      const db = await openBare();
      const { url, schema } = locationOf(db);
      const others = await Promise.all([openDb(url, { schema }), openDb(url, { schema })]);
      try {
        await Promise.all([migrate(db), ...others.map((other) => migrate(other))]);
        await migrate(db);
        const rows = await db.knex<{ name: string }>('knex_migrations').select('name');
        expect(rows.map((row) => row.name)).to.have.members(migrations.map((step) => step.name));
      } finally {
        await Promise.all(others.map((other) => other.close()));
      }
    });

    it('leaves no table of a migration that fails', async () => {
      const db = await openBare();
      await db.knex.schema.createTable('balances', (table) => table.text('squatter'));
      expect(await codeOf(migrate(db))).not.to.equal('nothing was thrown');
      expect(await db.knex.schema.hasTable('meta')).to.equal(false);
      await db.knex.schema.dropTable('balances');
      await migrate(db);
      expect(await db.knex.schema.hasTable('meta')).to.equal(true);
    });

    it('answers a repeated query anew when the table changed, here or from another connection', async () => {
      const db = await open();
      const { url, schema } = locationOf(db);
      await db.knex.schema.createTable('things', (table) => table.integer('id').primary());
      await db.knex('things').insert({ id: 1 });
      const all = async () => (await db.knex('things').select()) as unknown;
      expect(await all()).to.deep.equal([{ id: 1 }]);
      await db.knex.schema.alterTable('things', (table) => table.integer('here').defaultTo(2));
      if (db.kind === 'sqlite') expect(await all()).to.deep.equal([{ id: 1, here: 2 }]);
      const other = await openDb(url, { schema });
      await other.knex.schema.alterTable('things', (table) => table.integer('there').defaultTo(3));
      await other.knex('things').insert({ id: 2 });
      await other.close();
      const named = (await db.knex('things').orderBy('id').select('id', 'here', 'there')) as unknown;
      expect(named).to.deep.equal([
        { id: 1, here: 2, there: 3 },
        { id: 2, here: 2, there: 3 },
      ]);
      if (db.kind === 'sqlite') expect(await all()).to.deep.equal(named);
    });

    it('keeps statements apart by their bindings', async () => {
      const db = await open();
      for (let count = 0; count < 300; count += 1) {
        const row = await db.knex.raw(`select ${count} as a, cast(? as integer) as b`, [count + 1]);
        const rows = (Array.isArray(row) ? row : row.rows) as unknown;
        expect(rows).to.deep.equal([{ a: count, b: count + 1 }]);
        expect(
          await db
            .knex('meta')
            .where({ key: `${count}` })
            .select(),
        ).to.deep.equal([]);
      }
    });

    it('belongs to the first deployment that it was bound to', async () => {
      const db = await open();
      expect(await codeOf(readDeploymentId(db.knex))).to.equal('DEPLOYMENT_UNBOUND');
      await bindDeployment(db, '00aa');
      await bindDeployment(db, '00aa');
      expect(await codeOf(bindDeployment(db, '00ab'))).to.equal('DEPLOYMENT_MISMATCH');
      expect(await readDeploymentId(db.knex)).to.equal('00aa');
    });

    it('reads one state in a read transaction while another connection writes', async () => {
      const db = await open();
      const { url, schema } = locationOf(db);
      const other = await openDb(url, { schema });
      try {
        const seen = await readTx(db, async (tx) => {
          const before = await tx('meta').select();
          await other.knex('meta').insert({ key: 'a', value: 'b' });
          return [before, await tx('meta').select()];
        });
        expect(seen).to.deep.equal([[], []]);
        expect(await db.knex('meta').select()).to.have.length(1);
      } finally {
        await other.close();
      }
    });

    it('names a violated key alike on both databases', async () => {
      const db = await open();
      await db.knex('meta').insert({ key: 'a', value: 'b' });
      const error: unknown = await db
        .knex('meta')
        .insert({ key: 'a', value: 'c' })
        .then(null, (reason: unknown) => reason);
      expect(isUniqueViolation(error)).to.equal(true);
      expect(isUniqueViolation(new Error('23505'))).to.equal(false);
    });

    it('sends BEGIN IMMEDIATE for writes on SQLite, and plain BEGIN otherwise', async () => {
      const db = await open();
      const sent = recordSql(db);
      await db.knex.transaction(async (tx) => void (await tx.raw('select 1')));
      await readTx(db, async (tx) => void (await tx.raw('select 1')));
      const begins = sent.filter((sql) => sql.startsWith('BEGIN'));
      expect(begins).to.deep.equal(
        db.kind === 'sqlite'
          ? ['BEGIN IMMEDIATE;', 'BEGIN;']
          : ['BEGIN;', 'BEGIN TRANSACTION ISOLATION LEVEL repeatable read READ ONLY;'],
      );
    });

    it('commits durably', async () => {
      const db = await open();
      if (db.kind === 'sqlite') {
        expect(await db.knex.raw('pragma synchronous')).to.deep.equal([{ synchronous: 2 }]);
        expect(await db.knex.raw('pragma journal_mode')).to.deep.equal([{ journal_mode: 'wal' }]);
        expect(await db.knex.raw('pragma foreign_keys')).to.deep.equal([{ foreign_keys: 1 }]);
      } else {
        const { rows } = await db.knex.raw<{ rows: object[] }>('show synchronous_commit');
        expect(rows).to.deep.equal([{ synchronous_commit: 'on' }]);
      }
    });

    it('does not pass off a failed transaction as committed', async () => {
      const db = await open();
      const outcome = await codeOf(
        db.knex.transaction(async (tx) => {
          await tx('meta').insert({ key: 'a', value: 'b' });
          await tx('nowhere')
            .insert({ key: 'a' })
            .catch(() => {});
        }),
      );
      const rows = await db.knex('meta').select();
      // SQLite undoes the failed statement alone, PostgreSQL everything: then it must say so.
      if (db.kind === 'sqlite') expect([outcome, rows.length]).to.deep.equal(['nothing was thrown', 1]);
      else expect([outcome, rows.length]).to.deep.equal(['25P02', 0]);
    });
  });

  it('goes on after a transaction that SQLite left open', async () => {
    const db = await openDb('sqlite::memory:');
    try {
      await db.knex.raw('begin');
      await db.knex.transaction(async (tx) => void (await tx.raw('create table t (n integer)')));
      expect(await db.knex('t').select()).to.deep.equal([]);
    } finally {
      await db.close();
    }
  });

  it('leaves the event loop free while a SQLite write waits for its turn, and has other statements wait as ever', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-db-'));
    const url = `sqlite:${join(folder, 'ledger.sqlite')}`;
    const [holder, waiter] = await Promise.all([openDb(url), openDb(url)]);
    const timeoutOf = (db: Db): Promise<unknown> => db.knex.raw('pragma busy_timeout');
    try {
      const order: string[] = [];
      let waiting: Promise<void> = Promise.resolve();
      let longestMs = 0;
      await holder.knex.transaction(async () => {
        waiting = waiter.knex.transaction(async () => void order.push('waiter'));
        for (let turn = 0; turn < 10; turn += 1) {
          const startedMs = performance.now();
          await delay(10);
          longestMs = Math.max(longestMs, performance.now() - startedMs);
        }
        order.push('holder');
      });
      await waiting;
      expect(order).to.deep.equal(['holder', 'waiter']);
      expect(longestMs).to.be.below(700);
      for (const db of [holder, waiter]) expect(await timeoutOf(db)).to.deep.equal([{ timeout: 1_000 }]);
    } finally {
      await Promise.all([holder.close(), waiter.close()]);
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('makes the folder of a new SQLite file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-db-'));
    const db = await openDb(`sqlite:${join(folder, 'a', 'b', 'ledger.sqlite')}`);
    await db.close();
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('refuses other URLs without repeating a password', async () => {
    for (const url of ['mysql://root:secret@localhost/x', 'sqlite:', 'ledger.sqlite', 'postgres://u:secret@:x:y/z']) {
      const error: unknown = await openDb(url).then(null, (reason: unknown) => reason);
      expect(error).to.have.property('code', 'BAD_DATABASE_URL');
      expect((error as Error).message).not.to.contain('secret');
    }
    expect(await codeOf(openDb('postgres://localhost/x', { schema: 'A"b' }))).to.equal('BAD_DATABASE_URL');
  });
});

forEachDatabase((name, open) => {
  if (name === 'PostgreSQL')
    describe('round trips of a writer', () => {
      it('sends BEGIN, the fence and the reads in one round trip, and nothing more when BEGIN fails', async () => {
        const db = await open();
        const writer = await acquireWriter(db, 'order');
        const own = Object.getOwnPropertyDescriptor(pg.Client.prototype, 'query')!;
        type Answered = (error: Error | null, ...rest: unknown[]) => void;
        const query = own.value as (config: { text: string }, done: Answered) => unknown;
        const sent: string[] = [];
        const answered: string[] = [];
        let isFailing = false;
        const watched = function (this: pg.Client, config: { text: string }, done: Answered): unknown {
          const text =
            /^\s*(?:BEGIN|update writers|select|insert|COMMIT|ROLLBACK)/i.exec(config.text)?.[0] ?? config.text;
          sent.push(text);
          const noted = (error: Error | null, ...rest: unknown[]): void => {
            answered.push(text);
            done(error, ...rest);
          };
          // As an answer would come: later than this call.
          if (isFailing && text === 'BEGIN') return setImmediate(() => noted(new Error('no BEGIN')));
          return query.call(this, config, noted);
        };
        const read = async (tx: Transaction): Promise<void> => void (await lastOrderSeq(tx));
        const appendOne = (): Promise<void> =>
          writer.tx(async (tx) => {
            expect(answered.slice(0, 3), 'all before the body').to.deep.equal(['BEGIN', 'update writers', 'select']);
            await appendOrderRows(tx, [
              { orderSeq: 1, timeMs: 1, maker, signer: null, nonce: null, kind: 'x', effects: [] },
            ]);
          }, read);
        await writer.tx(async () => undefined);
        Object.defineProperty(pg.Client.prototype, 'query', { ...own, value: watched });
        try {
          isFailing = true;
          const failed: unknown = await appendOne().then(
            () => null,
            (error: unknown) => error,
          );
          expect(failed).to.have.property('message').that.includes('no BEGIN');
          expect(sent).not.to.include('insert');
          isFailing = false;
          while (answered.length < sent.length) await delay(10);
          [sent, answered].forEach((list) => list.splice(0));
          await appendOne();
          expect(sent).to.deep.equal(['BEGIN', 'update writers', 'select', 'insert', 'COMMIT']);
        } finally {
          Object.defineProperty(pg.Client.prototype, 'query', own);
        }
        expect(await lastOrderSeq(db.knex)).to.equal(1);
        await writer.release();
      });
    });
});
