/**
 * Requests per second of every endpoint of the read API and of queries of the exchange wire that read the ledger, with 1,000 makers, 10 markets and a
 * long history of fills, beside a bare Koa route that sends the same bytes, and beside themselves with a short history, in many short interleaved
 * rounds; medians of the ratios within a round. On SQLite with 1,000,000 fills at least, and on PostgreSQL with 5,000,000 when DATABASE_URL names a
 * server. Fails when a goal is missed and on any unexpected status. `--json` prints JSON; `--fills <number>` is for another history, a multiple of
 * 100 up to 40,000 and of that beyond it; `--database sqlite|pg` is one of them; `--only <name>,<name>` some cases. `--full <url> --few <url>` are databases
 * that `bench/read/child.ts load <url> <fills>` filled, and are kept.
 */
import { parseArgs } from 'node:util';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDb } from '../../ledger/db/db.js';
import { inRounds } from '../gateway/measure.js';
import { connectClient, type Client, type Request } from './client.js';
import { judge, type Judged, type Slice } from './judge.js';
import { FILLS_PER_HOUR, GENESIS_MS, makerOf, MAKERS, MARKETS, markets, SPARSE_BLOCK_SEC, takerOf } from './world.js';

type Database = 'sqlite' | 'pg';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    fills: { type: 'string' },
    database: { type: 'string' },
    only: { type: 'string' },
    full: { type: 'string' },
    few: { type: 'string' },
  },
});

const atLeast = (fills: number): number => Math.ceil(fills / FILLS_PER_HOUR) * FILLS_PER_HOUR;
const FILLS: Record<Database, number> = { sqlite: atLeast(1_000_000), pg: atLeast(5_000_000) };
const fillsOf = (database: Database): number => Number.parseInt(values.fills ?? '', 10) || FILLS[database];
/** The same with a short history of a day, to see what the long one costs; every page that is asked for is as long all the same. */
const FEW_FILLS = 10_000;
/** Many short rounds, so that the median leaves out those that other work of the machine disturbs. */
const ROUNDS = 41;
const SLICE_MS = 120;
const WARM_UP_MS = 1_000;
const BARE_GOAL = 0.6;
/** Goal: CPU time of an answer with the long history, divided by that with the short one. */
const HISTORY_COST = 1.3;

interface Case extends Request {
  name: string;
  /** Share of the bare route's rate that it must reach. */
  goal?: number;
  /** Body for the short history, if another one is needed there for an answer of the same length. */
  fewBody?: string;
}

const pair = markets[0]?.pair ?? '';
const maker = makerOf(MAKERS / 2);
const taker = takerOf(1);
const DAY_MS = 86_400_000;
/** The first day, of whose hours all have trades in either history. */
const DAY = `from=${GENESIS_MS}&to=${GENESIS_MS + DAY_MS - 1}`;
/** An hour in which the maker has parts of fills in either, long before the end of the long one. */
const HOUR = `interval=1h&from=${GENESIS_MS + 11 * 3_600_000}&to=${GENESIS_MS + 11 * 3_600_000}`;
/** The first thousand fills of each market, in either. */
const FIRST_FILLS = { startTime: GENESIS_MS, endTime: GENESIS_MS + 899_999 };
const FIRST_FILLS_SPARSE = { startTime: GENESIS_MS, endTime: GENESIS_MS + DAY_MS - 1 };

/** A query of the exchange wire. */
const info = (type: string, fields: object, { name = type, few = fields } = {}): Case => ({
  name,
  path: '/info',
  body: JSON.stringify({ type, ...fields }),
  fewBody: JSON.stringify({ type, ...few }),
});

const CASES: Case[] = [
  { name: 'pairs', path: '/v0/pairs', goal: BARE_GOAL },
  { name: 'book', path: `/v0/book/${pair}`, goal: BARE_GOAL },
  { name: 'fills', path: `/v0/fills?pair=${pair}` },
  { name: 'old page of fills', path: `/v0/fills?pair=${pair}&limit=100&before=400` },
  { name: 'fills of a maker', path: `/v0/fills?pair=${pair}&limit=5&maker=${maker}` },
  { name: 'fills of a taker', path: `/v0/fills?pair=${pair}&limit=5&taker=${taker}` },
  { name: 'maker fills', path: `/v0/makers/${maker}/fills?limit=5` },
  { name: 'taker swaps', path: `/v0/takers/${taker}/swaps?limit=5` },
  { name: 'candles', path: `/v0/candles/${pair}?interval=1h&${DAY}` },
  { name: 'performance', path: `/v0/makers/${maker}/performance?${HOUR}` },
  { name: 'taker summary', path: `/v0/takers/${taker}/summary?${DAY}` },
  { name: 'operator summary', path: `/v0/operator/summary?${DAY}` },
  { name: 'operator halts', path: '/v0/operator/halts' },
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
  info('userFillsByTime', { user: maker, ...FIRST_FILLS }, { few: { user: maker, ...FIRST_FILLS_SPARSE } }),
  info(
    'userFillsByTime',
    { user: maker, aggregateByTime: true, ...FIRST_FILLS },
    { name: 'aggregateByTime', few: { user: maker, aggregateByTime: true, ...FIRST_FILLS_SPARSE } },
  ),
  info('recentTrades', { coin: '@0' }),
  info('candleSnapshot', { req: { coin: '@0', interval: '1h', ...FIRST_FILLS_SPARSE } }),
  info('spotMetaAndAssetCtxs', {}),
  info('userFees', { user: maker }),
  info('historicalOrders', { user: maker }),
  info('spotClearinghouseState', { user: maker }),
  info('userNonFundingLedgerUpdates', { user: maker }),
];

