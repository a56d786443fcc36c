/** Requests that only the active gateway takes, sent to one that is not: it hands them over, once, and says what became of them. */
import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import { expect } from 'chai';
import { serveStandby, type Standing } from '../../../cli/roles/gateway/standby.js';
import type { HttpHandle } from '../../../cli/roles/gateway/http.js';
import { migrate, openDb } from '../../../ledger/db/db.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import type { Db } from '../../../ledger/types.js';
import { createApp } from '../../../server/app.js';
import { createDoor, type Door } from '../../../server/door.js';
import { createMetrics } from '../../../server/ops/metrics.js';
import { createRelay, refuseRelayed, relayed, type Relay } from '../../../server/relay.js';
import { processOf } from '../../support/api/gateway-process.js';
import { SILENT_METRICS } from '../../support/api/silent-metrics.js';
import { addressOf, post, seed, signRequest } from '../../support/gateway.js';
import { orderAction, limit, until } from '../../support/gateway-suite.js';

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

const MAKER = '0x1111111111111111111111111111111111111111';
const body = (action: number) => ({ action, nonce: 1, x: 'is left out' });

describe('what a standby hands over', () => {
  const servers: Server[] = [];

  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
    const server = createServer(handle);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const options = { timeoutMs: 1_500, maxWaiting: 2, monotonicMs: () => performance.now(), logger: silent };
  const relayTo = (urls: readonly string[]): Relay => createRelay({ urls, ...options });
  const codeOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      (said) => JSON.stringify(said),
      (error: Error & { code?: string; retryAfterSec?: number }) =>
        error.retryAfterSec === undefined ? String(error.code) : `later ${error.retryAfterSec}`,
    );

  /** A request line as it is given. */
  const ask = (base: string, path: string, text: string, method = 'POST') =>
    new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
      const { hostname, port } = new URL(base);
      const headers = { 'content-type': 'application/json' };
      const asked = request({ hostname, port, path, method, headers }, (answer) => {
        let said = '';
        answer.on('data', (chunk: Buffer) => (said += chunk.toString()));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: said }));
      });
      asked.on('error', reject);
      asked.end(text);
    });

  interface Peer {
    url: string;
    seen: { method: string; url: string; address: unknown; text: string }[];
    isActive: boolean;
    /** How it answers what is handed over. */
    answer(response: ServerResponse): void;
  }

  async function peer(isActive: boolean): Promise<Peer> {
    const one: Peer = { url: '', seen: [], isActive, answer: (response) => response.end('{"status":"ok"}') };
    one.url = await serve((asked, response) => {
      if (asked.url === '/active') return void response.writeHead(one.isActive ? 200 : 503).end('{}');
      let text = '';
      asked.on('data', (chunk: Buffer) => (text += chunk.toString()));
      asked.on('end', () => {
        const { method = '', url = '', headers } = asked;
        one.seen.push({ method, url, address: headers['x-forwarded-for'], text });
        one.answer(response);
      });
    });
    return one;
  }

  it('goes to the one that is active, with the address of the client, and to the next one after a takeover', async () => {
    const [first, second] = [await peer(false), await peer(true)];
    const relay = relayTo([first.url, second.url, 'http://127.0.0.1:1']);
    expect(await relay.action(body(1), MAKER, '192.0.2.7')).to.deep.equal({ status: 'ok' });
    expect(second.seen).to.deep.equal([
      { method: 'POST', url: '/exchange', address: '192.0.2.7', text: '{"action":1,"nonce":1}' },
    ]);
    // It says that it is not the owner any more, and nothing was stored.
    second.isActive = false;
    second.answer = (response) => response.writeHead(503, { 'x-curvebook-standby': '1' }).end('standby');
    first.isActive = true;
    expect(await relay.action(body(2), MAKER, undefined)).to.deep.equal({ status: 'ok' });
    expect(first.seen.map(({ text }) => text)).to.deep.equal(['{"action":2,"nonce":1}']);
  });

  it('is sent again only where nothing was sent', async () => {
    const [gone, there] = [await peer(true), await peer(false)];
    const relay = relayTo([gone.url, there.url]);
    await relay.action(body(1), MAKER, undefined);
    const server = servers[0]!;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    there.isActive = true;
    expect(await codeOf(relay.action(body(2), MAKER, undefined)), 'refused connections').to.equal('{"status":"ok"}');
    there.answer = (response) => response.destroy();
    expect(await codeOf(relay.action(body(3), MAKER, undefined))).to.equal('outcome_unknown');
    there.answer = (response) => response.writeHead(500).end('broken');
    expect(await codeOf(relay.action(body(4), MAKER, undefined))).to.equal('outcome_unknown');
    there.answer = (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
    expect(await codeOf(relay.action(body(5), MAKER, undefined)), 'no redirect is followed').to.equal(
      'outcome_unknown',
    );
    there.answer = (response) => response.writeHead(429, { 'retry-after': '7' }).end('null');
    expect(await codeOf(relay.action(body(6), MAKER, undefined))).to.equal('later 7');
    there.answer = () => undefined;
    expect(await codeOf(relay.action(body(7), MAKER, undefined)), 'no answer in time').to.equal('outcome_unknown');
    const often = there.seen.map(({ text }) => text);
    expect(often).to.deep.equal([2, 3, 4, 5, 6, 7].map((action) => JSON.stringify({ action, nonce: 1 })));
  });

  it('ends while nobody is active, and is refused where too much waits, of one maker before others are', async () => {
    const idle = await peer(false);
    const relay = createRelay({ urls: [idle.url], ...options, maxWaiting: 8 });
    const other = `0x${'2'.repeat(40)}` as const;
    const two = [1, 2].map((action) => codeOf(relay.action(body(action), MAKER, undefined)));
    await until(() => relay.waiting() === 2);
    expect(await codeOf(relay.action(body(3), MAKER, undefined)), 'a quarter').to.equal('write_failed');
    const third = codeOf(relay.action(body(4), other, undefined));
    expect(relay.waiting(), 'the one more was refused at once').to.equal(3);
    const large = codeOf(relay.action({ action: 'x'.repeat(40 * 1024 * 1024) }, other, undefined));
    const more = codeOf(relay.action({ action: 'x'.repeat(40 * 1024 * 1024) }, `0x${'3'.repeat(40)}`, undefined));
    expect(await more, 'more bytes than may wait').to.equal('write_failed');
    expect(await Promise.all([...two, third, large])).to.deep.equal(Array(4).fill('standby'));
    expect([relay.waiting(), idle.seen]).to.deep.equal([0, []]);
  });

  it('is told as the active gateway tells it, and what is no reply as unknown', async () => {
    const active = await peer(true);
    const relay = relayTo([active.url]);
    const asked = () => codeOf(relay.action(body(1), MAKER, undefined));
    for (const [status, text, expected] of [
      [503, 'write_failed: Nothing was stored', 'write_failed'],
      [503, 'outcome_unknown: It may or may not have been stored', 'outcome_unknown'],
      [200, '<html>', 'outcome_unknown'],
      [200, 'null', 'outcome_unknown'],
      [101, '', 'outcome_unknown'],
    ] as const) {
      active.answer = (response) => response.writeHead(status, { upgrade: 'no', connection: 'upgrade' }).end(text);
      expect(await asked(), `${status} ${text}`).to.equal(expected);
    }
    // It has lost its log, and says that nothing was stored: the next one is asked.
    let told = 0;
    active.answer = (response) => {
      told += 1;
      response.writeHead(503).end('standby: Another process owns the order log; nothing was stored');
    };
    expect(await asked()).to.equal('standby');
    expect([told > 1, relay.waiting()]).to.deep.equal([true, 0]);
  });

  it('comes back with its status and limits, and leaves the paths of the API for no other server and no other path', async () => {
    const active = await peer(true);
    active.answer = (response) =>
      response.writeHead(422, { 'content-type': 'application/json', 'x-ratelimit-remaining': '3' }).end('{"a":1}');
    const router = new Router();
    router.all(
      '/api/v1/{*path}',
      relayed(relayTo([active.url]), () => false, null),
      (ctx) => void (ctx.body = 'own'),
    );
    const app = createApp({ routers: [router], logger: silent });
    const own = await serve((asked, response) => void app.callback()(asked, response));
    const quote = await ask(own, '/api/v1/quote?x=%2F1', '{"b":2}');
    expect([quote.status, quote.headers['x-ratelimit-remaining'], quote.text]).to.deep.equal([422, '3', '{"a":1}']);
    expect(active.seen[0]).to.deep.include({ method: 'POST', url: '/api/v1/quote?x=%2F1', text: '{"b":2}' });
    expect((await ask(own, '/api/v1/orders', '', 'GET')).text, 'reads are answered here').to.equal('own');
    // A request line may name another server, and climb out of the API; neither is followed.
    const strangers = await peer(true);
    for (const path of [`${strangers.url}/api/v1/quote`, '/api/v1/../../exchange', '/api/v1/%2e%2e/%2e%2e/exchange'])
      await ask(own, path, '{}');
    expect(strangers.seen).to.deep.equal([]);
    expect(active.seen.map(({ url }) => url).filter((url) => !url.startsWith('/api/v1/'))).to.deep.equal([]);
    expect((await ask(own, '/api/v1/quote', 'x'.repeat(70_000))).status).to.equal(413);
  });

  it('is not sent with so little time left that nobody could say what became of it', async () => {
    const slow = await peer(true);
    let nowMs = 0;
    slow.answer = (response) => {
      nowMs += 1_300;
      setTimeout(() => response.writeHead(503, { 'x-curvebook-standby': '1' }).end('standby'), 200);
    };
    const relay = createRelay({ urls: [slow.url], ...options, monotonicMs: () => (nowMs += 25) });
    expect(await codeOf(relay.action(body(1), MAKER, undefined))).to.equal('standby');
    expect(slow.seen).to.have.length(1);
  });

  it('does not go round between two that take each other for the active one', async () => {
    const urls: string[] = [];
    const isActive = (): boolean => false;
    for (let i = 0; i < 2; i += 1) {
      const router = new Router();
      // What they say of themselves is out of date.
      router.get('/active', (ctx) => void (ctx.body = {}));
      router.post('/api/v1/quote', (ctx) => relayTo(urls).answer(ctx));
      const app = createApp({ routers: [router], logger: silent, before: refuseRelayed(isActive) });
      urls.push(await serve((asked, response) => void app.callback()(asked, response)));
    }
    const answer = await ask(urls[0]!, '/api/v1/quote', '{}');
    expect([answer.status, (JSON.parse(answer.text) as { error: { code: string } }).error.code]).to.deep.equal([
      503,
      'STANDBY',
    ]);
  });
});

