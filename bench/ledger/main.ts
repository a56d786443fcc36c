/**
 * What the ledger costs beside bare loops that do the least of the same work, all in one run, medians of interleaved rounds. `--json`
 * prints it as JSON; `--fills N` sets how many fills of history the growth of costs and memory is measured over. Databases: SQLite,
 * and PostgreSQL when DATABASE_URL names a server. The exit code is 1 when a goal is missed.
 */
import { parseArgs } from 'node:util';
import { holds } from '../gateway/measure.js';
import type { Row } from '../gateway/measure.js';
import { measureCatchUp } from './catch-up.js';
import { measureCheckpoints } from './checkpoint.js';
import { databases } from './databases.js';
import { measureHistory } from './history.js';
import { measureIngest } from './ingest.js';
import { measureInserts } from './inserts.js';
import { measureReplay } from './replay.js';

const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, fills: { type: 'string', default: '100000' } },
});

const rows: Row[] = [...(await measureReplay()), ...(await measureIngest())];
for (const database of databases()) {
  rows.push(...(await measureInserts(database)));
  rows.push(...(await measureCatchUp(database)));
  rows.push(...(await measureCheckpoints(database)));
  rows.push(...(await measureHistory(database, Number.parseInt(values.fills, 10))));
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
