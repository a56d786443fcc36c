import { expect } from 'chai';
import type { Knex } from 'knex';
import { setTimeout as sleep } from 'node:timers/promises';
import { insertAll } from '../../../ledger/db/columns.js';
import { migrate, openDb } from '../../../ledger/db/db.js';
import { CommitUnknownError, WriterLostError } from '../../../ledger/errors.js';
import { migrations } from '../../../ledger/migrations/index.js';
import type { Migration } from '../../../ledger/migrations/tables.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../../ledger/orders/order-log.js';
import type { Db, Writer } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { SILENT_MS } from '../../../ledger/db/pg-lock.js';
import { startChild } from '../../support/child.js';
import { forEachDatabase, locationOf, type OpenTestDb } from '../../support/db.js';
import { MAKERS } from '../../support/markets.js';

const maker = MAKERS[0]!;
const CHILD = 'test/support/children/append-child.ts';

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

async function append(writer: Writer, orderSeq: number): Promise<void> {
  await writer.tx((tx) =>
    appendOrderRows(tx, [{ orderSeq, timeMs: 1, maker, signer: null, nonce: null, kind: 'close', effects: [] }]),
  );
}

/** Calls `work` with a second, independent handle on the database. */
async function withOther<T>(db: Db, work: (other: Db) => Promise<T>): Promise<T> {
  const { url, schema } = locationOf(db);
  const other = await openDb(url, { schema });
  try {
    return await work(other);
  } finally {
    await other.close();
  }
}

