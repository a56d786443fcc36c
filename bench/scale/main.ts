/**
 * `npm run bench:scale`: what orders, limits and fills cost on PostgreSQL, in CPU time of our process and, beside it, of the database, in
 * medians of interleaved rounds; the same in multiples of bare work of the same run; and bytes. Needs `DATABASE_URL`, of a server on this
 * machine for the database's times. `--json` prints JSON, `--only orders`, `--only fills` or `--only keepers` is a part, `--load` runs ten times today's load
 * of the model (docs/scale.md), `--tables` prints the tables of that guide, and `--write` renews its figures and tables. `--all` measures what has
 * a benchmark of its own, too, one after the other: edges, takeovers with a million order rows, and the way from a block to a frame. Fails when a
 * bar is missed.
 */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { holds } from '../gateway/measure.js';
import { createBare } from './bare.js';
import { scaleTables, writeTables } from './doc.js';
import { writeFigures } from './figures.js';
import { measureFills } from './fills.js';
import { measureKeepers } from './keepers.js';
import { runLoad } from './load.js';
import { measureOrders } from './orders.js';
import { printed, type ScaleRow } from './rows.js';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
    load: { type: 'boolean', default: false },
    tables: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '20' },
  },
});
const PARTS = ['orders', 'fills', 'keepers'] as const;
/** Benchmarks of the other bars of docs/scale.md. */
const OTHERS = ['edges', 'failover', 'latency'] as const;
const unknown = values.only?.find((part) => !(PARTS as readonly string[]).includes(part));
if (unknown !== undefined) throw new RangeError(`--only takes ${PARTS.join(', ')}; not ${unknown}`);

if (values.tables) {
  process.stdout.write(scaleTables());
} else {
  const url = process.env.DATABASE_URL ?? '';
  if (!/^postgres/.test(url)) throw new RangeError('bench:scale needs DATABASE_URL, of a PostgreSQL server');
  if (values.load) process.exitCode = (await load(url)) ? 0 : 1;
  else {
    const hold = [await figures(url), ...(values.all ? OTHERS.map(runOther) : [])];
    process.exitCode = hold.every(Boolean) ? 0 : 1;
  }
}

/** Whether its bars hold. */
function runOther(name: (typeof OTHERS)[number]): boolean {
  const more = values.json ? ['--', '--json'] : [];
  const { status } = spawnSync('npm', ['run', '--silent', `bench:${name}`, ...more], { stdio: 'inherit' });
  return status === 0;
}

async function figures(url: string): Promise<boolean> {
  const bare = await createBare(url);
  const rows: ScaleRow[] = [];
  const isChosen = (part: (typeof PARTS)[number]): boolean => values.only?.includes(part) ?? true;
  try {
    if (isChosen('orders')) rows.push(...(await measureOrders(url, bare)));
    if (isChosen('fills')) rows.push(...(await measureFills(bare)));
    if (isChosen('keepers')) rows.push(...(await measureKeepers(url)));
  } finally {
    await bare.close();
  }
  if (values.write) {
    writeFigures(rows);
    writeTables();
  }
  const [load1 = 0] = loadavg();
  if (values.json)
    process.stdout.write(`${JSON.stringify({ load1, rows: rows.map((row) => ({ ...row, holds: holds(row) })) })}\n`);
  else process.stdout.write(`CPU time on PostgreSQL; load of the machine ${load1.toFixed(1)}\n${printed(rows, holds)}`);
  return rows.every(holds);
}

async function load(url: string): Promise<boolean> {
  const report = await runLoad(url, Number.parseInt(values.seconds, 10));
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : report.text);
  return report.holds;
}
