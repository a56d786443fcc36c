/**
 * `npm run bench:edges [-- --json --orders 400 --rounds 5 --write]`: what a single order costs each process, directly at the gateway and over 1, 2 and 4 edges, as CPU time.
 * Real processes on PostgreSQL, with a NATS server; needs DATABASE_URL and nats-server. Each server's own work while nothing is sent is taken off.
 * `--write` keeps the figures, of which `npm run bench:scale -- --write` then makes a table of docs/scale.md.
 * Fails when a goal is missed, an order is refused, or an acknowledged one has no row.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openDb } from '../../ledger/db/db.js';
import { GATEWAY, signBody, startEdges, type Edges } from '../../test/support/nodes/edges.js';
import { natsProgram } from '../../test/support/nodes/nats.js';
import { accountOf } from '../../test/support/stack.js';
import { FIRST_ASSET } from '../../test/support/trading.js';
import { writeEdgeCosts } from '../scale/edges.js';
import { openConnection } from '../gateway/client.js';
import { holds, median, type Row } from '../gateway/measure.js';

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const ORDERS = Number.parseInt(values.orders, 10);
const ROUNDS = Number.parseInt(values.rounds, 10);
const EDGES = [1, 2, 4];
const CONNECTIONS = 64;
const IDLE_MS = 3_000;
/** Of the gateway, for an order over edges. */
const GOAL_MS = 0.35;
const TICK_MS = 1_000 / Number.parseInt(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }), 10);

const server = process.env.DATABASE_URL ?? '';
if (!/^postgres(ql)?:/.test(server)) throw new Error('DATABASE_URL must name a PostgreSQL server');
const program = natsProgram();
if (program === null) throw new Error('nats-server must be installed');

/** CPU time that a process has used, user and system. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number.parseInt(fields[11]!, 10) + Number.parseInt(fields[12]!, 10)) * TICK_MS;
}

type Costs = Record<'gateway' | 'edges' | 'nats' | 'database', number>;

/** The sessions of all our processes; one that ends takes its share with it, which is small. */
async function read(edges: Edges): Promise<Costs> {
  const sessions = await edges.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
  );
  const sum = (pids: readonly number[]): number =>
    pids.reduce((all, pid) => {
      try {
        return all + cpuMs(pid);
      } catch {
        return all;
      }
    }, 0);
  return {
    gateway: cpuMs(edges.stack.pid(GATEWAY)),
    edges: sum(edges.urls.map((_, index) => edges.pid(index))),
    nats: cpuMs(edges.nats.pid()),
    database: sum(sessions.map(({ pid }) => pid)),
  };
}

const KEYS = ['gateway', 'edges', 'nats', 'database'] as const;
const combine = (a: Costs, b: Costs, by: (x: number, y: number) => number): Costs =>
  Object.fromEntries(KEYS.map((key) => [key, by(a[key], b[key])])) as Costs;

/** Places one order per body over 64 connections to these servers, and cancels them all; the costs of placing, per order and in ms. */
async function round(edges: Edges, urls: readonly string[], idlePerMs: Costs): Promise<Costs> {
  const { privateKey } = accountOf(edges.stack, 'maker1');
  const order = { a: FIRST_ASSET, b: true, p: '1000', s: '0.01', r: false, t: { limit: { tif: 'Gtc' } } };
  const signed = (): string => JSON.stringify(signBody({ type: 'order', orders: [order], grouping: 'na' }, privateKey));
  const bodies = Array.from({ length: ORDERS }, signed);
  // The lowest nonce goes first: only the highest ones that were used are remembered.
  bodies.reverse();
  const ports = urls.map((url) => Number.parseInt(new URL(url).port, 10));
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, index) => openConnection(ports[index % ports.length]!)),
  );
  const oids: number[] = [];
  const before = await read(edges);
  const startedMs = performance.now();
  await Promise.all(
    connections.map(async (connection) => {
      for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
        const answer = await connection.post(body);
        // One that a hundred others overtook on a busy machine is signed again.
        if (answer.includes('nonce_too_low')) {
          bodies.push(signed());
          continue;
        }
        const oid = /"resting":\{"oid":(\d+)/.exec(answer)?.[1];
        if (oid === undefined) throw new Error(`an order was refused: ${answer}`);
        oids.push(Number.parseInt(oid, 10));
      }
    }),
  );
  const tookMs = performance.now() - startedMs;
  const spent = combine(await read(edges), before, (after, first) => after - first);
  const cancel = { type: 'cancel', cancels: oids.map((o) => ({ a: FIRST_ASSET, o })) };
  await connections[0]!.post(JSON.stringify(signBody(cancel, privateKey)));
  for (const connection of connections) connection.close();
  if (new Set(oids).size !== ORDERS) throw new Error('an order was carried out twice, or not at all');
  const rows = await edges.query<{ count: number }>(
    'select count(*)::int as count from order_log where effects like any ($1)',
    [oids.slice(0, 50).map((oid) => `%"oid":${oid},%`)],
  );
  if (rows[0]!.count < Math.min(50, ORDERS)) throw new Error('an acknowledged order has no row');
  return combine(spent, idlePerMs, (all, idle) => Math.max(all - idle * tookMs, 0) / ORDERS);
}

