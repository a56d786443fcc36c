/**
 * `npm run bench:swap`: quotes per second and the latency of submissions beside a bare Koa route with one commit, and quotes per second by the places
 * where a pair trades; orders that are executed beside the best that Uniswap alone gives; gas per order by route beside Uniswap's own router, in one
 * run; and the gas that the default fee model should assume. `--json` prints all of it as JSON, `--only http,sources,evasive,plans,executed,gas` some of it. Fails on any
 * answer but 200, when a goal is missed, and when the default gas of the fee model is not what was measured.
 */
import { DEFAULT_GAS } from '../../core/swap/pricing.js';
import { gasModelOf } from '../gas/model.js';
import { measureAll } from '../gas/measure.js';
import { routes } from '../gas/report.js';
import { snapshotOf } from '../gas/snapshot.js';
import { holds, type Row } from '../gateway/measure.js';
import { measureNewcomers, measurePlans } from './plan.js';
import { measureExecuted, type ExecutedFigures } from './executed.js';
import { measurePrices, type PriceFigures } from './prices.js';
import { measureSources, type SourceFigures } from './sources.js';
import { measureEvasive, type EvasiveFigures } from './evasive.js';
import { stopLoad } from './load.js';
import { measureHttp, temporaryDatabases, type HttpFigures } from './http.js';

/** How much worse an order may be than Uniswap alone. */
const WORST_PRICE_BPS = -5;
const WORST_WHOLE_BPS = -50;
/** How much more CPU the plan for a new account may take than the best one for anyone. */
const NEWCOMER_RATIO = 10;

const text = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value);

function rowsOf(figures: HttpFigures): Row[] {
  const plain = (what: string, value: number, unit: string): Row => ({ goal: '', what, value, unit, bound: null });
  const ratio = (what: string, value: number, bound: Row['bound']): Row => ({
    goal: '',
    what,
    value,
    unit: 'x',
    bound,
  });
  return [
    plain('quotes, 32 at a time', figures.quotesPerSec, '/s'),
    plain('bare Koa route with one commit, the same bodies', figures.bareForQuotesPerSec, '/s'),
    ratio('quotes per second / bare', figures.quotesPerSec / figures.bareForQuotesPerSec, { atLeast: 0.4 }),
    ratio('server CPU of a quote / of the bare route', figures.quoteCpuUs / figures.bareCpuUs, null),
    plain('server CPU of a quote', figures.quoteCpuUs, 'us'),
    plain('one quote at a time, median', figures.quoteMs, 'ms'),
    plain('one submission at a time, median', figures.submitMs, 'ms'),
    plain('bare route, the same bodies, median', figures.bareMs, 'ms'),
    ratio('latency of a submission / of the bare route', figures.submitMs / figures.bareMs, { atMost: 12 }),
    plain('submissions, 32 at a time', figures.submitsPerSec, '/s'),
    ratio('submissions per second / bare', figures.submitsPerSec / figures.barePerSec, null),
  ];
}

const evasiveRows = ({ aloneP99Ms, besideP99Ms, evasivePerSec }: EvasiveFigures): Row[] => [
  { goal: '', what: 'p99 of a submission, alone', value: aloneP99Ms, unit: 'ms', bound: null },
  {
    ...{ goal: '', what: 'the same beside 10 accounts whose check burns its gas', value: besideP99Ms, unit: 'ms' },
    bound: null,
  },
  { goal: '', what: 'submissions of those accounts, refused', value: evasivePerSec, unit: '/s', bound: null },
  {
    ...{ goal: '', what: 'p99 beside them / alone', value: besideP99Ms / aloneP99Ms, unit: 'x' },
    bound: { atMost: 3 },
  },
];

const pricesRows = ({ trades, meanBps, medianBps, worstBps, oursAlone }: PriceFigures): Row[] => [
  { goal: '', what: `ours against Uniswap alone, ${trades} trades, mean`, value: meanBps, unit: 'bps', bound: null },
  { goal: '', what: 'the same, median', value: medianBps, unit: 'bps', bound: null },
  { goal: '', what: 'the same, worst', value: worstBps, unit: 'bps', bound: { atLeast: 0 } },
  { goal: '', what: 'trades beside, that the pools alone can not fill', value: oursAlone, unit: '', bound: null },
];

const sourcesRows = (figures: SourceFigures): Row[] => [
  ...([1, 3, 6] as const).flatMap((count): Row[] => {
    const where = `a pair that trades at ${count} place${count > 1 ? 's' : ''}`;
    return [
      { goal: '', what: `quotes of ${where}`, value: figures[count].perSec, unit: '/s', bound: null },
      { goal: '', what: 'server CPU of a quote', value: figures[count].cpuUs, unit: 'us', bound: null },
    ];
  }),
  ...([3, 6] as const).map((count): Row => {
    const value = figures[count].perSec / figures[1].perSec;
    return { goal: '', what: `quotes per second, ${count} places / 1`, value, unit: 'x', bound: { atLeast: 0.25 } };
  }),
];

