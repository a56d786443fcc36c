/** Processes of a deployment that are frozen: they live, their connections stand, and they do nothing. PostgreSQL only. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openDb } from '../../../ledger/db/db.js';
import { writeManifest } from '../../../deploy/manifest.js';
import type { Role } from '../../../ledger/roles.js';
import { startChild, type Child } from '../child.js';
import { startManualChain } from '../keeper-stack.js';
import { until } from '../stack.js';

const LIMIT_MS = 90_000;
const LOOK_MS = 20;
const PROBE_MS = 100;

/** A line of a process's log, as far as it is read here. */
interface Line {
  time: number;
  msg: string;
  role?: Role;
  roles?: readonly Role[];
  url?: string;
  silentMs?: number;
}

/** A process of some roles. */
interface Served {
  readonly child: Child;
  said(msg: string): Line[];
  says(msg: string): Promise<void>;
  /** Ends the freeze, and resolves with the exit code. */
  goesOn(): Promise<number | null>;
}

/** How a take-over went, by the logs of those that took over. */
interface TakeOver {
  /** From the freeze, or from the last query before it, which is earlier, until the role had started elsewhere. */
  takenMs: ReadonlyMap<Role, number>;
  /** How long the frozen process had been silent, by the database's clock, when its session was ended; none when it ended with another one. */
  silentMs: ReadonlyMap<Role, number>;
  /** How much later than asked for a query every 100 ms came back, all together: what a busy machine adds. */
  lateMs: number;
}

export interface Freezing {
  /** On the database, or on another way to it. */
  serve(roles: readonly (Role | 'reader')[], url?: string): Served;
  /** Resolves once so many sessions wait for a log. */
  waiting(sessions: number): Promise<void>;
  /** Freezes the holder until the standbys have all of these roles. */
  freeze(holder: Served, standbys: readonly Served[], roles?: readonly Role[]): Promise<TakeOver>;
  close(): Promise<void>;
}

const STARTED = 'roles started';
const BEGINS = 'a role begins';
const ENDED = 'ended the session of a silent process';

/** A chain with a block every half second, and nothing that uses it yet. */
export async function startFreezing(databaseUrl: string): Promise<Freezing> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-freeze-'));
  const chain = await startManualChain();
  await chain.provider.send('evm_setIntervalMining', [500]);
  writeManifest(join(folder, 'manifest.json'), chain.manifest);
  const db = await openDb(databaseUrl);
  const children: Child[] = [];

  function serve(roles: readonly (Role | 'reader')[], url = databaseUrl): Served {
    const args = ['serve', '--manifest', join(folder, 'manifest.json'), '--database', url, '--port', '0'];
    const child = startChild('cli/main.ts', [...args, '--roles', roles.join(',')], { LOG_LEVEL: 'info' });
    children.push(child);
    const said = (msg: string): Line[] =>
      child
        .errors()
        .filter((line) => line.includes(msg))
        .map((line) => JSON.parse(line) as Line);
    return {
      child,
      said,
      says: (msg) =>
        until(
          `"${msg}"`,
          () => {
            if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.output()}`);
            return Promise.resolve(said(msg).length > 0);
          },
          LIMIT_MS,
        ),
      goesOn() {
        child.process.kill('SIGCONT');
        return child.ended;
      },
    };
  }

  const waiting = (sessions: number): Promise<void> =>
    until(
      `${sessions} sessions that wait`,
      async () => {
        const { rows } = await db.knex.raw<{ rows: unknown[] }>(
          `select 1 from pg_stat_activity where application_name = 'curvebook lock'
             and (query like '%pg_try_advisory_lock%' or query like 'select exists (select 1 from pg_locks%') and datname = current_database() and state_change > clock_timestamp() - interval '1 second'`,
        );
        return rows.length === sessions;
      },
      LIMIT_MS,
    );

  /** When a process had a role, by its log. */
  function startOf({ said }: Served, role: Role): number | null {
    const late = said(BEGINS).find((line) => line.role === role);
    const first = said(STARTED).find(({ roles }) => roles?.includes(role) === true);
    return (late ?? first)?.time ?? null;
  }

  return {
    serve,
    waiting,
    async freeze(holder, standbys, roles) {
      const wanted = roles ?? standbys.flatMap(({ child }) => child.process.spawnargs.at(-1)!.split(',') as Role[]);
      let lateMs = 0;
      let isOver = false;
      const probing = (async () => {
        while (!isOver) {
          const fromMs = performance.now();
          await Promise.all([delay(PROBE_MS), db.knex.raw('select 1')]);
          lateMs += Math.max(performance.now() - fromMs - PROBE_MS, 0);
        }
      })();
      holder.child.process.kill('SIGSTOP');
      const frozenMs = Date.now();
      const takenMs = new Map<Role, number>();
      const silentMs = new Map<Role, number>();
      while (takenMs.size < wanted.length && Date.now() - frozenMs < LIMIT_MS) {
        await delay(LOOK_MS);
        for (const role of wanted.filter((one) => !takenMs.has(one))) {
          const standby = standbys.find((one) => startOf(one, role) !== null);
          if (standby === undefined) continue;
          const noticed = standby.said(ENDED).find((line) => line.role === role);
          if (noticed?.silentMs !== undefined) silentMs.set(role, noticed.silentMs);
          const fromMs = noticed?.silentMs === undefined ? frozenMs : noticed.time - noticed.silentMs;
          takenMs.set(role, startOf(standby, role)! - Math.min(fromMs, frozenMs));
        }
      }
      isOver = true;
      await probing;
      return { takenMs, silentMs, lateMs: Math.round(lateMs) };
    },
    async close() {
      await Promise.all(children.map((child) => child.end('SIGKILL')));
      await db.close();
      await chain.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
