/** The scripts by which the profile `scaled` sets up its primary and its replica, with the servers of this machine. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { freePort } from '../../../deploy/sandbox/ports.js';
import {
  asPostgres,
  newFolder,
  postgresBinaries,
  run,
  startCluster,
  type Cluster,
} from '../../support/nodes/clusters.js';
import { ofProfile } from '../../support/console/compose.js';
import { until } from '../../support/stack.js';

const ops = fileURLToPath(new URL('../../../deploy/ops/postgres/', import.meta.url));
const bin = postgresBinaries();

if (bin !== null)
  describe('the database of the profile scaled', function () {
    this.timeout(180_000);
    let primary: Cluster;
    let replica: ChildProcess | undefined;
    const folders: string[] = [];

    before(async () => {
      primary = await startCluster(bin);
    });
    after(async () => {
      if (replica !== undefined && replica.exitCode === null) {
        const ended = new Promise((resolve) => replica!.once('exit', resolve));
        replica.kill('SIGINT');
        await ended;
      }
      await primary?.close();
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });

    const envOf = (env: Record<string, string>): Record<string, string> => ({
      ...env,
      PATH: `${bin}${delimiter}${process.env['PATH']}`,
    });

    it('waits for its replica with each commit, once the replica is there, and follows after a restart', async () => {
      const { port, pathname } = new URL(primary.url);
      await run(
        'env',
        ...Object.entries(envOf({ PGHOST: '127.0.0.1', PGPORT: port, PGDATA: primary.folder })).map((one) =>
          one.join('='),
        ),
        ...['POSTGRES_USER=postgres', 'POSTGRES_PASSWORD=se cret', `POSTGRES_DB=${pathname.slice(1)}`],
        ...['sh', join(ops, 'primary.sh')],
      );
      expect(readFileSync(join(primary.folder, 'pg_hba.conf'), 'utf8')).to.match(/^host replication replica samenet /m);
      await primary.reload();

      const folder = newFolder();
      folders.push(folder);
      const data = join(folder, 'replica');
      const own = await freePort('127.0.0.1');
      const [, { command = [], environment = {} }] = ofProfile('scaled').find(([name]) => name === 'replica')!;
      expect(Object.keys(environment)).to.deep.equal(['PGDATA', 'PGPASSWORD', 'PRIMARY_HOST']);
      const start = (): void => {
        const [program = '', ...args] = [...asPostgres, 'sh', join(ops, 'replica.sh'), ...command];
        const places = ['-p', `${own}`, '-c', `unix_socket_directories=`, '-c', 'listen_addresses=127.0.0.1'];
        const env = { PGDATA: data, PGPASSWORD: 'se cret', PRIMARY_HOST: '127.0.0.1', PRIMARY_PORT: port };
        replica = spawn(program, [...args, ...places], { cwd: folder, env: envOf(env), stdio: 'ignore' });
      };
      // What is left of a copy that was cut off is not taken for one.
      mkdirSync(`${data}.partial`);
      start();

      const client = new pg.Client({ connectionString: primary.url });
      await client.connect();
      const states = async (): Promise<string[]> => {
        const { rows } = await client.query<{ sync_state: string }>(
          `select sync_state from pg_stat_replication where application_name = 'replica' and state = 'streaming'`,
        );
        return rows.map(({ sync_state: state }) => state);
      };
      try {
        await until('the replica to be waited for', async () => (await states()).join() === 'quorum');
        expect([existsSync(`${data}.partial`), existsSync(data)]).to.deep.equal([false, true]);
        await client.query('create table acknowledged (n int)');
        await client.query('insert into acknowledged values (1)');
        const there = new pg.Client({ connectionString: primary.url.replace(`:${port}`, `:${own}`) });
        await there.connect();
        const { rows } = await there.query('select n from acknowledged');
        await there.end();
        expect(rows).to.deep.equal([{ n: 1 }]);

        const ended = new Promise((resolve) => replica!.once('exit', resolve));
        replica!.kill('SIGINT');
        await ended;
        start();
        await until('the replica to follow again', async () => (await states()).join() === 'quorum');
      } finally {
        await client.end();
      }
    });
  });