const executedRows = ({ trades, exact, routes: by, price, whole }: ExecutedFigures): Row[] => {
  const gains = (what: string, { meanBps, medianBps, worstBps }: ExecutedFigures['price'], worst: number): Row[] => [
    { goal: '', what: `${what}, mean`, value: meanBps, unit: 'bps', bound: { atLeast: 0 } },
    { goal: '', what: 'the same, median', value: medianBps, unit: 'bps', bound: { atLeast: 0 } },
    { goal: '', what: 'the same, worst', value: worstBps, unit: 'bps', bound: { atLeast: worst } },
  ];
  const count = (what: string, value: number): Row => ({ goal: '', what, value, unit: '', bound: null });
  return [
    { goal: '', what: 'executed orders', value: trades, unit: '', bound: null },
    { goal: '', what: 'of them exactly as quoted', value: exact / trades, unit: 'x', bound: { atLeast: 1 } },
    ...[count('by our curve alone', by.own), count('by it and pools', by.both), count('by pools alone', by.pools)],
    ...gains('executed price against Uniswap alone', price, WORST_PRICE_BPS),
    ...gains('with our fee against the gas of its routers', whole, WORST_WHOLE_BPS),
  ];
};

const plansRows = (): Row[] =>
  [1, 3, 6].map(measurePlans).flatMap(({ sources, meanMs, p99Ms }): Row[] => [
    { goal: '', what: `plans among ${sources} per second of CPU`, value: 1_000 / meanMs, unit: '/s', bound: null },
    { goal: '', what: `plan among ${sources}, CPU, mean`, value: meanMs, unit: 'ms', bound: { atMost: 5 } },
    { goal: '', what: `plan among ${sources}, CPU, p99`, value: p99Ms, unit: 'ms', bound: { atMost: 5 } },
  ]);

async function newcomersRows(): Promise<Row[]> {
  const { anyoneMs, newcomerMs } = await measureNewcomers();
  const where = 'across ticks of 5 pools';
  return [
    { goal: '', what: `plan for a new account ${where}, CPU`, value: newcomerMs, unit: 'ms', bound: null },
    {
      ...{ goal: '', what: 'the same / the best plan for anyone', value: newcomerMs / anyoneMs, unit: 'x' },
      bound: { atMost: NEWCOMER_RATIO },
    },
  ];
}

const databases = temporaryDatabases();
const parts: Record<string, () => Promise<Row[]> | Row[]> = {
  http: async () => rowsOf(await measureHttp(databases.urlOf)),
  sources: async () => sourcesRows(await measureSources(databases.urlOf('sources'))),
  evasive: async () => evasiveRows(await measureEvasive(databases.urlOf('evasive'))),
  plans: async () => [...plansRows(), ...(await newcomersRows()), ...pricesRows(measurePrices())],
  executed: async () => executedRows(await measureExecuted(databases.urlOf('executed'))),
};
const only = process.argv.includes('--only')
  ? (process.argv[process.argv.indexOf('--only') + 1] ?? '').split(',')
  : null;
const unknown = only?.filter((name) => name !== 'gas' && !(name in parts)) ?? [];
if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(parts).join(', ')} and gas, not ${unknown.join()}`);
const isWanted = (name: string): boolean => only?.includes(name) ?? true;

const rows: Row[] = [];
try {
  for (const [name, measure] of Object.entries(parts)) if (isWanted(name)) rows.push(...(await measure()));
} finally {
  stopLoad();
  databases.drop();
}
const gasRows = isWanted('gas') ? await measureAll() : null;
const model = gasRows === null ? DEFAULT_GAS : gasModelOf(snapshotOf(gasRows));
const isDefault = JSON.stringify(model, text) === JSON.stringify(DEFAULT_GAS, text);

if (process.argv.includes('--json')) {
  const entries = Object.entries(gasRows === null ? {} : snapshotOf(gasRows));
  const gas = Object.fromEntries(entries.filter(([id]) => /^(order|v3)\./.test(id)));
  const all = { rows: rows.map((row) => ({ ...row, holds: holds(row) })), gas, gasModel: model, isDefault };
  process.stdout.write(`${JSON.stringify(all, text)}\n`);
} else {
  for (const row of rows) {
    const bound =
      row.bound === null ? '' : 'atLeast' in row.bound ? `>= ${row.bound.atLeast}` : `<= ${row.bound.atMost}`;
    const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
    const value = `${row.value.toPrecision(3)} ${row.unit}`;
    process.stdout.write(`${row.what.padEnd(52)} ${value.padStart(12)}  ${bound.padEnd(8)} ${verdict}\n`);
  }
  if (gasRows !== null) {
    const byId = new Map(gasRows.map((row) => [row.id, row]));
    process.stdout.write(`\n${routes((id) => byId.get(id)!)}\n`);
    const figuresOf = Object.entries(model).map(([name, gas]) => `${name} ${gas}`);
    process.stdout.write(
      `gas of the fee model: ${figuresOf.join(', ')} (${isDefault ? 'the default' : 'NOT the default'})\n`,
    );
  }
}
process.exitCode = rows.every(holds) && isDefault ? 0 : 1;
