/**
 * `npm run simulate -- --seed N --hours H`: the whole backend on a virtual clock, with everything that can go wrong around it.
 *
 *   --seed N      the first seed (1)
 *   --seeds K     how many runs, each of the next seed (1)
 *   --hours H     simulated hours of each run
 *   --blocks B    the same in blocks (100)
 *   --lies NAMES  only these lies of endpoints, by name
 *   --rates LIST  these faults this often, as name=rate parted by commas: 'clockStep=0.2,promote=0.05'
 *   --processes N so many runs at once, each in a process of its own (1)
 *   --trace       print every step
 *   --calm        without faults
 *   --quiet       only verdicts
 *   --resume FILE writes down which seeds are done, with a hash of the code, and leaves out those that the file has of the same code
 *   --shrink      of the first run that fails, the fewest events that still make it fail
 *   --events LIST only these events happen, by the names that --shrink prints, parted by commas
 *   --mistakes    puts mistakes into a copy of the sources, one by one, and looks how soon each is found
 *   --only NAMES  only these mistakes
 *   --minutes M   of a processor's time, how long each is looked for (10)
 */
import { parseArgs } from 'node:util';
import { DEFAULT_FAULTS, NO_FAULTS } from './faults.js';
import { tryMistakes } from './search/mistakes.js';
import { createReport } from './search/report.js';
import { currentCode, resume } from './search/resume.js';
import { withRates } from './search/rates.js';
import { simulateAll } from './crew.js';
import type { RunResult } from './run.js';
import { shrink } from './search/shrink.js';

const BLOCKS_PER_HOUR = 1_800n;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    hours: { type: 'string' },
    blocks: { type: 'string', default: '100' },
    lies: { type: 'string' },
    rates: { type: 'string' },
    only: { type: 'string' },
    processes: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '10' },
    trace: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
    resume: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    events: { type: 'string' },
    mistakes: { type: 'boolean', default: false },
  },
});
const first = parseInt(values.seed, 10);
const usual = values.calm ? NO_FAULTS : DEFAULT_FAULTS;
const faults = {
  ...(values.rates === undefined ? usual : withRates(usual, values.rates)),
  ...(values.lies === undefined ? {} : { lies: values.lies.split(',') }),
};
const blocks =
  values.hours === undefined ? parseInt(values.blocks, 10) : parseInt(`${BLOCKS_PER_HOUR * BigInt(values.hours)}`, 10);

if (values.mistakes) {
  const isFound = await tryMistakes({ only: values.only?.split(',') ?? null, minutes: parseInt(values.minutes, 10) });
  process.exitCode = isFound ? 0 : 1;
} else {
  const report = createReport();
  let failed = null as RunResult | null;
  const lines: string[] | null = values.trace ? [] : null;
  const only = values.events === undefined ? null : new Set(values.events.split(','));
  const wanted = Array.from({ length: parseInt(values.seeds, 10) }, (_, i) => first + i);
  // A run without faults, or of few lies, says nothing about the usual one.
  const isUsual = !values.calm && values.lies === undefined && values.rates === undefined && only === null;
  if (values.resume !== undefined && !isUsual)
    throw new RangeError('--resume goes with the usual faults: without --calm, --lies, --rates and --events');
  const resumed = values.resume === undefined ? null : resume(values.resume, await currentCode(), blocks);
  const before = wanted.flatMap((seed) => resumed?.done.get(seed) ?? []);
  const failedBefore = before.filter(({ violations }) => violations.length > 0);
  if (resumed !== null) {
    console.log(`${before.length} of ${wanted.length} seeds are done; ${resumed.others} lines are of other runs`);
    for (const { seed, violations } of failedBefore) console.log(`seed ${seed}: FAILED ${violations[0]}`);
  }
  await simulateAll({
    seeds: wanted.filter((seed) => resumed?.done.has(seed) !== true),
    options: { blocks, faults, lines, only },
    processes: lines === null ? parseInt(values.processes, 10) : 1,
    onResult(result) {
      report.add(result);
      resumed?.note(result);
      if (lines !== null) console.log(lines.splice(0).join('\n'));
      const verdict = result.violations.length === 0 ? 'ok' : `FAILED ${result.violations.slice(0, 3).join('\n  ')}`;
      const { seed, digest, cpuMs } = result;
      console.log(`seed ${seed}: ${result.blocks} blocks, trace ${digest}, ${Math.round(cpuMs)} ms CPU, ${verdict}`);
      if (result.violations.length > 0) failed ??= result;
      return failed !== null && values.shrink;
    },
  });
  resumed?.compact();
  console.log((values.quiet ? report.lines().slice(-1) : report.lines()).join('\n'));
  if (failed !== null && values.shrink) {
    const least = await shrink({ seed: failed.seed, blocks, faults }, failed);
    console.log(`${failed.taken.length} events shrink to ${least.taken.length} and ${least.blocks} blocks:`);
    console.log([...least.taken, ...least.violations.slice(0, 1)].map((line) => `  ${line}`).join('\n'));
    const given = (['lies', 'rates'] as const).map((name) =>
      values[name] === undefined ? '' : ` --${name} ${values[name]}`,
    );
    const narrowed = [values.calm ? ' --calm' : '', ...given].join('');
    const { seed, asked, taken } = least;
    console.log(`npm run simulate -- --seed ${seed} --blocks ${asked}${narrowed} --events '${taken.join()}'`);
  }
  process.exitCode = failed === null && failedBefore.length === 0 ? 0 : 1;
}
