/**
 * `npm run simulate -- --seed N --hours H`: the whole backend on a virtual clock, with everything that can go wrong around it.
 *
 *   --seed N      the first seed (1)
 *   --seeds K     how many runs, each of the next seed (1)
 *   --hours H     simulated hours of each run
 *   --blocks B    the same in blocks (100)
 *   --trace       print every step
 *   --calm        without faults
 */
import { parseArgs } from 'node:util';
import { DEFAULT_FAULTS, NO_FAULTS } from './faults.js';
import { createReport } from './report.js';
import { simulate } from './run.js';

const BLOCKS_PER_HOUR = 1_800;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    hours: { type: 'string' },
    blocks: { type: 'string', default: '100' },
    trace: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
  },
});
const faults = values.calm ? NO_FAULTS : DEFAULT_FAULTS;
const blocks =
  values.hours === undefined ? parseInt(values.blocks, 10) : Math.ceil(BLOCKS_PER_HOUR * parseFloat(values.hours));
const first = parseInt(values.seed, 10);
const report = createReport();
let isFailed = false;
for (let seed = first; seed < first + parseInt(values.seeds, 10); seed += 1) {
  const lines: string[] | null = values.trace ? [] : null;
  const result = await simulate({ seed, blocks, faults, lines });
  report.add(result);
  if (lines !== null) console.log(lines.join('\n'));
  const verdict = result.violations.length === 0 ? 'ok' : result.violations.join('\n  ');
  console.log(
    `seed ${seed}: ${result.blocks} blocks, trace ${result.digest}, ${Math.round(result.cpuMs)} ms CPU, ${verdict}`,
  );
  if (result.violations.length > 0) isFailed = true;
}
console.log(report.lines().join('\n'));
process.exitCode = isFailed ? 1 : 0;
