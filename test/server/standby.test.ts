import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import Router from '@koa/router';
import { expect } from 'chai';
import type { HttpHandle } from '../../cli/roles/gateway/http.js';
import { serveStandby } from '../../cli/roles/gateway/standby.js';
import { createApp } from '../../server/app.js';
import { createDoor, type Door } from '../../server/door.js';
import { createMetrics } from '../../server/ops/metrics.js';
import { migrate, openDb } from '../../ledger/db/db.js';
import { compactStep } from '../../ledger/orders/compaction.js';
import { appendOrderRows, readOrderRows } from '../../ledger/orders/order-log.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import { reverseGenerations } from '../../ledger/chain/reversals.js';
import type { Db, Transaction } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import type { OrderLogRow } from '../../core/types.js';
import { orderAction, limit, until } from '../support/gateway-suite.js';
import { createMarket } from '../../core/market.js';
import { addGeneration, addressOf, post, seed, signRequest } from '../support/gateway.js';
import { DAI, USDC } from '../support/markets.js';
import { processOf } from '../support/api/gateway-process.js';
import { SILENT_METRICS } from '../support/api/silent-metrics.js';

const silent = { info: () => undefined, error: () => undefined };
const openRow = (orderSeq: number, market = 0): OrderLogRow => {
  const terms = { market, side: 'bid' as const, priceTicks: 1_000n, sizeLots: 1n, tif: 'Gtc' as const, cloid: null };
  const effects = [{ type: 'open' as const, oid: orderSeq, ...terms }];
  const who = { maker: addressOf(1), signer: addressOf(1) };
  return { orderSeq, timeMs: orderSeq, ...who, nonce: orderSeq, kind: 'order', effects };
};

const LISTED_LATER = createMarket({
  ...{ index: 2, base: DAI, quote: USDC },
  lotUnits: 10n ** 16n,
  tickLotUnits: 1n,
  maxTtlSec: 60,
});

/** After the first view of the database that a reader takes once it is armed, a market is listed and an order in it is stored. */
function listingAfterRead(db: Db): { db: Db; arm(): Promise<void> } {
  let armed: PromiseWithResolvers<void> | null = null;
  async function list(): Promise<void> {
    await addGeneration(db, { listed: [LISTED_LATER] });
    const owner = await acquireWriter(db, 'order');
    await owner.tx((tx) => appendOrderRows(tx, [openRow(1, LISTED_LATER.index)]));
  }
  const transaction = async (...args: unknown[]): Promise<unknown> => {
    const read = await (db.reads.transaction as (...of: unknown[]) => Promise<unknown>)(...args);
    const due = armed;
    armed = null;
    if (due !== null) await list().then(due.resolve, due.reject);
    return read;
  };
  const reads = new Proxy(db.reads, {
    get: (knex, key) => (key === 'transaction' ? transaction : (Reflect.get(knex, key) as unknown)),
  });
  return { db: { ...db, reads }, arm: () => (armed = Promise.withResolvers()).promise };
}

