/** The scripts by which the profile `scaled` sets up its primary and its replica, with the servers of this machine. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { composeServers, type ComposeServers } from '../../support/nodes/compose-servers.js';
import { asPostgres, postgresBinaries } from '../../support/nodes/clusters.js';
import { ofProfile } from '../../support/console/compose.js';
import { until } from '../../support/stack.js';

const bin = postgresBinaries();
const PASSWORD = 'se-cret';
const SETTINGS = { DATABASE_PASSWORD: PASSWORD };

describe('the script of a new primary', () => {
  it('lets a replica in by a password that no list of processes shows', () => {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-primary-'));
    try {
      writeFileSync(join(folder, 'psql'), '#!/bin/sh\nprintf "%s\\n" "$@" > "$PGDATA/words"\ncat > "$PGDATA/read"\n', {
        mode: 0o755,
      });
      execFileSync('sh', ['deploy/ops/postgres/primary.sh'], {
        env: {
          PATH: `${folder}:${process.env['PATH']}`,
          ...{ PGDATA: folder, POSTGRES_USER: 'curvebook', POSTGRES_DB: 'curvebook', POSTGRES_PASSWORD: PASSWORD },
        },
      });
      expect(readFileSync(join(folder, 'words'), 'utf8'))
        .to.include('curvebook')
        .and.not.include(PASSWORD);
      expect(readFileSync(join(folder, 'read'), 'utf8'))
        .to.include('create role replica')
        .and.not.include(PASSWORD);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

if (bin !== null)
  describe('the database of the profile scaled', function () {
    this.timeout(180_000);
    let servers: ComposeServers;

    beforeEach(async () => {
      servers = await composeServers(bin);
    });
    afterEach(() => servers?.close());

    const connected = async (name: 'primary' | 'replica'): Promise<pg.Client> => {
      const client = new pg.Client({
        connectionString: servers.urlOf(`postgres://curvebook:${PASSWORD}@${name}/curvebook`),
      });
      await client.connect();
      return client;
    };
    const states = async (client: pg.Client): Promise<string> => {
      const { rows } = await client.query<{ sync_state: string }>(
        `select sync_state from pg_stat_replication where application_name = 'replica' and state = 'streaming'`,
      );
      return rows.map(({ sync_state: state }) => state).join();
    };

    it('waits for its replica with each commit, once the replica is there, and follows after a restart', async () => {
      for (const name of ['primary', 'replica']) {
        const [, { environment = {} }] = ofProfile('scaled').find(([one]) => one === name)!;
        expect(Object.keys(environment), name).to.include.members(['PGDATA', 'PGPASSWORD', 'PRIMARY_HOST']);
      }
      // What is left of a copy that was cut off is not taken for one.
      const data = servers.data('replica');
      const left = [join(data, 'base'), join(data, 'copy', 'base')];
      for (const folder of left) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, 'of-another-time'), '');
      }
      if (asPostgres.length > 0) execFileSync('chown', ['-R', 'postgres:', data]);
      // Whichever of them is started first.
      await servers.up('replica', SETTINGS);
      await servers.up('primary', SETTINGS);
      await servers.untilHealthy('replica');
      expect(readFileSync(join(servers.data('primary'), 'pg_hba.conf'), 'utf8')).to.match(
        /^host replication replica samenet /m,
      );
      const client = await connected('primary');
      try {
        await until('the replica to be waited for', async () => (await states(client)) === 'quorum');
        expect([
          ...left.map((one) => existsSync(join(one, 'of-another-time'))),
          existsSync(join(data, 'copy')),
        ]).to.deep.equal([false, false, false]);
        await client.query('create table acknowledged (n int)');
        await client.query('insert into acknowledged values (1)');
        const there = await connected('replica');
        const { rows } = await there.query('select n from acknowledged');
        await there.end();
        expect(rows).to.deep.equal([{ n: 1 }]);

        await servers.end('replica', 'SIGINT');
        await servers.up('replica', SETTINGS);
        await until('the replica to follow again', async () => (await states(client)) === 'quorum');
      } finally {
        await client.end();
      }
    });

    it('makes no replica of a server that was a primary before it is emptied, and no primary of a replica before it is promoted', async () => {
      await servers.up('primary', SETTINGS);
      await servers.up('replica', SETTINGS);
      for (const name of ['primary', 'replica'] as const) await servers.untilHealthy(name);
      const elsewhere = { ...SETTINGS, DATABASE_HOST: 'replica' };
      await servers.up('replica', elsewhere);
      await servers.untilHealthy('replica');
      const client = await connected('replica');
      const { rows } = await client.query('select pg_is_in_recovery() as waits');
      await client.end();
      expect(rows).to.deep.equal([{ waits: true }]);
      await servers.up('primary', elsewhere);
      await until('the old primary to refuse', async () => servers.said('primary') !== null);
      expect(servers.said('primary')).to.match(/is of a primary, and DATABASE_HOST names another one \(replica\)/);
      expect(existsSync(join(servers.data('primary'), 'PG_VERSION')), 'nothing is thrown away').to.equal(true);
    });
  });
