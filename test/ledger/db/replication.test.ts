import { expect } from 'chai';
import { pino } from 'pino';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReplicationWatch } from '../../../keepers/replication.js';
import { migrate, openDb } from '../../../ledger/db/db.js';
import { CommitUnknownError } from '../../../ledger/errors.js';
import { appendOrderRows, lastOrderSeq } from '../../../ledger/orders/order-log.js';
import { judgeReplication, readReplication, type Replication } from '../../../ledger/db/replication.js';
import type { Db, Writer } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { postgresBinaries, startCluster, type Cluster } from '../../support/nodes/clusters.js';
import { forEachDatabase } from '../../support/db.js';
import { MAKERS } from '../../support/markets.js';

const replica = (syncState: string | null, state: string | null = 'streaming') => ({ name: 'one', state, syncState });
const facts = (change: Partial<Replication>): Replication => ({
  replicas: [],
  synchronousCommit: 'on',
  synchronousStandbyNames: 'ANY 1 (one, two)',
  ...change,
});

describe('replication', () => {
  it('is judged by what a commit waits for', () => {
    const problem = (change: Partial<Replication>) => judgeReplication(facts(change)).problem;
    expect(problem({})).to.equal(null);
    expect(problem({ replicas: [replica('quorum'), replica('async')] })).to.equal(null);
    expect(problem({ replicas: [replica('sync')], synchronousCommit: 'remote_apply' })).to.equal(null);
    expect(problem({ replicas: [replica('async'), replica('potential')] })).to.match(
      /^2 replicas .* none is synchronous/,
    );
    for (const synchronousCommit of ['off', 'local', 'remote_write']) {
      expect(problem({ replicas: [replica('sync')], synchronousCommit })).to.match(/wait for no replica$/);
    }
    // Without the right to see, what the server was told counts.
    expect(problem({ replicas: [replica(null, null)] })).to.equal(null);
    expect(problem({ replicas: [replica(null, null)], synchronousStandbyNames: '' })).to.match(/is empty/);
    expect(judgeReplication(facts({ replicas: [replica('async', 'backup')] })).counts).to.deep.equal({
      sync: 0,
      async: 0,
      unknown: 0,
    });
    const synchronous = (change: Partial<Replication>) => judgeReplication(facts(change)).isSynchronous;
    expect(synchronous({ replicas: [replica('quorum')] })).to.equal(true);
    expect(synchronous({})).to.equal(false);
    expect(synchronous({ replicas: [replica(null, null)] })).to.equal(false);
  });

  it('refuses where a synchronous replica is required and there is none, and says so once', async () => {
    let now: Replication | null = facts({ replicas: [replica('async')] });
    const lines: string[] = [];
    const logger = pino({}, { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) });
    const deps = { db: null as never, logger, read: () => Promise.resolve(now) };
    const required = createReplicationWatch({ ...deps, required: true });
    const free = createReplicationWatch({ ...deps, required: false });
    expect([required.refuses(), free.refuses()]).to.deep.equal([true, false]);
    for (const watch of [required, required, free]) await watch.look();
    expect([required.refuses(), free.refuses()]).to.deep.equal([true, false]);
    expect(free.status()).to.deep.equal({ counts: { sync: 0, async: 1, unknown: 0 }, isUnsafe: true });
    expect(lines.filter((line) => line.startsWith('replication: '))).to.have.length(2);
    now = facts({ replicas: [replica('quorum')] });
    await required.look();
    expect([required.refuses(), required.status()?.isUnsafe]).to.deep.equal([false, false]);
    now = facts({});
    await required.look();
    expect([required.refuses(), required.status()?.isUnsafe]).to.deep.equal([true, false]);
    expect(lines.at(-1)).to.equal('replication: no synchronous replica is attached');
  });

  forEachDatabase((name, open) => {
    it('is read from the server', async () => {
      const found = await readReplication(await open());
      if (name === 'SQLite') return expect(found).to.equal(null);
      expect(found!.replicas).to.be.an('array');
      expect(found!.synchronousCommit).to.match(/^(on|remote_apply|remote_write)$/);
    });
  });

  declareReal();
});

