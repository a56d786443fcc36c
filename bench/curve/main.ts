/**
 * `npm run bench:curve`: how close curves come to books, how long compressing takes, and what posting costs. Options: `--book <file>`
 * for a recorded book, again and again; `--within <percent>` how far from the best price it counts; `--json`; `--no-gas`.
 * The exit code is 1 when a goal is missed.
 */
import { parseArgs } from 'node:util';
import { generatedBooks, recordedBook, type BenchSide } from './books.js';
import { measurePosts } from './gas.js';
import { lateFillCosts, type LateFillCost } from './late-fills.js';
import { errorsOf, timesOf, type Errors } from './measure.js';
import { report, type Result } from './report.js';

const KNOTS = [4, 7, 12, 15, 24, 31];
const GOAL_KNOTS = 15;
const GOAL_WIDTH_PERCENT = 3;
const RECORDED = 'test/fixtures/btc-usd-10pct.json';

const { values } = parseArgs({
  options: {
    book: { type: 'string', multiple: true, default: [RECORDED] },
    within: { type: 'string', multiple: true, default: ['2', '10'] },
    json: { type: 'boolean', default: false },
    'no-gas': { type: 'boolean', default: false },
  },
});

function books(): BenchSide[] {
  const recorded = values.book.flatMap((path) =>
    values.within.flatMap((percent) => recordedBook(path, parseFloat(percent))),
  );
  return [...generatedBooks(), ...recorded.filter(({ levels }) => levels.length > 0)];
}

function goalsOf(errors: readonly Errors[], lateFills: readonly LateFillCost[]): Result['goals'] {
  const judged = errors.filter((row) => row.knots === GOAL_KNOTS && row.widthPercent <= GOAL_WIDTH_PERCENT);
  const mean = judged.reduce((sum, { meanBps }) => sum + meanBps, 0) / judged.length;
  const worst = Math.max(...judged.map(({ worstBps }) => worstBps));
  const wei = lateFills.filter((row) => row.lateFills === 'one wei' && judged.some(({ book }) => book === row.book));
  const realistic = lateFills.filter(
    (row) => row.lateFills !== 'one wei' && judged.some(({ book }) => book === row.book),
  );
  const meanOf = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0) / values.length;
  const weiPercent = Math.max(...wei.map(({ withheldWorstPercent }) => withheldWorstPercent));
  const percent = meanOf(realistic.map(({ withheldMeanPercent }) => withheldMeanPercent));
  const bps = meanOf(realistic.map(({ raised }) => raised.meanBps));
  return [
    { name: 'depth withheld by a late fill of one wei, %', value: weiPercent, goal: 0.01, met: weiPercent <= 0.01 },
    { name: 'mean depth withheld by late fills, %', value: percent, goal: 1, met: percent <= 1 },
    { name: 'mean overpay after late fills, bps', value: bps, goal: 2.5, met: bps <= 2.5 },
    { name: `mean overpay at ${GOAL_KNOTS} knots, bps`, value: mean, goal: 0.12, met: mean <= 0.12 },
    { name: `worst overpay at ${GOAL_KNOTS} knots, bps`, value: worst, goal: 1.6, met: worst <= 1.6 },
  ];
}

const sides = books();
const errors = sides.flatMap((book) => KNOTS.map((knots) => errorsOf(book, knots)));
const lateFills = sides.flatMap((book) => lateFillCosts(book, GOAL_KNOTS));
const [ask, bid] = [sides.find(({ side }) => side === 'ask'), sides.find(({ side }) => side === 'bid')];
if (ask === undefined || bid === undefined) throw new Error('no book to post');
const result: Result = {
  errors,
  lateFills,
  times: sides.map(timesOf),
  posts: values['no-gas'] ? [] : await measurePosts(ask, bid),
  goals: goalsOf(errors, lateFills),
};
console.log(values.json ? JSON.stringify(result, null, 2) : report(result, KNOTS));
process.exitCode = result.goals.every(({ met }) => met) ? 0 : 1;
