/**
 * `npm run bench:ledger`: the ledger compared with bare loops that do the least of the same work, all in one run, medians of interleaved rounds. `--json`
 * prints it as JSON; `--fills N` sets how many fills of history the growth of costs and memory is measured over; `--only <part>`, once or
 * more, runs some parts only. Databases: SQLite, and PostgreSQL when DATABASE_URL names a server; `--database sqlite|postgres` is one of
 * them. How long each part took goes to stderr. The exit code is 1 when a goal is missed.
 */
import { parseArgs } from 'node:util';
import { holds } from '../gateway/measure.js';
import type { Row } from '../gateway/measure.js';
import { measureCatchUp } from './catch-up.js';
import { measureCheckpoints } from './checkpoint.js';
import { databases, type Database } from './databases.js';
import { measureHistory } from './history.js';
import { measureIngest } from './ingest.js';
import { measureInserts } from './inserts.js';
import { measureReplay } from './replay.js';
import { measureStorage } from './storage.js';
import { measureStrangers } from './strangers.js';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    fills: { type: 'string', default: '100000' },
    only: { type: 'string', multiple: true },
    database: { type: 'string' },
  },
});

const fills = Number.parseInt(values.fills, 10);
const alone: Record<string, () => Promise<Row[]>> = { replay: measureReplay, ingest: measureIngest };
const perDatabase: Record<string, (database: Database) => Promise<Row[]>> = {
  inserts: measureInserts,
  'catch-up': measureCatchUp,
  checkpoints: measureCheckpoints,
  storage: measureStorage,
  strangers: (database) => measureStrangers(database),
  history: (database) => measureHistory(database, fills),
};

const known = [...Object.keys(alone), ...Object.keys(perDatabase)];
const chosen = values.only ?? known;
const unknown = chosen.find((part) => !known.includes(part));
if (unknown !== undefined) throw new RangeError(`--only takes ${known.join(', ')}; not ${unknown}`);

const rows: Row[] = [];
async function measure(part: string, name: string, work: () => Promise<Row[]>): Promise<void> {
  if (!chosen.includes(part)) return;
  const startedMs = performance.now();
  rows.push(...(await work()));
  process.stderr.write(`${name}: ${((performance.now() - startedMs) / 1_000).toFixed(0)} s\n`);
}

for (const [part, work] of Object.entries(alone)) await measure(part, part, work);
for (const database of databases(values.database)) {
  for (const [part, work] of Object.entries(perDatabase)) {
    await measure(part, `${part}, ${database.name}`, () => work(database));
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
    process.stdout.write(
      `${row.goal.padEnd(4)} ${row.what.padEnd(56)} ${value.padStart(12)}  ${boundText(row).padEnd(8)} ${verdict}\n`,
    );
  }
}
process.exitCode = rows.every(holds) ? 0 : 1;