describe('writers', () => {
  forEachDatabase((name, open) => {
    it('raises the epoch with every acquisition, per log', async () => {
      const db = await open();
      const epochs: number[] = [];
      for (const log of ['order', 'order', 'ledger', 'order'] as const) {
        const writer = await acquireWriter(db, log);
        epochs.push(writer.epoch);
        await writer.release();
      }
      expect(epochs).to.deep.equal([1, 2, 1, 3]);
    });

    it('runs one transaction at a time, in the order they were asked for', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'order');
      const steps: string[] = [];
      const one = (label: string, ms: number): Promise<string> =>
        writer.tx(async () => {
          steps.push(`+${label}`);
          await sleep(ms);
          steps.push(`-${label}`);
          return label;
        });
      expect(await Promise.all([one('a', 20), one('b', 1), one('c', 5)])).to.deep.equal(['a', 'b', 'c']);
      expect(steps.join(' ')).to.equal('+a -a +b -b +c -c');
      await writer.release();
    });

    it('leaves the database to others between its transactions', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'order');
      const most = 400;
      let [finished, hasRead] = [0, false];
      /** Transactions without end, until somebody else has read. */
      const goOn = async (): Promise<void> => {
        do {
          await writer.tx(() => sleep(15));
          finished += 1;
        } while (!hasRead && finished < most);
      };
      const queued = Array.from({ length: 20 }, goOn);
      await sleep(5);
      await lastOrderSeq(db.knex);
      hasRead = true;
      expect(finished).to.be.lessThan(most);
      await Promise.all(queued);
      expect(finished).to.be.at.least(20);
    });

    it('writes nothing of a transaction that fails, and goes on with the next', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'order');
      const failure = new Error('on purpose');
      const failed = writer.tx(async (tx) => {
        await appendOrderRows(tx, [
          { orderSeq: 1, timeMs: 1, maker, signer: null, nonce: null, kind: 'x', effects: [] },
        ]);
        throw failure;
      });
      const next = append(writer, 1);
      expect(await errorOf(failed)).to.equal(failure);
      await next;
      expect(await lastOrderSeq(db.knex)).to.equal(1);
      await writer.release();
    });

    it('writes nothing once its epoch was overtaken', async () => {
      const db = await open();
      const lost: WriterLostError[] = [];
      const writer = await acquireWriter(db, 'order', { onLost: (error) => lost.push(error) });
      await append(writer, 1);
      await withOther(db, (other) => other.knex('writers').where({ log: 'order' }).increment('epoch', 1));
      expect(await errorOf(append(writer, 2))).to.be.instanceOf(WriterLostError);
      expect(await errorOf(append(writer, 2))).to.be.instanceOf(WriterLostError);
      expect(await lastOrderSeq(db.knex)).to.equal(1);
      expect(lost.map((error) => error.log)).to.deep.equal(['order']);
      await writer.release();
    });

    it('is lost before what it read is judged, and keeps it when only a read fails', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'order');
      const fails = async (): Promise<void> => Promise.reject(new TypeError('unreadable'));
      const write = (tx: Knex.Transaction) => insertAll(tx, 'meta', [{ key: 'k', value: 'v' }]);
      expect(await errorOf(writer.tx(write, fails))).to.be.instanceOf(TypeError);
      await writer.tx(write);
      await withOther(db, (other) => other.knex('writers').where({ log: 'order' }).increment('epoch', 1));
      expect(await errorOf(writer.tx(write, fails))).to.be.instanceOf(WriterLostError);
      expect(await db.knex('meta').pluck('key')).to.deep.equal(['k']);
      await writer.release();
    });

    it('writes nothing after a change of the tables, and goes only to a version that knows it', async () => {
      const db = await open();
      const lost: WriterLostError[] = [];
      const onLost = (error: WriterLostError) => void lost.push(error);
      const [order, ledger] = [
        await acquireWriter(db, 'order', { onLost }),
        await acquireWriter(db, 'ledger', { onLost }),
      ];
      await withOther(db, migrate);
      await append(order, 1);
      const steps = migrations as Migration[];
      steps.push({
        name: '9999-of-a-newer-version',
        up: (knex) => knex.schema.createTable('newer', (table) => table.text('one')),
        down: () => Promise.resolve(),
      });
      try {
        await withOther(db, migrate);
        expect(await errorOf(append(order, 2))).to.be.instanceOf(WriterLostError);
        expect(await errorOf(ledger.tx(() => Promise.resolve()))).to.be.instanceOf(WriterLostError);
        expect(lost.map((error) => error.log)).to.deep.equal(['order', 'ledger']);
        await Promise.all([order.release(), ledger.release()]);
        const newer = await acquireWriter(db, 'order');
        await append(newer, 2);
        await newer.release();
      } finally {
        steps.pop();
      }
      expect(await errorOf(acquireWriter(db, 'order'))).to.have.property('code', 'DATABASE_NEWER');
      expect(await lastOrderSeq(db.knex)).to.equal(2);
    });

    it('is refused to the holder after release, without an alarm', async () => {
      const db = await open();
      let alarms = 0;
      const writer = await acquireWriter(db, 'order', { onLost: () => (alarms += 1) });
      const last = append(writer, 1);
      await writer.release();
      await writer.release();
      await last;
      expect(await errorOf(append(writer, 2))).to.be.instanceOf(WriterLostError);
      expect(alarms).to.equal(0);
    });

    it('is not taken under an aborted signal', async () => {
      const db = await open();
      const reason = new Error('stop');
      expect(await errorOf(acquireWriter(db, 'order', { signal: AbortSignal.abort(reason) }))).to.equal(reason);
      expect(await db.knex('writers').select()).to.deep.equal([]);
    });

    it('is given back when told to stop while it is taken', async () => {
      const db = await open();
      const reason = new Error('stop');
      const stop = new AbortController();
      db.knex.on('query', ({ sql }: { sql: string }) => {
        if (sql.includes('writers')) stop.abort(reason);
      });
      expect(await errorOf(acquireWriter(db, 'order', { signal: stop.signal }))).to.equal(reason);
      await withOther(db, async (other) => {
        const next = await acquireWriter(other, 'order', { signal: AbortSignal.timeout(2_000) });
        await next.release();
      });
    });

    it('loses and repeats nothing with four processes at once', async function () {
      this.timeout(90_000);
      const db = await open();
      const { url, schema = '-' } = locationOf(db);
      const children = ['1', '2', '3', '4'].map((digit) => startChild(CHILD, [url, schema, digit, '25']));
      try {
        await Promise.all(children.map((child) => child.line((line) => line === 'ready', 30_000)));
        await db.knex('meta').insert({ key: 'go', value: '' });
        await Promise.all(children.map((child) => child.line((line) => line === 'done', 50_000)));
      } finally {
        await Promise.all(children.map((child) => child.end('SIGKILL')));
      }
      const rows = await readOrderRows(db.knex, { after: 0, limit: 1_000 });
      expect(rows.map((row) => row.orderSeq)).to.deep.equal(Array.from({ length: 100 }, (_, i) => i + 1));
      const wanted = ['1', '2', '3', '4'].flatMap((digit) =>
        Array.from({ length: 25 }, (_, i) => `0x${digit.repeat(40)}:${i + 1}`),
      );
      expect(rows.map((row) => `${row.maker}:${row.nonce}`).sort()).to.deep.equal(wanted.sort());
      // They did take turns: each gives the log up after five rows at the latest, with three others waiting for it.
      const turns = rows.filter((row, i) => row.maker !== rows[i - 1]?.maker).length;
      expect(turns).to.be.above(4);
    });

    if (name === 'PostgreSQL') declareStandby(open);
  });
});

