/** `npm run simulate`. */
import { parseArgs } from 'node:util';
import { DEFAULT_FAULTS, NO_FAULTS } from './faults.js';
import { simulate } from './run.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    blocks: { type: 'string', default: '100' },
    trace: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
  },
});
const lines: string[] | null = values.trace ? [] : null;
const result = await simulate({
  seed: parseInt(values.seed, 10),
  blocks: parseInt(values.blocks, 10),
  faults: values.calm ? NO_FAULTS : DEFAULT_FAULTS,
  lines,
});
if (lines !== null) console.log(lines.join('\n'));
console.log(
  [...result.counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([what, times]) => `${times}\t${what}`)
    .join('\n'),
);
console.log({ ...result, counts: undefined, taken: result.taken.length });
process.exitCode = result.violations.length === 0 ? 0 : 1;
