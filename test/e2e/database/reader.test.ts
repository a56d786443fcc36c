/** A reader on a real streaming replica: behind, near, and promoted. Needs PostgreSQL's own programs. */
import { expect } from 'chai';
import WebSocket from 'ws';
import { freePort } from '../../../deploy/sandbox/ports.js';
import { bindDeployment, migrate, openDb } from '../../../ledger/db/db.js';
import { readReplicaLag, readTablesState } from '../../../ledger/db/replica.js';
import type { Db } from '../../../ledger/types.js';
import { postgresBinaries, startCluster, type Cluster } from '../../support/nodes/clusters.js';
import { startChild, type Child } from '../../support/child.js';
import { accountOf, startStack, until, type Stack } from '../../support/stack.js';

const bin = postgresBinaries();
const MAX_LAG_MS = 2_000;
const DEPLOYMENT = '0123456789abcdef';

if (bin !== null) {
  describe('a reader', function () {
    this.timeout(300_000);
    const clusters: Cluster[] = [];
    const dbs: Db[] = [];
    const children: Child[] = [];
    let stack: Stack | null = null;

    afterEach(async () => {
      await Promise.all(children.splice(0).map((child) => child.end('SIGKILL')));
      await stack?.close();
      stack = null;
      for (const db of dbs.splice(0)) await db.close().catch(() => undefined);
      for (const cluster of clusters.splice(0).reverse()) await cluster.close();
    });

    const open = async (cluster: Cluster): Promise<Db> => {
      const db = await openDb(cluster.url);
      dbs.push(db);
      return db;
    };

    const pair = async (): Promise<{ primary: Cluster; copy: Cluster }> => {
      const primary = await startCluster(bin);
      clusters.push(primary);
      const copy = await primary.replica('reader');
      clusters.push(copy);
      return { primary, copy };
    };

    it('knows tables of another version, and how far a replica is behind', async () => {
      const { primary, copy } = await pair();
      const [writes, reads] = [await open(primary), await open(copy)];
      expect(await readTablesState(reads, DEPLOYMENT)).to.equal('empty');
      await migrate(writes);
      await writes
        .knex('knex_migrations')
        .orderBy('id', 'desc')
        .limit(1)
        .then(async ([newest]) => {
          await writes
            .knex('knex_migrations')
            .where({ id: (newest as { id: number }).id })
            .delete();
          await until('the older tables', async () => (await readTablesState(reads, DEPLOYMENT)) === 'older');
          await writes.knex('knex_migrations').insert(newest as object);
        });
      await until('tables without a deployment', async () => (await readTablesState(reads, DEPLOYMENT)) === 'empty');
      await bindDeployment(writes, DEPLOYMENT);
      await until('the tables', async () => (await readTablesState(reads, DEPLOYMENT)) === 'current');
      const other = await readTablesState(reads, 'fedcba9876543210').catch((error: unknown) => error);
      expect(other).to.have.property('code', 'DEPLOYMENT_MISMATCH');

      expect(await readReplicaLag(writes)).to.deep.equal({ isReplica: false, lagMs: 0 });
      const near = await readReplicaLag(reads);
      expect(near.isReplica).to.equal(true);
      expect(near.lagMs, 'near').to.be.within(0, 60_000);
      await reads.knex.raw('select pg_wal_replay_pause()');
      await writes.knex('meta').insert({ key: 'written_later', value: '1' });
      const lagMs = async (): Promise<number> => (await readReplicaLag(reads)).lagMs!;
      await until('what waits to be applied', async () => (await lagMs()) > 1_500);
      await reads.knex.raw('select pg_wal_replay_resume()');
      await until('what was applied', async () => (await lagMs()) < 1_500);
      await writes.knex('knex_migrations').insert({ name: '9999-from-the-future', batch: 9 });
      await until('a newer version', async () => {
        const error = await readTablesState(reads, DEPLOYMENT).catch((one: unknown) => one);
        return (error as { code?: string }).code === 'DATABASE_NEWER';
      });
    });

    it('serves what the primary has, refuses while its replica is too far behind, and goes on after the promotion', async () => {
      const { primary, copy } = await pair();
      stack = await startStack({ databaseUrl: primary.url });
      const maker = accountOf(stack, 'maker1').address;
      const port = await freePort('127.0.0.1');
      const [url, opsPort] = [`http://127.0.0.1:${port}`, await freePort('127.0.0.1')];
      const child = startChild(
        'cli/main.ts',
        ['serve', '--roles', 'reader', '--manifest', stack.manifestPath, '--database', copy.url, '--port', `${port}`],
        { LOG_LEVEL: 'info', READER_MAX_LAG_MS: `${MAX_LAG_MS}`, METRICS_PORT: `${opsPort}` },
      );
      children.push(child);
      expect(await child.line((line) => line.startsWith('serving '), 120_000)).to.equal(`serving reader at ${url}`);
      const get = async (path: string, from = url) => {
        const response = await fetch(`${from}${path}`);
        return { status: response.status, body: (await response.json()) as Record<string, unknown> };
      };
      const statusOf = async (path: string): Promise<number> => (await fetch(`${url}${path}`)).status;
      await until('reads', async () => (await statusOf('/ready')) === 200);
      expect((await get('/v0/pairs')).body).to.deep.equal((await get('/v0/pairs', stack.manifest.serverUrl)).body);
      expect(await get('/active')).to.deep.equal({ status: 503, body: { active: false, reason: 'standby' } });
      await until('a ledger that is ready', async () => (await get('/v0/status')).body['ready'] === true);
      const { ledger, keepers } = (await get('/v0/status')).body as {
        ledger: { replica_lag_ms: number };
        keepers: { running: unknown }[];
      };
      expect(ledger.replica_lag_ms).to.be.within(0, MAX_LAG_MS);
      expect(new Set(keepers.map(({ running }) => running))).to.deep.equal(new Set([null]));
      const lagMetric = async () =>
        /^curvebook_replica_lag_seconds (\S+)$/m.exec(
          await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text(),
        );
      expect(await lagMetric()).to.not.equal(null);

      const sent = (path: string, body: object) =>
        fetch(`${url}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      const quote = await sent('/api/v1/quote', {});
      expect([quote.status, ((await quote.json()) as { error: { code: string } }).error.code]).to.deep.equal([
        503,
        'READ_ONLY',
      ]);
      expect((await sent('/info', { type: 'spotMeta' })).status).to.equal(200);

      const approved = async (): Promise<boolean> => {
        return (await get(`/v0/makers/${maker}/account`)).body['approval'] === 'approved';
      };
      expect(await approved()).to.equal(false);
      await stack.operate('maker', 'approve', maker);
      await until('what another process wrote', approved);

      const socket = new WebSocket(url.replace('http', 'ws') + '/ws');
      const closed = new Promise<number>((resolve) => socket.once('close', resolve));
      await new Promise((resolve) => socket.once('open', resolve));
      const replica = await open(copy);
      await replica.knex.raw('select pg_wal_replay_pause()');
      await until('a refusal', async () => (await statusOf('/v0/pairs')) === 503);
      expect((await get('/v0/pairs')).body).to.have.nested.property('error.code', 'REPLICA_LAG');
      expect(await get('/ready')).to.deep.equal({ status: 503, body: { ready: false, reason: 'replica_lag' } });
      expect((await get('/ready', `http://127.0.0.1:${opsPort}`)).status).to.equal(503);
      expect((await get('/live')).status).to.equal(200);
      expect((await get('/v0/status')).body).to.deep.include({ ready: false, reason: 'replica_lag' });
      expect(await closed).to.equal(1013);
      const refused = new WebSocket(url.replace('http', 'ws') + '/ws');
      expect(await new Promise((resolve) => refused.once('error', (error) => resolve(error.message)))).to.match(/503/);
      await replica.knex.raw('select pg_wal_replay_resume()');
      await until('reads again', async () => (await statusOf('/v0/pairs')) === 200);

      await stack.endServer('SIGTERM');
      await primary.kill();
      await until('a lost primary to be noticed', async () => (await statusOf('/v0/pairs')) === 503);
      await copy.promote();
      await until('reads of the promoted one', async () => (await statusOf('/v0/pairs')) === 200);
      expect(await approved()).to.equal(true);
      expect(child.process.exitCode).to.equal(null);
      expect(child.errors().filter((line) => /"level":(50|60)/.test(line))).to.deep.equal([]);

      await (await open(copy)).knex('knex_migrations').insert({ name: '9999-from-the-future', batch: 9 });
      expect(await child.ended, 'code that does not know the new tables').to.equal(1);
      expect(child.output()).to.include('9999-from-the-future');
    });
  });
}