describe('a process that waits for its logs', () => {
  const told: boolean[] = [];
  const options = () => ({
    signal: new AbortController().signal,
    failure: () => null,
    onServing: (http: HttpHandle | null) => void told.push(http !== null),
    onSwapOrder: () => undefined,
    onOutdated: () => undefined,
    metrics: createMetrics(SILENT_METRICS),
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
    await (await serving)!.http.close();
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
        await appendOrderRows(
          tx,
          [1, 2, 3].map((orderSeq) => openRow(orderSeq)),
        );
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
      await (await serving)?.http.close();
    }
  });

  it('takes actions at the same address once it is promoted, from the last row that the earlier owner stored', async () => {
    const seen: { url: string | null } = { url: null };
    const acquired = Promise.withResolvers<void>();
    const context = processOf(db, door, seen);
    const serving = serveStandby(context, acquired.promise, options());
    await until(() => seen.url !== null);
    const { url } = seen;
    const first = await acquireWriter(db, 'order');
    await first.tx((tx) =>
      appendOrderRows(
        tx,
        [1, 2, 3].map((orderSeq) => openRow(orderSeq)),
      ),
    );
    const writer = await acquireWriter(db, 'order');
    // After the take-over and before the standby reads it: nothing but the log says so.
    await writer.tx((tx) => appendOrderRows(tx, [openRow(4)]));
    acquired.resolve();
    const standing = (await serving)!;
    const signed = (nonce: number) => signRequest(orderAction(limit(true, '2500', '1')), 1, nonce);
    const early = await post(`${url}/exchange`, signed(Date.now()));
    expect([early.status, early.text.split(':')[0]], 'not before').to.deep.equal([503, 'standby']);
    Object.assign(context, {
      readiness: () => ({ ready: true, reason: null }),
      watcherStatus: () => ({ findings: [] }),
    });
    await standing.promote(writer);
    expect(told.slice(-1)).to.deep.equal([true]);
    const nonce = Date.now();
    const answer = await post(`${url}/exchange`, signed(nonce));
    const rows = await readOrderRows(db.knex, { after: 0, limit: 10 });
    expect([answer.status, rows.length], answer.text).to.deep.equal([200, 5]);
    expect(rows.at(-1)).to.include({ orderSeq: 5, nonce, signer: addressOf(1) });
    const { json } = await post(`${url}/info`, { type: 'openOrders', user: addressOf(1) });
    expect(json).to.have.length(5);
    await first
      .tx((tx) => appendOrderRows(tx, [openRow(6)]))
      .then(
        () => expect.fail('the earlier owner wrote'),
        (error: Error) => expect(error.name).to.equal('WriterLostError'),
      );
    expect(await fetch(`${url}/active`).then(({ status }) => status)).to.equal(200);
    await standing.http.close();
  });

  /** A standby of a process that has its logs, not promoted yet. */
  async function standingOf(from: Db = db) {
    const seen: { url: string | null; warned: string[] } = { url: null, warned: [] };
    const acquired = Promise.withResolvers<void>();
    const abort = new AbortController();
    const serving = serveStandby(processOf(from, door, seen), acquired.promise, { ...options(), signal: abort.signal });
    await until(() => seen.url !== null);
    acquired.resolve();
    return { standing: (await serving)!, seen, abort };
  }

  const failureOf = (work: Promise<unknown>): Promise<string | null> =>
    work.then(
      () => null,
      (error: Error) => error.message,
    );

  /** Rows that no follower has read are gone once it is committed. */
  async function appendCompacted(tx: Transaction): Promise<void> {
    await appendOrderRows(
      tx,
      [1, 2, 3].map((orderSeq) => openRow(orderSeq)),
    );
    const bounds = { orderSeq: 2, generation: 0, beforeMs: Number.MAX_SAFE_INTEGER };
    await compactStep(tx, bounds, { effects: 10, generations: 1, closedOrders: 10 });
  }

  it('is not promoted when it finds meanwhile that what it holds can not be moved on, and lets its address go', async () => {
    const { standing, seen } = await standingOf();
    const writer = await acquireWriter(db, 'order');
    const promoted = await writer.tx(async (tx) => {
      await appendCompacted(tx);
      // Nothing else is read before this transaction ends: only the promotion finds out.
      return [failureOf(standing.promote(writer))];
    });
    expect(await promoted[0]).to.match(/stopped before it had read its log/);
    await standing.http.close();
    const router = new Router();
    router.post('/info', (ctx) => void (ctx.body = { universe: [], tokens: [] }));
    expect((await door.answer(createApp({ routers: [router], logger: silent }))).url).to.equal(seen.url);
  });

  it('is not promoted once it has found that what it holds can not be moved on', async () => {
    const { standing, seen } = await standingOf();
    const writer = await acquireWriter(db, 'order');
    await writer.tx(appendCompacted);
    await until(() => seen.warned.some((message) => message.includes('can not follow the logs')));
    expect(await failureOf(standing.promote(writer))).to.match(/out of date/);
    await standing.http.close();
  });

  it('is not promoted after its process was told to stop', async () => {
    const { standing, abort } = await standingOf();
    abort.abort();
    await delay(50);
    const writer = await acquireWriter(db, 'order');
    expect(await failureOf(standing.promote(writer))).to.match(/has stopped/);
    await standing.http.close();
  });

  it('reads the listing of a market and the orders in it together', async () => {
    const late = listingAfterRead(db);
    const { standing } = await standingOf(late.db);
    await late.arm();
    const writer = await acquireWriter(db, 'order');
    await standing.promote(writer);
    const { json } = await post(`${standing.http.url}/info`, { type: 'openOrders', user: addressOf(1) });
    expect(json, 'the acknowledged order').to.have.length(1);
    await standing.http.close();
  });

  it('is not promoted from a book that lacks a row, whatever the reason', async () => {
    const { standing } = await standingOf();
    const writer = await acquireWriter(db, 'order');
    const promoted = await writer.tx(async (tx) => {
      // What no gateway would store.
      await appendOrderRows(tx, [openRow(1, 7)]);
      return [failureOf(standing.promote(writer))];
    });
    expect(await promoted[0]).to.match(/stopped before it had read its log/);
    await standing.http.close();
  });

  it('is not promoted when part of the ledger that it holds was taken back', async () => {
    const { standing } = await standingOf();
    const writer = await acquireWriter(db, 'order');
    const ledger = await acquireWriter(db, 'ledger');
    const head = (await lastGeneration(db.knex))!;
    const block = { number: 0, hash: head.blockHash, timestampMs: 0 };
    const request = { headGeneration: head.generation, keptGeneration: 0, block, depth: 1 };
    const promoted = await ledger.tx(async (tx) => {
      await reverseGenerations(tx, request, { operatorSeq: 1, timeMs: 5 });
      return [failureOf(standing.promote(writer))];
    });
    expect(await promoted[0]).to.match(/stopped before it had read its log|out of date/);
    await standing.http.close();
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
