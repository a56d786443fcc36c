/**
 * Requests per second of every endpoint of the read API, with 1,000 makers, 10 markets and 100,000 fills loaded, beside a bare Koa route
 * that sends the same bytes, in interleaved rounds; medians. On SQLite, and on PostgreSQL when DATABASE_URL names a server. Fails when a
 * goal is missed and on any unexpected status. `--json` prints JSON; `--fills <multiple of 100>` is for a quick look.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDb } from '../../ledger/db.js';
import { median } from '../gateway/measure.js';
import { connectClient, type Client } from './client.js';
import { makerOf, MAKERS, MARKETS, markets } from './world.js';

const FILLS = Number.parseInt(process.argv[process.argv.indexOf('--fills') + 1] ?? '', 10) || 100_000;
/** The same with a short history, to see what the long one costs; it fills the list of each market all the same. */
const FEW_FILLS = 5_000;
const ROUNDS = 7;
const ROUND_MS = 250;
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

interface Row {
  database: string;
  endpoint: string;
  bytes: number;
  requestsPerSec: number;
  bareRequestsPerSec: number;
  /** Of the bare route, in the same rounds. */
  ratio: number;
  goal: number | null;
  /** Of the same endpoint with 5,000 fills. */
  historyRatio: number;
  holds: boolean;
}

interface Server {
  client: Client;
  port: number;
  /** Sends a message and waits for the answer. */
  call(message: string): Promise<void>;
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
      await Promise.race([answered, ended]);
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
      await bare.call(body);
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

type Measured = Omit<Row, 'database' | 'bytes'>;

async function measureCase(
  { name, goal, ...request }: Case,
  barePath: string,
  { bare, full, few }: { bare: Server; full: Server; few: Server },
): Promise<Measured> {
  const run = async () => ({
    bare: await bare.client.rate({ path: barePath }, ROUND_MS),
    full: await full.client.rate(request, ROUND_MS),
    few: await few.client.rate(request, ROUND_MS),
  });
  await run();
  const rounds: Awaited<ReturnType<typeof run>>[] = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await run());
  const of = (value: (round: (typeof rounds)[number]) => number): number => median(rounds.map(value));
  const ratio = of((round) => round.full / round.bare);
  const historyRatio = of((round) => round.full / round.few);
  return {
    endpoint: name,
    requestsPerSec: of((round) => round.full),
    bareRequestsPerSec: of((round) => round.bare),
    ratio,
    goal: goal ?? null,
    historyRatio,
    holds: (goal === undefined || ratio >= goal) && historyRatio >= HISTORY_GOAL,
  };
}

const rows = await measure('sqlite');
if (/^postgres/.test(process.env.DATABASE_URL ?? '')) rows.push(...(await measure('pg')));

if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify({ makers: MAKERS, markets: MARKETS, fills: FILLS, rounds: ROUNDS, rows })}\n`);
} else {
  process.stdout.write(
    `${MAKERS} makers, ${MARKETS} markets, ${FILLS} fills; medians of ${ROUNDS} interleaved rounds\n`,
  );
  process.stdout.write('database endpoint         bytes  requests/s  bare Koa  ratio  goal     with few fills\n');
  for (const row of rows) {
    const columns = [
      row.database.padEnd(8),
      row.endpoint.padEnd(14),
      `${row.bytes}`.padStart(8),
      row.requestsPerSec.toFixed(0).padStart(11),
      row.bareRequestsPerSec.toFixed(0).padStart(9),
      row.ratio.toFixed(2).padStart(6),
      (row.goal === null ? '' : `>= ${row.goal}`).padEnd(7),
      `x ${row.historyRatio.toFixed(2)} (>= ${HISTORY_GOAL})`,
      row.holds ? 'holds' : 'MISSED',
    ];
    process.stdout.write(`${columns.join(' ')}\n`);
  }
}
process.exitCode = rows.every((row) => row.holds) ? 0 : 1;
