/**
 * Requests per second of every endpoint of the read API, with 1,000 makers, 10 markets and 100,000 fills loaded, beside a bare Koa route
 * that sends the same bytes, in many short interleaved rounds; medians of the ratios within a round. On SQLite, and on PostgreSQL when
 * DATABASE_URL names a server. Fails when a goal is missed and on any unexpected status. `--json` prints JSON; `--fills <multiple of 100>`
 * is for a quick look.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDb } from '../../ledger/db/db.js';
import { inRounds } from '../gateway/measure.js';
import { connectClient, type Client } from './client.js';
import { judge, type Judged, type Slice } from './judge.js';
import { makerOf, MAKERS, MARKETS, markets } from './world.js';

const FILLS = Number.parseInt(process.argv[process.argv.indexOf('--fills') + 1] ?? '', 10) || 100_000;
/** The same with a short history, to see what the long one costs; it fills the list of each market all the same. */
const FEW_FILLS = 5_000;
/** Many short ones, so that the median leaves out what a neighbour on the machine disturbs. */
const ROUNDS = 41;
const SLICE_MS = 120;
const WARM_UP_MS = 1_000;
const BARE_GOAL = 0.6;
/** What an endpoint may lose with twenty times as many fills. */
const HISTORY_GOAL = 0.6;

interface Case {
  name: string;
  path: string;
  status?: number;
  headers?: string;
  /** Share of the bare route's rate that it must reach. */
  goal?: number;
}

const pair = markets[0]?.pair ?? '';
const maker = makerOf(MAKERS / 2);

const CASES: Case[] = [
  { name: 'pairs', path: '/v0/pairs', goal: BARE_GOAL },
  { name: 'book', path: `/v0/book/${pair}`, goal: BARE_GOAL },
  { name: 'fills', path: `/v0/fills?pair=${pair}` },
  { name: 'decomposition', path: `/v0/fills/90/decomposition?pair=${pair}` },
  { name: 'limits', path: `/v0/makers/${maker}/limits` },
  { name: 'withdrawals', path: `/v0/makers/${maker}/withdrawals` },
  { name: 'checkpoint', path: '/v0/checkpoints/latest' },
  { name: 'proof', path: `/v0/checkpoints/latest/proof?maker=${maker}` },
  { name: 'fees', path: '/v0/fees' },
  { name: 'curve', path: `/v0/curves/${pair}/1` },
  { name: 'status', path: '/v0/status' },
  { name: 'health', path: '/health' },
  { name: 'openapi', path: '/openapi.json' },
];

interface Row extends Judged {
  database: string;
  endpoint: string;
  bytes: number;
  /** Share of the bare route that it must reach. */
  goal: number | null;
}

interface Server {
  client: Client;
  port: number;
  /** Sends a message and waits for the answer. */
  call(message: { body: string } | { cpu: true }): Promise<number>;
  stop(): Promise<void>;
}

const start = (...args: string[]): ChildProcess =>
  fork(new URL('child.ts', import.meta.url), args, { execArgv: ['--import', 'tsx'] });