async function measure(edges: Edges): Promise<Row[]> {
  await delay(IDLE_MS);
  const first = await read(edges);
  await delay(IDLE_MS);
  const idle = combine(await read(edges), first, (after, before) => (after - before) / IDLE_MS);
  const ways = [
    { name: 'directly', urls: [edges.stack.manifest.serverUrl] },
    ...EDGES.map((count) => ({ name: `${count} edge${count === 1 ? '' : 's'}`, urls: edges.urls.slice(0, count) })),
  ];
  const costs = new Map<string, Costs[]>(ways.map(({ name }) => [name, []]));
  // The first rounds compile; each further one has all ways, one after the other.
  for (let number = -2; number < ROUNDS; number += 1) {
    for (const way of ways) {
      const cost = await round(edges, way.urls, idle);
      if (number >= 0) costs.get(way.name)!.push(cost);
    }
    process.stderr.write(`round ${number + 1} of ${ROUNDS}\n`);
  }
  const of = (name: string, key: keyof Costs): number => median(costs.get(name)!.map((one) => one[key]));
  const direct = of('directly', 'gateway');
  if (values.write)
    writeEdgeCosts(
      ways.map(({ name, urls }) => ({
        edges: name === 'directly' ? 0 : urls.length,
        gatewayMs: of(name, 'gateway'),
        edgesMs: name === 'directly' ? 0 : of(name, 'edges'),
        natsMs: name === 'directly' ? 0 : of(name, 'nats'),
        databaseMs: of(name, 'database'),
      })),
    );
  return ways.flatMap(({ name }): Row[] => {
    const row = (what: string, value: number, unit: string, bound: Row['bound'] = null): Row => ({
      ...{ goal: '', what: `${name}: ${what}`, value, unit, bound },
    });
    const gateway = of(name, 'gateway');
    const own = [
      row('gateway, CPU per single order', gateway, 'ms', name === 'directly' ? null : { atMost: GOAL_MS }),
      row('database, CPU per order', of(name, 'database'), 'ms'),
    ];
    if (name === 'directly') return own;
    const share = gateway / (gateway + of(name, 'edges') + of(name, 'nats'));
    return [
      ...own,
      row('gateway / the same directly', gateway / direct, 'x', { atMost: 0.6 }),
      row('edges, CPU per order', of(name, 'edges'), 'ms'),
      row('NATS, CPU per order', of(name, 'nats'), 'ms'),
      row("gateway's share of all but the database", share * 100, '%'),
      row('orders per second that a core of the gateway takes', 1_000 / gateway, '/s'),
    ];
  });
}

function print(rows: readonly Row[]): void {
  process.exitCode = rows.every(holds) ? 0 : 1;
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ rows: rows.map((row) => ({ ...row, holds: holds(row) })) })}\n`);
    return;
  }
  for (const row of rows) {
    const bound =
      row.bound === null ? '' : 'atLeast' in row.bound ? `>= ${row.bound.atLeast}` : `<= ${row.bound.atMost}`;
    const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
    process.stdout.write(
      `${row.what.padEnd(64)} ${`${row.value.toPrecision(3)} ${row.unit}`.padStart(12)}  ${bound.padEnd(8)} ${verdict}\n`,
    );
  }
}

const schema = `bench_${randomUUID().replaceAll('-', '')}`;
const url = new URL(server);
url.searchParams.set('schema', schema);
const edges = await startEdges(
  program,
  {
    url: url.toString(),
    async drop() {
      const db = await openDb(server);
      await db.knex.raw('drop schema if exists ?? cascade', [schema]);
      await db.close();
    },
  },
  { count: Math.max(...EDGES), blockTimeMs: 2_000 },
);
try {
  print(await measure(edges));
} finally {
  await edges.close();
}