const only = values.only?.split(',');
const chosenCases = CASES.filter(({ name }) => only?.includes(name) ?? true);

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
async function loaded(
  database: Database,
  fills: number,
  blockSec: string,
): Promise<{ url: string; drop(): Promise<void> }> {
  const made = database === 'sqlite' ? sqliteFile() : pgSchema(`bench_read_${process.pid}_${fills}`);
  const [code] = (await once(start('load', made.url, `${fills}`, blockSec), 'exit')) as [number];
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

async function measure(database: Database): Promise<Row[]> {
  const undo: (() => Promise<void>)[] = [];
  const serve = async (...args: string[]): Promise<Server> => {
    const server = await startServer(...args);
    undo.unshift(() => server.stop());
    return server;
  };
  const serveLoaded = async (fills: number, kept: string | undefined, blockSec = ''): Promise<Server> => {
    if (kept !== undefined) return serve('serve', kept);
    const { url, drop } = await loaded(database, fills, blockSec);
    undo.unshift(drop);
    return serve('serve', url);
  };
  try {
    const full = await serveLoaded(fillsOf(database), values.full);
    const few = await serveLoaded(FEW_FILLS, values.few, `${SPARSE_BLOCK_SEC}`);
    const bare = await serve('bare');
    const rows: Row[] = [];
    for (const [i, one] of chosenCases.entries()) {
      const posted = one.body !== undefined && {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: one.body },
      };
      const response = await fetch(`http://127.0.0.1:${full.port}${one.path}`, posted || {});
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
  { name, goal, fewBody, ...request }: Case,
  barePath: string,
  { bare, full, few }: { bare: Server; full: Server; few: Server },
): Promise<Omit<Row, 'database' | 'bytes'>> {
  const slices: Record<'bare' | 'full' | 'few', Slice[]> = { bare: [], full: [], few: [] };
  const fewRequest = fewBody === undefined ? request : { ...request, body: fewBody };
  const run = async (which: keyof typeof slices, forMs: number): Promise<Slice> => {
    const server = { bare, full, few }[which];
    const asked = { bare: { path: barePath }, full: request, few: fewRequest }[which];
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
  return { endpoint: name, goal: goal ?? null, ...judge(rounds, { bare: goal ?? null, historyCost: HISTORY_COST }) };
}

const databases: Database[] = /^postgres/.test(process.env.DATABASE_URL ?? '') ? ['sqlite', 'pg'] : ['sqlite'];
const chosen = databases.filter((one) => one === (values.database ?? one));
if (chosen.length === 0) throw new RangeError('no such database; pg needs DATABASE_URL');
const rows: Row[] = [];
for (const database of chosen) rows.push(...(await measure(database)));

if (values.json) {
  const fills = Object.fromEntries(chosen.map((one) => [one, fillsOf(one)]));
  const of = { makers: MAKERS, markets: MARKETS, fills, fewFills: FEW_FILLS, rounds: ROUNDS };
  process.stdout.write(`${JSON.stringify({ ...of, rows })}\n`);
} else {
  const told = chosen.map((one) => `${fillsOf(one)} fills on ${one}`).join(', ');
  process.stdout.write(
    `${MAKERS} makers, ${MARKETS} markets, ${told}; medians of ${ROUNDS} interleaved rounds\n` +
      `database endpoint                       bytes  requests/s  bare Koa  ratio  of CPU  goal    of ${FEW_FILLS} fills: time, CPU (<= ${HISTORY_COST})\n`,
  );
  for (const row of rows) {
    const columns = [
      row.database.padEnd(8),
      row.endpoint.padEnd(28),
      `${row.bytes}`.padStart(8),
      row.requestsPerSec.toFixed(0).padStart(11),
      row.bareRequestsPerSec.toFixed(0).padStart(9),
      row.ratio.toFixed(2).padStart(6),
      row.cpuRatio.toFixed(2).padStart(7),
      (row.goal === null ? '' : `>= ${row.goal}`).padEnd(7),
      `x ${row.historyTime.toFixed(2)}, x ${row.historyCpu.toFixed(2)}`,
      row.holds ? 'holds' : 'MISSED',
    ];
    process.stdout.write(`${columns.join(' ')}\n`);
  }
}
process.exitCode = rows.every((row) => row.holds) ? 0 : 1;
