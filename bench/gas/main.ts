/**
 * `npm run bench:gas`: Curvebook's gas beside Uniswap's. `--json` prints the rows as they are in snapshots/gas.json, `--write` renews that
 * file and the tables of docs/contracts.md, and `--check` fails when the measured gas is not what it says.
 */
import { parseArgs } from 'node:util';
import { writeTables } from './doc.js';
import { measureAll } from './measure.js';
import { report } from './report.js';
import { driftOf, readSnapshot, snapshotOf, writeSnapshot } from './snapshot.js';

const flag = { type: 'boolean', default: false } as const;
const { values } = parseArgs({ options: { json: flag, write: flag, check: flag } });
const rows = await measureAll();
if (values.write) {
  writeSnapshot(rows);
  writeTables(snapshotOf(rows));
}
console.log(values.json ? JSON.stringify(snapshotOf(rows), null, 2) : report(rows));
if (values.check) {
  const drift = driftOf(readSnapshot(), snapshotOf(rows));
  for (const line of drift) console.error(line);
  if (drift.length > 0) process.exitCode = 1;
}
