/** The read API over a database, with a settable clock and whatever else a gateway and a watcher would say. */
import { ROLE_FACTS } from '../../../cli/roles/registry.js';
import type Router from '@koa/router';
import { expect } from 'chai';
import type { Book } from '../../../core/book.js';
import { createBook } from '../../../core/book/create-book.js';
import { createMinOrderUnits } from '../../../core/min-order.js';
import type { Market } from '../../../core/types.js';
import { commitGeneration } from '../../../ledger/chain/ledger-log.js';
import type { Db, GenerationWrite } from '../../../ledger/types.js';
import { createApp } from '../../../server/app.js';
import { listen } from '../../../server/listen.js';
import type { ReadDeps } from '../../../server/read/deps.js';
import { readLimits } from '../../../server/rate-limit.js';
import { readRoutes } from '../../../server/read/endpoints.js';
import { createReadStore } from '../../../server/read/store.js';
import { OPERATOR } from '../generations.js';
import { conform } from './openapi.js';

export const DEPLOYMENT_BLOCK = 101;

export interface ReadServer {
  url: string;
  book: Book;
  /** The dependencies in use: tests may replace any of them. */
  deps: ReadDeps;
  /** GETs a JSON resource and holds the answer against the OpenAPI document. */
  get(path: string): Promise<{ status: number; body: unknown }>;
  commit(write: GenerationWrite): Promise<void>;
  close(): Promise<void>;
}

/** Serves a migrated database, and other routes beside. What is not given stands for a platform that has not scanned yet and whose feeds are fresh. */
export async function startReadServer(
  db: Db,
  markets: Market[],
  change: Partial<ReadDeps> = {},
  others: readonly Router[] = [],
): Promise<ReadServer> {
  const book = createBook(markets);
  const deps: ReadDeps = {
    version: '1.2.3',
    chainId: 8453,
    deploymentId: '0123456789abcdef',
    capitalFlowStartBlock: DEPLOYMENT_BLOCK,
    deployment: {
      contracts: { custodian: `0x${'c0'.repeat(20)}` },
      wrappedNative: `0x${'e0'.repeat(20)}`,
      publicRpcUrl: null,
      explorerUrl: null,
      orderSources: ['a', 'b'],
      isSandbox: false,
    },
    account: () => ({
      approval: 'none',
      actsFor: null,
      agents: [],
      scheduledCancelMs: null,
      scheduledCancelsToday: 0,
      openOrders: 0,
    }),
    markets: () => markets,
    delisted: () => new Set(),
    book: () => book,
    minOrderUnits: createMinOrderUnits({}),
    feed: () => ({ isLive: true, heardMs: -42 }),
    readiness: () => ({ ready: false, reason: 'missing_canonical_state' }),
    halt: () => null,
    findings: () => [],
    roles: ROLE_FACTS,
    ownLogs: () => new Set(),
    replicaLagMs: null,
    nowMs: () => 0,
    watcher: () => ({ targetBlock: null, head: null, nextBlock: DEPLOYMENT_BLOCK, lastScanMs: null }),
    inventoryRevision: () => 3,
    untilApplied: () => Promise.resolve(),
    store: createReadStore(db),
    settlePace: { intervalMs: 0, smallIntervalMs: 0, smallBps: 0 },
    checkpoints: { latest: () => null, proofsOf: async () => null },
    limits: readLimits(1_000_000),
    ...change,
  };
  const silent = (): void => undefined;
  const app = createApp({
    routers: [readRoutes(deps), ...others],
    unmatched: deps.limits.read,
    logger: { info: silent, error: silent },
  });
  const server = await listen(app, 0, '127.0.0.1');
  return {
    url: server.url,
    book,
    deps,
    async get(path) {
      const response = await fetch(`${server.url}${path}`);
      expect(response.headers.get('content-type'), path).to.match(/^application\/json/);
      const body: unknown = await response.json();
      conform('GET', path, response.status, body);
      return { status: response.status, body };
    },
    commit: (write) =>
      db.knex.transaction(async (tx) => void (await commitGeneration(tx, db, write, { operator: OPERATOR }))),
    close: () => server.close(),
  };
}
