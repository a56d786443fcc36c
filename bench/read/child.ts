/**
 * The measured server, in a process of its own. `bare` serves bodies that it is sent over one Koa route; `load <url> <fills> [seconds between blocks]`
 * fills a database and ends; `serve <url>` serves the whole public interface over it, with metrics, limits and everything else in front. Asked for
 * its CPU time, it answers with microseconds, those of its PostgreSQL processes included when they run on this machine.
 */
import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { ROLE_FACTS } from '../../cli/roles/registry.js';
import Router from '@koa/router';
import Koa from 'koa';
import { migrate, openDb } from '../../ledger/db/db.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { createApp } from '../../server/app.js';
import { ENDPOINTS } from '../../server/endpoints.js';
import { listen } from '../../server/listen.js';
import { openApiRoutes } from '../../server/openapi/routes.js';
import { createMetrics } from '../../server/ops/metrics.js';
import { createGateway } from '../../server/orders/engine.js';
import { createMarketDataView } from '../../server/market-data/view.js';
import { ordersRoutes } from '../../server/orders/endpoints.js';
import { createCheckpointView } from '../../server/read/checkpoint-view.js';
import { createFeed } from '../../server/read/feed.js';
import { readLimits } from '../../server/rate-limit.js';
import { accountFacts } from '../../server/orders/account-facts.js';
import { readRoutes } from '../../server/read/endpoints.js';
import { createReadStore } from '../../server/read/store.js';
import { createSessions } from '../../server/stream/sessions.js';
import type { Db } from '../../ledger/types.js';
import { loadWorld } from './world.js';
import { SILENT_METRICS } from '../../test/support/api/silent-metrics.js';

const [mode = 'bare', url = '', fills = '0', blockSec = ''] = process.argv.slice(2);
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
const bodies: string[] = [];
const cleanUp: (() => Promise<void>)[] = [];
/** CPU time of the database's processes, microseconds. */
let databaseCpuUs = (): number => 0;

/** One route, which does nothing but send the bytes. */
function bareApp(): Koa {
  const router = new Router();
  router.get('/:body', (ctx) => {
    ctx.type = 'application/json';
    ctx.body = bodies[Number.parseInt(ctx.params.body ?? '', 10)];
  });
  const app = new Koa();
  app.use(router.routes());
  return app;
}

async function curvebookApp(): Promise<Koa> {
  const db = await openDb(url);
  cleanUp.push(() => db.close());
  if (db.kind === 'pg') databaseCpuUs = backendsCpuUs(db);
  const clock = Date.now;
  const config = {
    sources: ['a'] as const,
    signatureChainIds: null,
    failuresPerMinute: 1,
    pollMs: 60_000,
    referencePrices: {},
    minOrderUnits: () => 0n,
  };
  const readiness = () => ({ ready: true, reason: null });
  const writer = await acquireWriter(db, 'order');
  const gateway = await createGateway({ db, writer, config, readiness, clock, logger: silent });
  const checkpoints = createCheckpointView({ db, deploymentId: 'bench', pollIntervalMs: 60_000, logger: silent });
  await checkpoints.refresh();
  const metrics = createMetrics({ ...SILENT_METRICS, nowMs: clock });
  const limits = readLimits(1_000_000_000);
  const sessions = createSessions();
  const read = readRoutes({
    version: '0',
    chainId: 8453,
    deploymentId: 'bench',
    capitalFlowStartBlock: 1,
    deployment: {
      contracts: {},
      wrappedNative: `0x${'0'.repeat(40)}`,
      publicRpcUrl: null,
      explorerUrl: null,
      orderSources: [],
      isSandbox: false,
    },
    account: accountFacts(gateway, clock),
    markets: gateway.markets,
    delisted: () => new Set(),
    book: gateway.book,
    minOrderUnits: () => 0n,
    feed: createFeed({ book: gateway.book, lastActionMs: gateway.lastActionMs, sessions, startedMs: clock() }),
    readiness,
    halt: () => null,
    findings: () => [],
    roles: ROLE_FACTS,
    ownLogs: () => new Set(['order']),
    replicaLagMs: null,
    nowMs: clock,
    watcher: () => ({ targetBlock: 1, head: 1, nextBlock: 2, lastScanMs: 1 }),
    inventoryRevision: gateway.generation,
    settlePace: { intervalMs: 0, smallIntervalMs: 0, smallBps: 0 },
    store: createReadStore(db),
    checkpoints,
    limits,
  });
  return createApp({
    routers: [
      read,
      ordersRoutes({
        gateway,
        db,
        config,
        clock,
        marketData: createMarketDataView({ db, generation: gateway.generation, clock }),
      }),
      openApiRoutes(ENDPOINTS, { title: 'Curvebook', version: '0', description: '', url: null }, limits.read),
    ],
    unmatched: limits.read,
    logger: silent,
    observe: metrics.observe,
  });
}

/** What PostgreSQL's processes behind the connections of this process have run, as Linux counts it; zero for those of another machine. */
function backendsCpuUs(db: Db): () => number {
  const ranUs = new Map<number, number>();
  const { pool } = db.knex.client as { pool: EventEmitter };
  pool.on('acquireSuccess', (_event: number, { processID: pid }: { processID: number }) => {
    if (!ranUs.has(pid)) ranUs.set(pid, 0);
  });
  return () => {
    for (const pid of ranUs.keys()) {
      try {
        ranUs.set(pid, Number.parseInt(readFileSync(`/proc/${pid}/schedstat`, 'utf8'), 10) / 1_000);
      } catch {
        // The process has ended, or runs on another machine: its last known time stays.
      }
    }
    return [...ranUs.values()].reduce((sum, us) => sum + us, 0);
  };
}

/** Fills the database and ends, so that the server that is measured starts on a filled database. */
async function load(): Promise<never> {
  const db = await openDb(url);
  await migrate(db);
  await loadWorld(db, Number.parseInt(fills, 10), blockSec === '' ? {} : { blockSec: Number.parseInt(blockSec, 10) });
  if (db.kind === 'pg') await db.knex.raw('vacuum (analyze)');
  await db.close();
  process.exit(0);
}

if (mode === 'load') await load();
const app = mode === 'bare' ? bareApp() : await curvebookApp();
const { port, close, server } = await listen(app, 0, '127.0.0.1');
// Connections are idle while databases are loaded and other cases are measured, and must not be closed.
server.keepAliveTimeout = 600_000;
server.headersTimeout = 0;
server.requestTimeout = 0;
process.on('message', (message: { body: string } | { cpu: true }) => {
  if ('body' in message) return process.send?.(bodies.push(message.body));
  const { user, system } = process.cpuUsage();
  return process.send?.(user + system + databaseCpuUs());
});
process.send?.({ port });
process.on('disconnect', () => {
  void (async () => {
    await close();
    for (const work of cleanUp) await work();
    process.exit(0);
  })();
});
