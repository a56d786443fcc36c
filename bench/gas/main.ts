/** `npm run bench:gas`: Curvebook's gas beside Uniswap's. `--json` prints the rows as they are in snapshots/gas.json. */
import { parseArgs } from 'node:util';
import { measureAll } from './measure.js';
import { report } from './report.js';
import { snapshotOf } from './snapshot.js';

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const rows = await measureAll();
console.log(values.json ? JSON.stringify(snapshotOf(rows), null, 2) : report(rows));
