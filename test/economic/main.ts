/**
 * `npm run attack -- [--minutes 60] [--seed N] [--rule raised] [--setting weth,coarse]`: searches for strategies of makers and takers who
 * collude that take anything from anybody else beyond what rounding costs. Prints how far it is every half minute, then everything
 * found, shortened to the steps that matter, and how often each situation came up. The exit code is 1 when something was found, or when
 * a situation never came up. `--rule none` leaves out the carry rule and shows what it is for.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { explain, progressLine, unreached } from './report.js';
import { search } from './search.js';
import { SETTINGS, type CarryRule } from './setting.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    rule: { type: 'string', default: 'raised' },
    setting: { type: 'string', default: SETTINGS.map(({ name }) => name).join() },
  },
});
const MINUTE_MS = 60_000;
const REPORT_MS = 30_000;
const CLOCK_EVERY = 20;

const carryRule: CarryRule = values.rule === 'none' ? 'none' : 'raised';
const seed = Number.parseInt(values.seed, 10);
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const startMs = Date.now();
const endMs = startMs + Number.parseFloat(values.minutes) * MINUTE_MS;
let reportMs = startMs + REPORT_MS;
let isStopped = false;
process.once('SIGINT', () => (isStopped = true));

say(`attack: seed ${seed}, carry rule ${carryRule}, ${values.minutes} minutes`);
const result = search({
  seed,
  carryRule,
  settings: values.setting.split(','),
  isOver(progress) {
    if (progress.tried % CLOCK_EVERY !== 0) return false;
    const nowMs = Date.now();
    if (nowMs >= reportMs) {
      say(`${Math.round((nowMs - startMs) / 1_000)} s: ${progressLine(progress)}`);
      reportMs = nowMs + REPORT_MS;
    }
    return isStopped || nowMs >= endMs;
  },
});

say(progressLine(result));
for (const candidate of result.found) for (const line of explain(candidate, carryRule)) say(line);
for (const candidate of result.richest.values()) {
  if (candidate.score.profit > candidate.score.bound) for (const line of explain(candidate, carryRule)) say(line);
}
for (const [what, times] of [...result.seen].sort()) say(`${String(times).padStart(9)}  ${what}`);
const missing = unreached(result.seen, carryRule);
for (const what of missing) say(`never: ${what}`);
if (result.found.length > 0) say('the victims lost more than rounding explains');
process.exitCode = result.found.length > 0 || missing.length > 0 ? 1 : 0;
