/**
 * `npm run bench:latency`: from a block to the commit of its generation and to the frame that tells a maker of its fill, p50 and p95, with
 * followers that are woken beside followers that poll, and what each costs while nothing happens; all in one run. SQLite in one process, and
 * PostgreSQL in one process and with roles apart when DATABASE_URL names a server. `--swaps N`, `--idle-sec N`, `--only <setup>` (`sqlite`,
 * `postgres`, `roles`; several times for several), `--mode <mode>` and `--json`. Fails when a goal is missed.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openDb } from '../../ledger/db/db.js';
import { holds, median, type Row } from '../gateway/measure.js';
import { measureLatency, type Latencies, type Mode } from './measure.js';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    swaps: { type: 'string', default: '40' },
    'idle-sec': { type: 'string', default: '30' },
    only: { type: 'string', multiple: true },
    mode: { type: 'string', multiple: true },
  },
});

const FRAME_GOAL_MS = 150;
/** Allows for the noise of a process on a machine that does other work, too. */
const IDLE_GOAL = 1.1;

/** Polling is measured first, since the others are compared with it. */
const MODES: readonly Mode[] = [
  { name: 'polling', env: { WAKE: 'false' } },
  { name: 'due blocks', env: { HEADS_URL: 'none' } },
  { name: 'heads', env: {} },
];

const ALL_ROLES = 'watcher,gateway,poster,settler,executor';
interface Place {
  key: string;
  name: string;
  onPostgres: boolean;
  processes: readonly string[];
}
const PLACES: readonly Place[] = [
  { key: 'sqlite', name: 'SQLite, one process', onPostgres: false, processes: [ALL_ROLES] },
  { key: 'postgres', name: 'PostgreSQL, one process', onPostgres: true, processes: [ALL_ROLES] },
  {
    key: 'roles',
    name: 'PostgreSQL, roles apart',
    onPostgres: true,
    processes: ['watcher', 'gateway', 'poster,settler,executor'],
  },
];

const server = process.env.DATABASE_URL ?? '';
const hasServer = /^postgres(ql)?:/.test(server);

async function withDatabase<T>(onPostgres: boolean, work: (url: string) => Promise<T>): Promise<T> {
  if (!onPostgres) {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-latency-'));
    return work(`sqlite:${join(folder, 'bench.sqlite')}`).finally(() => rmSync(folder, { recursive: true }));
  }
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(server);
  url.searchParams.set('schema', schema);
  try {
    return await work(url.toString());
  } finally {
    const db = await openDb(server);
    await db.knex.raw('drop schema if exists ?? cascade', [schema]);
    await db.close();
  }
}

const p95 = (samples: readonly number[]): number =>
  [...samples].sort((a, b) => a - b)[Math.ceil(samples.length * 0.95) - 1] ?? Number.NaN;

const chosenModes = MODES.filter(({ name }) => values.mode === undefined || values.mode.includes(name));
const chosenPlaces = PLACES.filter(({ key }) => values.only === undefined || values.only.includes(key));
const measured = [...(values.only ?? []).filter((key) => !PLACES.some((place) => place.key === key))];
if (measured.length > 0 || chosenModes.length === 0)
  throw new RangeError(
    `--only takes ${PLACES.map(({ key }) => key).join(', ')}; --mode takes ${MODES.map(({ name }) => name).join(', ')}`,
  );

const rows: Row[] = [];
for (const place of chosenPlaces) {
  if (place.onPostgres && !hasServer) continue;
  let polling: Latencies | null = null;
  for (const mode of chosenModes) {
    const found = await withDatabase(place.onPostgres, (databaseUrl) =>
      measureLatency({
        databaseUrl,
        processes: place.processes,
        mode,
        swaps: Number.parseInt(values.swaps, 10),
        idleMs: Number.parseInt(values['idle-sec'], 10) * 1_000,
      }),
    );
    const isWoken = mode.name !== 'polling';
    const row = (what: string, value: number, unit: string, bound: Row['bound'] = null): void =>
      void rows.push({ goal: '', what: `${place.name}, ${mode.name}: ${what}`, value, unit, bound });
    const goal = mode.name === 'heads' ? { atMost: FRAME_GOAL_MS } : null;
    row('block to commit, p50', median(found.commitMs), 'ms', goal);
    row('block to commit, p95', p95(found.commitMs), 'ms');
    row('block to frame, p50', median(found.frameMs), 'ms', goal);
    row('block to frame, p95', p95(found.frameMs), 'ms');
    row('swaps measured', found.frameMs.length, '');
    row('CPU of an idle minute', found.idleCpuSec, 's');
    if (isWoken && polling !== null) {
      row('frame / polling', median(found.frameMs) / median(polling.frameMs), 'x');
      row('idle CPU / polling', found.idleCpuSec / polling.idleCpuSec, 'x', { atMost: IDLE_GOAL });
    }
    if (!isWoken) polling = found;
    process.stderr.write(`${place.name}, ${mode.name}: done\n`);
  }
}

const boundText = ({ bound }: Row): string =>
  bound === null ? '' : 'atLeast' in bound ? `>= ${bound.atLeast}` : `<= ${bound.atMost}`;
if (values.json) {
  process.stdout.write(`${JSON.stringify({ rows: rows.map((row) => ({ ...row, holds: holds(row) })) })}\n`);
} else {
  for (const row of rows) {
    const value = `${row.value.toPrecision(3)} ${row.unit}`;
    const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
    process.stdout.write(`${row.what.padEnd(64)} ${value.padStart(12)}  ${boundText(row).padEnd(8)} ${verdict}\n`);
  }
}
process.exitCode = rows.every(holds) ? 0 : 1;