/** What only processes that share a PostgreSQL can see. */
function declareStandby(open: OpenTestDb): void {
  it('waits as a standby until the holder releases', async () => {
    const db = await open();
    const first = await acquireWriter(db, 'order');
    await withOther(db, async (other) => {
      let taken = false;
      const waiting = acquireWriter(other, 'order', { pollMs: 20 }).then((writer) => {
        taken = true;
        return writer;
      });
      await sleep(150);
      expect(taken).to.equal(false);
      await append(first, 1);
      await first.release();
      const second = await waiting;
      expect(second.epoch).to.equal(first.epoch + 1);
      await append(second, 2);
      await second.release();
    });
    expect(await lastOrderSeq(db.knex)).to.equal(2);
  });

  it('stops waiting when told to', async () => {
    const db = await open();
    const first = await acquireWriter(db, 'order');
    const stop = new AbortController();
    const waiting = errorOf(acquireWriter(db, 'order', { signal: stop.signal, pollMs: 10 }));
    const reason = new Error('stop');
    setTimeout(() => stop.abort(reason), 50);
    expect(await waiting).to.equal(reason);
    await append(first, 1);
    await first.release();
  });

  it('is lost with the connection that holds its lock', async () => {
    const db = await open();
    const lost = Promise.withResolvers<WriterLostError>();
    const first = await acquireWriter(db, 'order', { onLost: lost.resolve });
    await db.knex.raw(`
      select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and pid <> pg_backend_pid()
        and ((classid::bigint << 32) | objid::bigint) = hashtextextended('curvebook:' || current_schema() || ':writer:order', 0)`);
    expect(await lost.promise).to.be.instanceOf(WriterLostError);
    const second = await acquireWriter(db, 'order', { pollMs: 20 });
    expect(await errorOf(append(first, 1))).to.be.instanceOf(WriterLostError);
    await append(second, 1);
    await second.release();
    await first.release();
  });

  it('passes on when the process that holds it is killed', async function () {
    this.timeout(60_000);
    const db = await open();
    const { url, schema = '-' } = locationOf(db);
    const holder = startChild(CHILD, [url, schema, '1', 'hold']);
    await holder.line((line) => line === 'acquired', 50_000);
    const waiting = acquireWriter(db, 'order', { pollMs: 20 });
    await holder.end('SIGKILL');
    const writer = await waiting;
    expect(writer.epoch).to.equal(2);
    await writer.release();
  });

  for (const mode of ['freeze', 'frozen']) {
    const where = mode === 'freeze' ? 'in the middle of a transaction' : 'between two';
    it(`passes on within seconds when its holder is frozen ${where}, and the holder writes no more`, async function () {
      this.timeout(90_000);
      const db = await open();
      const { url, schema = '-' } = locationOf(db);
      const holder = startChild(CHILD, [url, schema, '1', mode]);
      try {
        await holder.line((line) => line === 'acquired', 50_000);
        const fromMs = performance.now();
        const writer = await acquireWriter(db, 'order');
        const tookMs = performance.now() - fromMs;
        console.log(`        taken over after ${Math.round(tookMs)} ms`);
        await append(writer, 2);
        holder.process.kill('SIGCONT');
        const said = await holder.line((line) => line.startsWith('then'), 50_000);
        expect(said).to.match(/^then \w*Error WriterLostError$/);
        await append(writer, 3);
        const rows = await readOrderRows(db.knex, { after: 0, limit: 10 });
        // The first row is the holder's from before it was frozen.
        expect(rows.map(({ kind }) => kind)).to.deep.equal(['noop', 'close', 'close']);
        await writer.release();
      } finally {
        await holder.end('SIGKILL');
      }
    });
  }

  it('keeps the log while its holder shows that it lives, however long it does nothing else', async function () {
    this.timeout(30_000);
    const db = await open();
    const first = await acquireWriter(db, 'order');
    await withOther(db, async (other) => {
      const waiting = errorOf(acquireWriter(other, 'order', { signal: AbortSignal.timeout(2 * SILENT_MS) }));
      expect(await waiting).to.have.property('name', 'TimeoutError');
    });
    await append(first, 1);
    await first.release();
  });

  /** Makes every COMMIT that inserted into order_log wait until it is let go. */
  async function holdCommits(db: Db): Promise<{ held(): Promise<void>; letGo(): Promise<void> }> {
    const gate = `hashtext(current_schema())::bigint`;
    await db.knex.raw(`
      create function held_commit() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock_shared(${gate}); return null; end';
      create constraint trigger held_commit after insert on order_log
        deferrable initially deferred for each row execute function held_commit()`);
    const holder = await db.knex.transaction();
    await holder.raw(`select pg_advisory_xact_lock(${gate})`);
    return {
      /** Resolves once a COMMIT waits. */
      async held() {
        for (let rows: unknown[] = []; rows.length === 0; await sleep(5)) {
          ({ rows } = await db.knex.raw<{ rows: unknown[] }>(
            `select pid from pg_locks where locktype = 'advisory' and not granted
               and ((classid::bigint << 32) | objid::bigint) = ${gate}`,
          ));
        }
      },
      letGo: async () => void (await holder.commit()),
    };
  }

  it('says so when the outcome of a commit is unknown, and can be read back', async () => {
    const db = await open();
    const commits = await holdCommits(db);
    const writer = await acquireWriter(db, 'order');
    let pid = 0;
    const pending = errorOf(
      writer.tx(async (tx) => {
        const { rows } = await tx.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid');
        pid = rows[0]!.pid;
        await appendOrderRows(tx, [
          { orderSeq: 1, timeMs: 1, maker, signer: null, nonce: null, kind: 'x', effects: [] },
        ]);
      }),
    );
    await commits.held();
    await db.knex.raw('select pg_terminate_backend(?)', [pid]);
    expect(await pending).to.be.instanceOf(CommitUnknownError);
    expect(await writer.tx(lastOrderSeq)).to.equal(0);
    await commits.letGo();
    await writer.release();
  });

  it('reads back no earlier than the database has decided', async () => {
    const db = await open();
    const commits = await holdCommits(db);
    const writer = await acquireWriter(db, 'order');
    let cutOff = (): void => undefined;
    // The client gives up in the middle of COMMIT while the server goes on with it.
    const pending = errorOf(
      writer.tx(async (tx) => {
        await appendOrderRows(tx, [
          { orderSeq: 1, timeMs: 1, maker, signer: null, nonce: null, kind: 'x', effects: [] },
        ]);
        const connection = (await tx.client.acquireConnection()) as { connection: { stream: { destroy(): void } } };
        cutOff = () => connection.connection.stream.destroy();
      }),
    );
    await commits.held();
    cutOff();
    expect(await pending).to.be.instanceOf(CommitUnknownError);
    expect(await lastOrderSeq(db.knex), 'not decided yet').to.equal(0);
    let hasRead = false;
    const reading = writer.tx(lastOrderSeq).finally(() => (hasRead = true));
    await sleep(300);
    expect(hasRead, 'waits for the database to decide').to.equal(false);
    await commits.letGo();
    expect(await reading, 'decided').to.equal(1);
    await writer.release();
  });

  it('knows that a refused commit wrote nothing', async () => {
    const db = await open();
    await db.knex.raw('alter table order_log add constraint one_kind unique (kind) deferrable initially deferred');
    const writer = await acquireWriter(db, 'order');
    await append(writer, 1);
    expect(await errorOf(append(writer, 2))).to.have.property('code', '23505');
    const swallowed = writer.tx(async (tx) => {
      await tx('nowhere')
        .select()
        .catch(() => {});
    });
    expect(await errorOf(swallowed)).to.have.property('code', '25P02');
    expect(await writer.tx(lastOrderSeq)).to.equal(1);
    await writer.release();
  });
}
