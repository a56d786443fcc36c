/** The tables of docs/scale.md, from the stored figures. */
import { readFileSync, writeFileSync } from 'node:fs';
import { edgeShares, readEdgeCosts } from './edges.js';
import { figureValues, measuredFigures } from './figures.js';
import { TEN_TIMES } from './load.js';
import { costOf, inventoryFactor, limitsOf, SCENARIOS, type Cost } from './model.js';

const PATH = new URL('../../docs/scale.md', import.meta.url);
const BEGIN = '<!-- Made by `npm run bench:scale -- --write`. -->\n\n';
const END = '\n<!-- Here ends what is made. -->\n';

/** Gas of a block that posts may take in the table of limits. */
const BLOCK_GAS = 30_000_000;

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
const rule = (columns: number): string => `|${'---|'.repeat(columns)}\n`;
const short = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en-US') : `${Number.parseFloat(value.toPrecision(2))}`;

/** With the prefix that leaves up to three digits. */
function scaled(value: number, unit: string): string {
  const steps = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const;
  const step = steps.find(([size]) => value >= size);
  return step === undefined ? `${short(value)} ${unit}` : `${short(value / step[0])} ${step[1]}${unit}`;
}

function figuresTable(): string {
  const rows = Object.values(measuredFigures()).map(({ what, value, unit, source }) =>
    line([what, unit === 'ms' ? `${value} ms` : `${Math.round(value).toLocaleString('en-US')} ${unit}`, source]),
  );
  return [line(['what', 'measured', 'by']), rule(3), ...rows].join('');
}

type CostColumn = readonly [title: string, text: (cost: Cost) => string];
const WORK_COLUMNS: readonly CostColumn[] = [
  ['batches of 50 a second', (cost) => short(cost.batchesPerSec)],
  ['gateway', (cost) => short(cost.gatewayCores)],
  ['gateways', (cost) => short(cost.gateways)],
  ['watcher', (cost) => short(cost.watcherCores)],
  ['poster', (cost) => short(cost.posterCores)],
  ['database', (cost) => short(cost.databaseCores)],
  ['heap for orders', (cost) => scaled(cost.heapBytes, 'B')],
];
const STORED_COLUMNS: readonly CostColumn[] = [
  ['order rows kept', (cost) => scaled(cost.orderLogBytes, 'B')],
  ['for good, a day', (cost) => scaled(cost.keptPerDayBytes, 'B')],
  ['gas a block', (cost) => scaled(cost.gasPerBlock, '')],
  ['gas a day', (cost) => scaled(cost.gasPerDay, '')],
  ['L1 data a day', (cost) => scaled(cost.l1BytesPerDay, 'B')],
];

/** One row per load. */
function costTable(columns: readonly CostColumn[]): string {
  const figures = figureValues();
  return [
    line(['', ...columns.map(([title]) => title)]).replace('|  |', '| |'),
    rule(columns.length + 1),
    ...[...SCENARIOS, ['ten times today', TEN_TIMES] as const].map(([name, load]) => {
      const cost = costOf(load, figures);
      return line([name, ...columns.map(([, text]) => text(cost))]);
    }),
  ].join('');
}

function limitsTable(): string {
  const limits = limitsOf(figureValues(), BLOCK_GAS);
  const rows: readonly [string, string][] = [
    ['batches of 50 a second by one gateway', short(limits.batchesPerSec)],
    ['makers that send five a second to it', short(limits.busyMakers)],
    ['requests for limits a second, if it did nothing else', short(limits.limitsPerSec)],
    ['fills a second by one watcher', short(limits.fillsPerSec)],
    ['markets posted in each block, by the time of one poster', short(limits.marketsByCpu)],
    [`markets posted in each block, by ${scaled(BLOCK_GAS, '')} gas`, short(limits.marketsByGas)],
  ];
  return [line(['', 'at most']).replace('|  |', '| |'), rule(2), ...rows.map((row) => line(row))].join('');
}

function inventoryTable(): string {
  const counts = [1, 2, 4, 8, 16];
  return [
    line(['shards', ...counts.map(String)]),
    rule(counts.length + 1),
    line([
      'inventory that moves, against one ledger',
      ...counts.map((count) => `${inventoryFactor(count).toFixed(2)}`),
    ]),
  ].join('');
}

function edgesTable(): string {
  const ms = (value: number): string => `${value} ms`;
  const rows = readEdgeCosts().map(edgeShares);
  return [
    line([
      'edges',
      'gateway, per order',
      'edges',
      'NATS',
      'database',
      "gateway's share",
      'orders a second by one gateway',
      'edges that these need',
    ]),
    rule(8),
    ...rows.map((row) =>
      line([
        row.edges === 0 ? 'none' : `${row.edges}`,
        ms(row.gatewayMs),
        ...[row.edgesMs, row.natsMs].map((value) => (row.edges === 0 ? '' : ms(value))),
        ms(row.databaseMs),
        `${Math.round(row.gatewayShare * 100)} %`,
        short(row.ordersPerSec),
        row.edges === 0 ? '' : `${row.edgesNeeded}`,
      ]),
    ),
  ].join('');
}

/** All tables as Markdown, in the order of the guide. */
export function scaleTables(): string {
  const parts = [
    ['Figures', figuresTable()],
    ['Cores and memory', costTable(WORK_COLUMNS)],
    ['Bytes and gas', costTable(STORED_COLUMNS)],
    ['Limits', limitsTable()],
    ['Edges', edgesTable()],
    ['Inventory', inventoryTable()],
  ] as const;
  return parts.map(([title, table]) => `### ${title}\n\n${table}`).join('\n');
}

/** The present text of the guide between the marks. Throws RangeError when a mark is missing. */
export function documentedTables(): string {
  const { text, from, to } = readGuide();
  return text.slice(from, to);
}

/** Writes the tables into the guide. */
export function writeTables(): void {
  const { text, from, to } = readGuide();
  writeFileSync(PATH, `${text.slice(0, from)}${scaleTables()}${text.slice(to)}`);
}

function readGuide(): { text: string; from: number; to: number } {
  const text = readFileSync(PATH, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new RangeError('docs/scale.md lacks the marks of its tables');
  return { text, from: begin + BEGIN.length, to: end };
}
