/** The measured server, in a process of its own: `process.argv[2]` says which. It reports its CPU time and rows when asked. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Router from '@koa/router';
import Koa from 'koa';
import { settingsSchema } from '../../cli/config.js';
import { createMarket } from '../../core/market.js';
import { signatureBackend } from '../../core/wire/recover.js';
import { migrate, openDb } from '../../ledger/db/db.js';
import { commitGeneration } from '../../ledger/chain/ledger-log.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import type { Writer } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { fixedRoutes } from '../../server/fixed-routes.js';
import { answer } from '../../server/orders/answer.js';
import { createGateway } from '../../server/orders/engine.js';
import { createMarketDataView } from '../../server/market-data/view.js';
import { ordersRoutes } from '../../server/orders/endpoints.js';
import { createQueryBudget } from '../../server/orders/query-budget.js';
import { makers } from './requests.js';

const mode = process.argv[2] ?? 'durable';
const send = (message: object): void => void process.send?.(message);
const hash = (digit: string): `0x${string}` => `0x${digit.repeat(64)}`;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** A transaction that reads nothing and stores nothing. */
function emptyTransaction(): never {
  const answer = { last: null };
  const builder: unknown = new Proxy(() => undefined, {
    get: (_target, name) =>
      name === 'then' ? (resolve: (value: unknown) => void) => resolve(Object.assign([], answer)) : () => builder,
    apply: () => builder,
  });
  return builder as never;
}

async function startGateway() {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const db = await openDb(`sqlite:${join(folder, 'bench.sqlite')}`);
  await migrate(db);
  const token = (symbol: string, digit: string, decimals: number) => ({
    symbol,
    address: `0x${digit.repeat(40)}` as const,
    decimals,
  });
  const [base, quote] = [token('WETH', '1', 18), token('USDC', '2', 6)];
  const market = createMarket({ index: 0, base, quote, lotUnits: 10n ** 14n, tickLotUnits: 1n, maxTtlSec: 60 });
  const entries = makers.flatMap((maker) =>
    (['vault', maker] as const).map((account) => ({
      ref: `deposit:${maker}`,
      kind: 'deposit' as const,
      account,
      token: quote.address,
      amountUnits: account === 'vault' ? -(10n ** 18n) : 10n ** 18n,
    })),
  );
  const ledger = await acquireWriter(db, 'ledger');
  await ledger.tx((tx) =>
    commitGeneration(
      tx,
      db,
      {
        generation: 1,
        fromBlock: 1,
        toBlock: 1,
        blocks: [{ number: 1, hash: hash('a'), parentHash: hash('b'), timestampSec: 1 }],
        scannedMs: 0,
        observedHead: 1,
        observedHeadTimestampMs: 0,
        listed: [market],
        custody: [],
        posts: [],
        fills: [],
        entries,
        reservations: [],
        netCapital: [],
        snapshots: [],
        holdings: [],
        claims: [],
        halt: null,
      },
      { operator: hash('9').slice(0, 42) as `0x${string}` },
    ),
  );
  for (const maker of makers) await appendOperatorRow(db, { timeMs: 0, kind: 'approve', maker, note: '' });
  const writer = await acquireWriter(db, 'order');
  const unstored: Writer = { ...writer, tx: (write) => write(emptyTransaction()) };
  const config = {
    sources: ['a'] as const,
    signatureChainIds: null,
    failuresPerMinute: 120,
    pollMs: 60_000,
    referencePrices: {},
    minOrderUnits: () => 0n,
  };
  const gateway = await createGateway({
    db,
    writer: mode === 'unstored' ? unstored : writer,
    config,
    readiness: () => ({ ready: true, reason: null }),
    clock: Date.now,
    logger: silent,
  });
  const marketData = createMarketDataView({ db, generation: gateway.generation, clock: Date.now });
  const app = new Koa();
  const { QUERIES_PER_MINUTE } = settingsSchema.parse({});
  const queries = mode === 'budgeted' ? { queries: createQueryBudget(QUERIES_PER_MINUTE, Date.now) } : {};
  app.use(fixedRoutes([ordersRoutes({ gateway, db, config, clock: Date.now, marketData, ...queries })]));
  const rows = async (): Promise<number> =>
    ((await db.knex('order_log').count({ count: '*' }).first()) as { count: number }).count;
  return { handler: app.callback(), rows };
}

/** Reads a body as JSON and writes it back, without any framework. */
function rawEcho(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(JSON.parse(Buffer.concat(chunks).toString('utf8'))));
  });
}

/** The same with the gateway's own Koa, router and body parser. */
function koaEcho(): ReturnType<Koa['callback']> {
  const router = new Router();
  router.post('/exchange', (ctx) => answer(ctx, async (body) => JSON.stringify(body)));
  return new Koa().use(fixedRoutes([router])).callback();
}

const none = async (): Promise<number> => 0;
const { handler, rows } =
  mode === 'raw'
    ? { handler: rawEcho, rows: none }
    : mode === 'koa'
      ? { handler: koaEcho(), rows: none }
      : await startGateway();
const server = createServer((request, response) => void handler(request, response));
// Connections are idle while other cases are measured and must not be closed.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  send({ port: (server.address() as AddressInfo).port, backend: signatureBackend });
});
process.on('message', (question) => {
  void (async () => {
    // A garbage collection takes as long as many requests, so one message never asks for both the CPU time and the heap.
    const { user, system } = process.cpuUsage();
    if (question === 'cpu') return send({ cpuUs: user + system });
    (globalThis as { gc?: () => void }).gc?.();
    send({ rows: await rows(), heapBytes: process.memoryUsage().heapUsed });
  })();
});
process.on('disconnect', () => process.exit(0));
