import { connect } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { addressOf, post, signRequest } from '../support/gateway.js';
import { fcOptions } from '../support/fc.js';
import { liveBytes } from '../support/worlds/garbage.js';
import { forEachGateway, limit, orderAction, runsOn } from '../support/gateway-suite.js';
import { connectWs } from '../support/ws.js';

/** 5,000 in CI, 100,000 in test:deep, whose RUNS is 20. */
const BODIES = 3_500;
const FRAMES = 1_500;
/** Above what compiled code and tables take, far below what every body of test:deep would. */
const GROWTH_BYTES = 16 * 1024 * 1024;

const good = signRequest(orderAction(limit(true, '2500', '1', { c: `0x${'ab'.repeat(16)}` })), 1, 1_700_000_000_000);

const nasty = fc.oneof(
  fc.constantFrom<unknown>(null, true, -1, 1.5, 1e308, 2 ** 53, '', '0x', '__proto__', 'constructor', [], {}, [[]]),
  fc.string({ maxLength: 30 }),
  fc.bigInt(0n, 2n ** 300n).map(String),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Every place inside a value, as a path of keys. */
function paths(value: unknown, prefix: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [prefix];
  return [prefix, ...Object.entries(value).flatMap(([key, inner]) => paths(inner, [...prefix, key]))];
}

function replaceAt(value: unknown, path: readonly string[], by: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return by;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[key] = replaceAt(copy[key], rest, by);
  return copy;
}

/** A valid message with one place of it exchanged. */
const mutated = (message: unknown): fc.Arbitrary<string> =>
  fc.tuple(fc.constantFrom(...paths(message)), nasty).map(([path, by]) => JSON.stringify(replaceAt(message, path, by)));

const deep = fc.nat(20_000).map((depth) => '['.repeat(depth) + ']'.repeat(depth));
const deepSubscription = fc
  .tuple(fc.constantFrom('subscribe', 'unsubscribe'), fc.nat(100_000))
  .map(([method, depth]) => `{"method":"${method}","subscription":${'['.repeat(depth)}${']'.repeat(depth)}}`);
const hugeNumber = fc.nat(2_000).map((digits) => `{"type":"order","nonce":${'9'.repeat(digits + 1)}}`);
const garbage = fc.oneof(fc.string({ maxLength: 200 }), fc.json({ maxDepth: 4 }), deep, hugeNumber);
const truncated = (message: unknown): fc.Arbitrary<Buffer> => {
  const bytes = Buffer.from(JSON.stringify(message).replace('Gtc', 'G\u{1F600}c'));
  return fc.nat(bytes.length - 1).map((length) => bytes.subarray(0, length));
};

const actions = [
  { type: 'cancel', cancels: [{ a: 10000, o: 1 }] },
  { type: 'modify', oid: 1, order: limit(true, '2500', '1') },
  { type: 'scheduleCancel', time: 1_700_000_060_000 },
  { type: 'approveAgent', signatureChainId: '0x1', hyperliquidChain: 'Mainnet', agentAddress: addressOf(9), nonce: 1 },
].map((action) => ({ ...good, action }));
const queries = [
  { type: 'l2Book', coin: '@0', nSigFigs: null },
  { type: 'orderStatus', user: addressOf(1), oid: 5 },
  { type: 'userFillsByTime', user: addressOf(1), startTime: 0, endTime: 5, reversed: true },
];
const request = fc.constantFrom<unknown>(good, ...actions).chain((message) => mutated(message));
const query = fc.constantFrom(...queries).chain((message) => mutated(message));
const body = fc.oneof(
  { weight: 5, arbitrary: request },
  { weight: 2, arbitrary: query },
  { weight: 2, arbitrary: garbage },
  { weight: 1, arbitrary: truncated(good) },
);
const frame = fc.oneof(
  body,
  deepSubscription,
  mutated({ method: 'post', id: 1, request: { type: 'action', payload: good } }),
  mutated({ method: 'post', id: 1, request: { type: 'info', payload: queries[0] } }),
  mutated({ method: 'subscribe', subscription: { type: 'userFills', user: addressOf(1), aggregateByTime: false } }),
  mutated({ method: 'unsubscribe', subscription: { type: 'l2Book', coin: '@0', nSigFigs: null } }),
);

forEachGateway('malformed input', (suite) => {
  let before: number;
  beforeEach(async () => {
    await suite.start({ failuresPerMinute: 1_000_000 });
    suite.running.time.nowMs = () => 1_700_000_000_001;
    before = liveBytes();
  });

  /** Whatever came before, the gateway still serves, and holds no more memory than before. */
  async function expectWell(): Promise<void> {
    const noop = await suite.act(2, { type: 'noop' }, { nonce: 1_700_000_000_000 });
    expect(noop).to.deep.equal({ status: 'ok', response: { type: 'default' } });
    expect(liveBytes() - before).to.be.lessThan(GROWTH_BYTES);
  }

  it('gets a 4xx or a refusal over HTTP, never a 5xx', async function () {
    this.timeout(1_800_000);
    const { url } = suite.running;
    const types = fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', '');
    const path = fc.constantFrom('/exchange', '/exchange', '/info');
    await fc.assert(
      fc.asyncProperty(body, path, types, async (sent, where, type) => {
        const response = await fetch(url + where, {
          method: 'POST',
          body: typeof sent === 'string' ? sent : new Uint8Array(sent),
          headers: { 'content-type': type },
        });
        const text = await response.text();
        expect(response.status, `${where} ${text}`).to.be.oneOf([200, 400, 413, 415, 422]);
        if (response.status === 200) expect(() => JSON.parse(text) as unknown).to.not.throw();
        else expect(response.headers.get('content-type')).to.match(/^text\/plain/);
      }),
      fcOptions(runsOn(suite, BODIES)),
    );
    const oversize = await post(`${url}/exchange`, `"${'x'.repeat(1024 * 1024)}"`);
    expect(oversize.status).to.equal(413);
    await expectWell();
  });

  it('gets an answer of the wire over WebSocket, or is closed by the protocol', async function () {
    this.timeout(1_800_000);
    const { url, stream } = suite.running;
    let client = await connectWs(url);
    await fc.assert(
      fc.asyncProperty(frame, fc.boolean(), async (sent, binary) => {
        if (client.socket.readyState !== WebSocket.OPEN) client = await connectWs(url);
        client.socket.send(sent, { binary: binary && typeof sent !== 'string' });
        client.send({ method: 'ping' });
        const end = await Promise.race([client.take(({ channel }) => channel === 'pong'), client.closed]);
        // No UTF-8, or too long: what the protocol itself closes for.
        if ('code' in end) expect(end.code).to.be.oneOf([1007, 1009]);
        for (const { channel } of client.frames.splice(0)) {
          expect(channel).to.be.oneOf([
            'pong',
            'post',
            'error',
            'subscriptionResponse',
            'userFills',
            'l2Book',
            'allMids',
            'orderUpdates',
          ]);
        }
      }),
      fcOptions(runsOn(suite, FRAMES)),
    );
    client.socket.terminate();
    await expectWell();
    expect(stream.connections()).to.be.lessThan(2);
  });

  it('may be no HTTP at all, or end half-way', async () => {
    const { url } = suite.running;
    const { port } = new URL(url);
    const raw = (text: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(Number.parseInt(port, 10), '127.0.0.1');
        let answer = '';
        socket.on('data', (data) => (answer += data.toString()));
        socket.on('error', () => undefined);
        socket.on('close', () => resolve(answer));
        socket.write(text);
        socket.end();
      });
    await raw('\u0000\u0001garbage\r\n\r\n');
    await raw(
      'POST /exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"act',
    );
    expect(await raw('GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')).to.match(
      / 400 /,
    );
    await raw(`GET /ws HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(100_000)}\r\n\r\n`);
    await expectWell();
  });
});