async function startServer(...args: string[]): Promise<Server> {
  const child = start(...args);
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the server ended: ${args.join(' ')}`);
  });
  ended.catch(() => undefined);
  const [{ port }] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }];
  const client = await connectClient(port);
  return {
    client,
    port,
    async call(message) {
      const answered = once(child, 'message');
      child.send(message);
      const [answer] = (await Promise.race([answered, ended])) as [number];
      return answer;
    },
    async stop() {
      client.close();
      const exit = once(child, 'exit');
      child.disconnect();
      await exit;
    },
  };
}

/** A database with so many fills, and how to be rid of it. */
async function loaded(database: 'sqlite' | 'pg', fills: number): Promise<{ url: string; drop(): Promise<void> }> {
  const made = database === 'sqlite' ? sqliteFile() : pgSchema(`bench_read_${process.pid}_${fills}`);
  const [code] = (await once(start('load', made.url, `${fills}`), 'exit')) as [number];
  if (code === 0) return made;
  await made.drop();
  throw new Error(`the ${database} database could not be loaded`);
}

function sqliteFile() {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-bench-'));
  const drop = async (): Promise<void> => rmSync(folder, { recursive: true });
  return { url: `sqlite:${join(folder, 'bench.sqlite')}`, drop };
}

function pgSchema(schema: string) {
  const url = new URL(process.env.DATABASE_URL ?? '');
  url.searchParams.set('schema', schema);
  const drop = async (): Promise<void> => {
    const db = await openDb(url.toString());
    await db.knex.raw('drop schema if exists ?? cascade', [schema]);
    await db.close();
  };
  return { url: url.toString(), drop };
}

async function measure(database: 'sqlite' | 'pg'): Promise<Row[]> {
  const undo: (() => Promise<void>)[] = [];
  const serve = async (...args: string[]): Promise<Server> => {
    const server = await startServer(...args);
    undo.unshift(() => server.stop());
    return server;
  };
  const serveLoaded = async (fills: number): Promise<Server> => {
    const { url, drop } = await loaded(database, fills);
    undo.unshift(drop);
    return serve('serve', url);
  };
  try {
    const full = await serveLoaded(FILLS);
    const few = await serveLoaded(FEW_FILLS);
    const bare = await serve('bare');
    const rows: Row[] = [];
    for (const [i, one] of CASES.entries()) {
      const response = await fetch(`http://127.0.0.1:${full.port}${one.path}`);
      const body = await response.text();
      if (response.status !== 200) throw new Error(`${one.path}: ${response.status} ${body.slice(0, 200)}`);
      await bare.call({ body });
      rows.push({
        database,
        ...(await measureCase(one, `/${i}`, { bare, full, few })),
        bytes: Buffer.byteLength(body),
      });
    }
    return rows;
  } finally {
    for (const one of undo) await one();
  }
}

async function measureCase(
  { name, goal, ...request }: Case,
  barePath: string,
  { bare, full, few }: { bare: Server; full: Server; few: Server },
): Promise<Omit<Row, 'database' | 'bytes'>> {
  const slices: Record<'bare' | 'full' | 'few', Slice[]> = { bare: [], full: [], few: [] };
  const run = async (which: keyof typeof slices, forMs: number): Promise<Slice> => {
    const server = { bare, full, few }[which];
    const asked = which === 'bare' ? { path: barePath } : request;
    const cpuUs = await server.call({ cpu: true });
    const startedMs = performance.now();
    const requestsPerSec = await server.client.rate(asked, forMs);
    const requests = (requestsPerSec * (performance.now() - startedMs)) / 1_000;
    return { requestsPerSec, cpuUsPerRequest: ((await server.call({ cpu: true })) - cpuUs) / requests };
  };
  const slice = (which: keyof typeof slices) => async (): Promise<number> =>
    slices[which].push(await run(which, SLICE_MS));
  for (const which of ['bare', 'full', 'few'] as const) await run(which, WARM_UP_MS);
  await inRounds({ bare: slice('bare'), full: slice('full'), few: slice('few') }, ROUNDS);
  const rounds = slices.bare.map((one, i) => ({ bare: one, full: slices.full[i]!, few: slices.few[i]! }));
  return { endpoint: name, goal: goal ?? null, ...judge(rounds, { bare: goal ?? null, history: HISTORY_GOAL }) };
}

const rows = await measure('sqlite');
if (/^postgres/.test(process.env.DATABASE_URL ?? '')) rows.push(...(await measure('pg')));

if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify({ makers: MAKERS, markets: MARKETS, fills: FILLS, rounds: ROUNDS, rows })}\n`);
} else {
  process.stdout.write(
    `${MAKERS} makers, ${MARKETS} markets, ${FILLS} fills; medians of ${ROUNDS} interleaved rounds\n`,
  );
  process.stdout.write(
    'database endpoint         bytes  requests/s  bare Koa  ratio  of CPU  goal     with few fills\n',
  );
  for (const row of rows) {
    const columns = [
      row.database.padEnd(8),
      row.endpoint.padEnd(14),
      `${row.bytes}`.padStart(8),
      row.requestsPerSec.toFixed(0).padStart(11),
      row.bareRequestsPerSec.toFixed(0).padStart(9),
      row.ratio.toFixed(2).padStart(6),
      row.cpuRatio.toFixed(2).padStart(7),
      (row.goal === null ? '' : `>= ${row.goal}`).padEnd(7),
      `x ${row.historyRatio.toFixed(2)} (>= ${HISTORY_GOAL})`,
      row.holds ? 'holds' : 'MISSED',
    ];
    process.stdout.write(`${columns.join(' ')}\n`);
  }
}
process.exitCode = rows.every((row) => row.holds) ? 0 : 1;