describe('two gateways behind a balancer that knows nothing of them', () => {
  const doors: Door[] = [];
  const handles: HttpHandle[] = [];
  let db: Db;

  beforeEach(async () => {
    db = await openDb('sqlite::memory:');
    await migrate(db);
    await seed(db);
  });

  afterEach(async () => {
    for (const http of handles.splice(0)) await http.close();
    for (const door of doors.splice(0)) await door.close();
    await db.close();
  });

  async function standbyAt(door: Door, urls: readonly string[]) {
    const seen: { url: string | null } = { url: null };
    const acquired = Promise.withResolvers<void>();
    const settings = { GATEWAY_URLS: [...urls], EDGE_TIMEOUT_MS: 5_000, EDGE_MAX_WAITING: 100, TRUST_PROXY: true };
    const context = processOf(db, door, seen, settings);
    const serving = serveStandby(context, acquired.promise, {
      signal: new AbortController().signal,
      failure: () => null,
      onServing: () => undefined,
      onSwapOrder: () => undefined,
      onOutdated: () => undefined,
      metrics: createMetrics(SILENT_METRICS),
    });
    await until(() => seen.url !== null);
    acquired.resolve();
    const standing: Standing = (await serving)!;
    handles.push(standing.http);
    return {
      url: seen.url!,
      async promote(): Promise<void> {
        Object.assign(context, {
          readiness: () => ({ ready: true, reason: null }),
          watcherStatus: () => ({ findings: [] }),
        });
        await standing.promote(await acquireWriter(db, 'order'));
      },
    };
  }

  it('take each order of a maker that alternates between them once, also across a takeover', async () => {
    const ports: number[] = [];
    for (let i = 0; i < 2; i += 1) {
      const door = createDoor({ port: 0, host: '127.0.0.1', logger: silent });
      doors.push(door);
      const { url } = await door.answer(createApp({ routers: [new Router()], logger: silent }));
      ports.push(Number.parseInt(new URL(url).port, 10));
    }
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const gateways = [];
    for (const door of doors) gateways.push(await standbyAt(door, urls));
    await gateways[0]!.promote();
    let nonce = Date.now();
    async function place(url: string): Promise<number> {
      const answer = await post(`${url}/exchange`, signRequest(orderAction(limit(true, '2500', '1')), 1, (nonce += 1)));
      expect([answer.status, answer.json.status], answer.text).to.deep.equal([200, 'ok']);
      return (answer.json as { response: { data: { statuses: { resting: { oid: number } }[] } } }).response.data
        .statuses[0]!.resting.oid;
    }
    const oids: number[] = [];
    for (let i = 0; i < 6; i += 1) oids.push(await place(urls[i % 2]!));
    await handles[0]!.close();
    const waiting = place(urls[1]!);
    await gateways[1]!.promote();
    oids.push(await waiting, await place(urls[1]!));
    expect(new Set(oids).size).to.equal(8);
    const rows = await readOrderRows(db.knex, { after: 0, limit: 100 });
    expect(rows.filter(({ signer }) => signer === addressOf(1))).to.have.length(8);
  });
});
