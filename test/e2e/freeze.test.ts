/** Every role is taken over while its process is frozen: it lives, its connections stand, and it does nothing. PostgreSQL only. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { ROLE_NAMES as ROLES, type Role } from '../../ledger/roles.js';
import { writeManifest } from '../../deploy/manifest.js';
import { openDb } from '../../ledger/db/db.js';
import { startChild, type Child } from '../support/child.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { forPostgresUrl, until, type TestDatabase } from '../support/stack.js';

const LIMIT_MS = 90_000;
/** Less than the server would take by itself to end a silent session; busy machines take longer than the 4 s that it needs. */
const TAKEN_OVER_MS = 12_000;

forPostgresUrl((database, open) => {
  describe(`A frozen process, on ${database}`, function () {
    this.timeout(240_000);
    let chain: ManualChain;
    let db: TestDatabase;
    let folder: string;
    const children: Child[] = [];

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'curvebook-freeze-'));
      chain = await startManualChain();
      await chain.provider.send('evm_setIntervalMining', [500]);
      writeManifest(join(folder, 'manifest.json'), chain.manifest);
      db = await open();
    });

    after(async () => {
      await Promise.all(children.map((child) => child.end('SIGKILL')));
      await chain?.close();
      await db?.drop();
      rmSync(folder, { recursive: true, force: true });
    });

    function serve(roles: readonly Role[]): Child {
      const args = ['serve', '--manifest', join(folder, 'manifest.json'), '--database', db.url, '--port', '0'];
      const child = startChild('cli/main.ts', [...args, '--roles', roles.join(',')], { LOG_LEVEL: 'info' });
      children.push(child);
      return child;
    }

    const says = (child: Child, text: string): boolean => child.errors().some((line) => line.includes(text));

    async function hears(child: Child, text: string): Promise<void> {
      await until(
        `"${text}"`,
        async () => {
          if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.output()}`);
          return says(child, text);
        },
        LIMIT_MS,
      );
    }

    it('loses each of its roles to the standby of that role within seconds, and ends once it goes on', async () => {
      const holder = serve(ROLES);
      await hears(holder, 'roles started');
      const standbys = new Map(ROLES.map((role) => [role, serve([role])]));
      // Each asks for its lock with a session of its own, besides those of the five that are held.
      const root = await openDb(db.url);
      await until(
        'five standbys',
        async () => {
          const { rows } = await root.knex.raw<{ rows: unknown[] }>(
            `select 1 from pg_stat_activity where application_name = 'curvebook lock' and query like '%pg_try_advisory_lock%'
               and datname = current_database() and state_change > clock_timestamp() - interval '1 second'`,
          );
          return rows.length === ROLES.length;
        },
        LIMIT_MS,
      );
      await root.close();
      holder.process.kill('SIGSTOP');
      const fromMs = performance.now();
      const tookMs = new Map<Role, number>();
      while (tookMs.size < ROLES.length && performance.now() - fromMs < LIMIT_MS) {
        for (const [role, child] of standbys) {
          if (!tookMs.has(role) && says(child, 'roles started')) tookMs.set(role, performance.now() - fromMs);
        }
        await delay(20);
      }
      console.log(`        ${[...tookMs].map(([role, ms]) => `${role} ${Math.round(ms)} ms`).join(', ')}`);
      expect([...tookMs.keys()]).to.have.members([...ROLES]);
      for (const [role, ms] of tookMs) expect(ms, role).to.be.below(TAKEN_OVER_MS);
      holder.process.kill('SIGCONT');
      expect(await holder.ended, holder.output()).to.equal(75);
      for (const [role, child] of standbys) expect(child.process.exitCode, role).to.equal(null);
    });
  });
});
