/** The whole public interface over a database, as benchmarks serve it, and the CPU time of the database's processes. */
import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { ROLE_FACTS } from '../../cli/roles/registry.js';
import type Koa from 'koa';
import { acquireWriter } from '../../ledger/db/writers.js';
import { createApp } from '../../server/app.js';
import { ENDPOINTS } from '../../server/endpoints.js';
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
import { SILENT_METRICS } from '../../test/support/api/silent-metrics.js';

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Everything that a process with the gateway's role serves, over a database whose tables are made: metrics, limits and all else in front. */
export async function publicApp(db: Db): Promise<Koa> {
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
    untilApplied: gateway.untilApplied,
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
export function backendsCpuUs(db: Db): () => number {
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