/** One pair of servers takes some five seconds; the losses of whole servers are left to `npm run test:deep`. */
function declareReal(): void {
  const bin = postgresBinaries();
  const isDeep = process.env.RUNS !== undefined && process.env.RUNS !== '1';
  if (bin === null) return;

  describe('with servers of its own', function () {
    this.timeout(120_000);
    const clusters: Cluster[] = [];
    const dbs: Db[] = [];

    afterEach(async () => {
      for (const db of dbs.splice(0)) await db.close().catch(() => undefined);
      for (const cluster of clusters.splice(0).reverse()) await cluster.close();
    });

    const opened = async (cluster: Cluster): Promise<Db> => {
      const db = await openDb(cluster.url);
      dbs.push(db);
      return db;
    };

    const append = (writer: Writer, orderSeq: number): Promise<void> =>
      writer.tx((tx) =>
        appendOrderRows(tx, [
          { orderSeq, timeMs: 1, maker: MAKERS[0]!, signer: null, nonce: null, kind: 'close', effects: [] },
        ]),
      );

    const setNames = async (db: Db, names: string): Promise<void> => {
      await db.knex.raw(`alter system set synchronous_standby_names = '${names}'`);
      await db.knex.raw('select pg_reload_conf()');
      await sleep(300);
    };

    it('warns of a replica that streams behind, takes one that commits wait for, and refuses once it is gone', async () => {
      const primary = await startCluster(bin);
      clusters.push(primary);
      const db = await opened(primary);
      const lines: string[] = [];
      const logger = pino({}, { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) });
      const free = createReplicationWatch({ db, required: false, logger });
      const required = createReplicationWatch({ db, required: true, logger });
      /** Both look, until the server shows what is meant: a replica takes a moment to come and to go. */
      async function look(sync: number, async: number): Promise<void> {
        const endMs = performance.now() + 30_000;
        for (const counts = { sync, async, unknown: 0 }; performance.now() < endMs; await sleep(50)) {
          await free.look();
          await required.look();
          if (JSON.stringify(free.status().counts) === JSON.stringify(counts)) break;
        }
        expect(free.status().counts).to.deep.equal({ sync, async, unknown: 0 });
        expect(free.refuses(), 'never without the setting').to.equal(false);
      }
      await look(0, 0);
      expect([free.status().isUnsafe, required.refuses()], 'alone').to.deep.equal([false, true]);
      const standby = await primary.replica('one');
      clusters.push(standby);
      await look(0, 1);
      expect([free.status().isUnsafe, required.refuses()], 'asynchronous').to.deep.equal([true, true]);
      expect(lines.filter((line) => /^replication: .*none is synchronous/.test(line))).to.have.length(2);
      await setNames(db, 'ANY 1 (one)');
      await look(1, 0);
      expect([free.status().isUnsafe, required.refuses()], 'synchronous').to.deep.equal([false, false]);
      expect(lines.filter((line) => line === 'replication is safe again')).to.have.length(2);
      await standby.kill();
      await look(0, 0);
      expect(required.refuses(), 'gone').to.equal(true);
      await setNames(db, '');
    });

    if (!isDeep) return;

    it('loses nothing that was acknowledged when the primary is lost', async () => {
      const primary = await startCluster(bin);
      clusters.push(primary);
      const db = await opened(primary);
      await migrate(db);
      const standby = await primary.replica('one');
      clusters.push(standby);
      expect(judgeReplication((await readReplication(db))!)).to.deep.include({
        counts: { sync: 0, async: 1, unknown: 0 },
      });
      await setNames(db, 'ANY 1 (one)');
      expect(judgeReplication((await readReplication(db))!)).to.deep.include({ isSynchronous: true, problem: null });
      const writer = await acquireWriter(db, 'order');
      for (let orderSeq = 1; orderSeq <= 50; orderSeq += 1) await append(writer, orderSeq);
      await primary.kill();
      await standby.promote();
      const promoted = await opened(standby);
      expect(await lastOrderSeq(promoted.knex)).to.equal(50);
      const next = await acquireWriter(promoted, 'order');
      await append(next, 51);
    });

    it('takes a commit for undecided whose wait for a replica was broken off', async () => {
      const primary = await startCluster(bin);
      clusters.push(primary);
      const db = await opened(primary);
      await migrate(db);
      const other = await opened(primary);
      const writer = await acquireWriter(db, 'order');
      await append(writer, 1);
      await setNames(other, 'ANY 1 (nobody)');
      const pending = append(writer, 2).then(
        () => null,
        (error: unknown) => error,
      );
      for (let ended = 0; ended === 0; await sleep(50)) {
        const { rows } = await other.knex.raw<{ rows: unknown[] }>(
          "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
        );
        ended = rows.length;
      }
      expect(await pending).to.be.instanceOf(CommitUnknownError);
      // It is read back behind a commit that waits, too.
      let hasRead = false;
      const reading = writer.tx(lastOrderSeq).finally(() => (hasRead = true));
      await sleep(500);
      expect(hasRead).to.equal(false);
      await setNames(other, '');
      expect(await reading).to.equal(2);
    });
  });
}
