import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import { expect } from 'chai';
import type { Config } from '../../cli/config.js';
import type { Shared } from '../../cli/shared.js';
import { serveStandby } from '../../cli/standby.js';
import { createApp } from '../../server/app.js';
import { createDoor, type Door } from '../../server/door.js';
import { createMetrics } from '../../server/ops/metrics.js';
import { migrate, openDb } from '../../ledger/db/db.js';
import { compactStep } from '../../ledger/orders/compaction.js';
import { appendOrderRows } from '../../ledger/orders/order-log.js';
import type { Db } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import type { OrderLogRow } from '../../core/types.js';
import { orderAction, limit, until } from '../support/gateway-suite.js';
import { addressOf, post, seed, signRequest } from '../support/gateway.js';

const silent = { info: () => undefined, error: () => undefined };
const contract = `0x${'1'.repeat(40)}`;

/** What serving reads asks of a process; its roles are not started here. */
function processOf(db: Db, door: Door, seen: { url: string | null }): Shared {
  const manifest = {
    chainId: 8453,
    deploymentId: '00aa',
    deploymentBlock: 1,
    accounts: [],
    contracts: { custodian: contract, curveBook: contract, entrypoint: contract, orderSettler: null },
  };
  const config = {
    ORDER_SOURCES: ['a', 'b'],
    ORDER_FAILURES_PER_MINUTE: 50,
    READ_REQUESTS_PER_MINUTE: 1_000,
    POLL_INTERVAL_MS: 50,
    REFERENCE_PRICES: {},
    swap: null,
    TRUST_PROXY: false,
    signatureChainIds: null,
    rpcUrls: ['http://127.0.0.1:9'],
    manifest,
  } as unknown as Config;
  const logger = {
    info: (fields: { url?: string }) => (seen.url = fields.url ?? seen.url),
    warn: () => undefined,
    error: () => undefined,
  } as unknown as Shared['logger'];
  const shared = {
    config,
    doors: { http: door, ops: door },
    db,
    logger,
    markets: [],
    writers: new Map(),
    nowMs: () => Date.now(),
  };
  return { ...shared, keepers: { signers: [], poster: null } } as unknown as Shared;
}

const openRow = (orderSeq: number): OrderLogRow => {
  const terms = { market: 0, side: 'bid' as const, priceTicks: 1_000n, sizeLots: 1n, tif: 'Gtc' as const, cloid: null };
  const effects = [{ type: 'open' as const, oid: orderSeq, ...terms }];
  const who = { maker: addressOf(1), signer: addressOf(1) };
  return { orderSeq, timeMs: orderSeq, ...who, nonce: orderSeq, kind: 'order', effects };
};

describe('a process that waits for its logs', () => {
  const told: boolean[] = [];
  const options = () => ({
    signal: new AbortController().signal,
    failure: () => null,
    onServing: (isServing: boolean) => void told.push(isServing),
    metrics: createMetrics({
      readiness: () => ({ ready: true, reason: null }),
      ledger: () => null,
      solvency: () => [],
      proofs: () => null,
      transfers: () => [],
      orderReverts: () => Promise.resolve(null),
      tokens: () => [],
      unattributed: () => Promise.resolve([]),
      suspense: () => Promise.resolve({ items: [], units: [] }),
      operator: () => Promise.resolve([]),
      pairs: () => Promise.resolve([]),
      signers: () => [],
      endpoints: () => [],
      settler: () => null,
      poster: () => null,
      replication: () => null,
      gateway: () => null,
      storage: () => Promise.resolve({ bytes: 0, foldedOrderSeq: 0 }),
      nowMs: () => 0,
    }),
  });
  let db: Db;
  let door: Door;
  const openDoor = (port: number): Door => createDoor({ port, host: '127.0.0.1', logger: silent });

  beforeEach(async () => {
    db = await openDb('sqlite::memory:');
    await migrate(db);
    await seed(db);
    door = openDoor(0);
  });

  afterEach(async () => {
    await door.close();
    await db.close();
  });

  it('serves reads until it has them, and then requests wait for what the roles serve at the same address', async () => {
    const seen: { url: string | null } = { url: null };
    let acquire: () => void = () => undefined;
    const acquired = new Promise<void>((resolve) => (acquire = resolve));
    const serving = serveStandby(processOf(db, door, seen), acquired, options());
    await until(() => seen.url !== null);
    const { url } = seen;
    expect((await post(`${url}/info`, { type: 'spotMeta' })).json.universe).to.have.length(2);
    const answer = await post(`${url}/exchange`, signRequest(orderAction(limit(true, '2500', '1')), 1, Date.now()));
    expect([answer.status, answer.text.split(':')[0]]).to.deep.equal([503, 'standby']);
    const probes = await Promise.all(['/live', '/ready', '/active'].map((path) => fetch(`${url}${path}`)));
    expect(probes.map(({ status }) => status)).to.deep.equal([200, 200, 503]);
    expect(await probes[2]!.json()).to.deep.equal({ active: false, reason: 'standby' });
    acquire();
    await serving;
    expect(told).to.deep.equal([true, false]);
    const waiting = post(`${url}/info`, { type: 'spotMeta' });
    const starting = await fetch(`${url}/ready`);
    expect([starting.status, await starting.json()]).to.deep.equal([503, { ready: false, reason: 'starting' }]);
    const router = new Router();
    router.post('/info', (ctx) => void (ctx.body = { universe: [], tokens: [] }));
    expect((await door.answer(createApp({ routers: [router], logger: silent }))).url).to.equal(url);
    expect((await waiting).json).to.deep.equal({ universe: [], tokens: [] });
  });

  it('starts again from the compacted book when rows were compacted before it read them', async () => {
    const seen: { url: string | null } = { url: null };
    let acquire: () => void = () => undefined;
    const acquired = new Promise<void>((resolve) => (acquire = resolve));
    const serving = serveStandby(processOf(db, door, seen), acquired, options());
    try {
      await until(() => seen.url !== null);
      const { url } = seen;
      seen.url = null;
      const writer = await acquireWriter(db, 'order');
      // One transaction, so that no poll falls between the rows and their compaction.
      await writer.tx(async (tx) => {
        await appendOrderRows(tx, [1, 2, 3].map(openRow));
        const bounds = { orderSeq: 2, generation: 0, beforeMs: Number.MAX_SAFE_INTEGER };
        await compactStep(tx, bounds, { effects: 10, generations: 1, closedOrders: 10 });
      });
      await until(() => seen.url !== null);
      expect(seen.url).to.equal(url);
      await until(async () => {
        const { json } = await post(`${url}/info`, { type: 'openOrders', user: addressOf(1) });
        return json.length === 3;
      });
    } finally {
      acquire();
      await serving;
    }
  });

  it('serves nothing when the wait is short', async () => {
    told.length = 0;
    await serveStandby(processOf(db, door, { url: null }), Promise.resolve(), options());
    expect(told).to.deep.equal([]);
  });

  it('waits without serving where the holder has the address', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const seen: { url: string | null } = { url: null };
    const { port } = holder.address() as AddressInfo;
    const acquired = new Promise<void>((resolve) => setTimeout(resolve, 1_500));
    try {
      const busy = openDoor(port);
      await serveStandby(processOf(db, busy, seen), acquired, options());
      expect(seen.url).to.equal(null);
      holder.close();
      await once(holder, 'close');
      const { url } = await busy.answer(createApp({ routers: [], logger: silent }));
      expect(url, 'taken once it is free').to.equal(`http://127.0.0.1:${port}`);
      await busy.close();
    } finally {
      holder.close();
    }
  });
});
