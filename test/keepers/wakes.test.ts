import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { WebSocketServer, type WebSocket } from 'ws';
import { startHeadFeed, type HeadFeed } from '../../keepers/chain/head-feed.js';
import { startLoop } from '../../keepers/loop.js';
import { createWakeLimit } from '../../keepers/wake-limit.js';
import { createHeadWakes, createPace } from '../../keepers/watcher/wakes.js';
import { until } from '../support/stack.js';

const logger = pino({ level: 'silent' });

/** What a look takes that finds nothing, and one that finds a block. */
const EMPTY_LOOK_MS = 5;
const SCAN_MS = 20;
/** Looks in the same time without a pace. */
const plainLooks = (lengthMs: number): number => lengthMs / (500 + EMPTY_LOOK_MS);

/** Looks in simulated time at blocks that come every `blockMs`, each `jitterMs` late; how late each was seen, and how many looks there were. */
function follow(blockMs: number, { blocks = 200, jitter = (): number => 0, stallAt = -1, stallMs = 0 } = {}) {
  let nowMs = 0;
  let looks = 0;
  let seen = -1;
  const pace = createPace(500, () => nowMs);
  const madeMs = (n: number): number => n * blockMs + (n >= stallAt && stallAt >= 0 ? stallMs : 0) + jitter();
  const made = Array.from({ length: blocks }, (_, n) => madeMs(n));
  const lateMs: number[] = [];
  for (; seen < blocks - 1; nowMs += Math.max(1, pace.pauseMs())) {
    looks += 1;
    const newest = made.findLastIndex((ms) => ms <= nowMs);
    if (newest <= seen) {
      nowMs += EMPTY_LOOK_MS;
      continue;
    }
    lateMs.push(nowMs - made[newest]!);
    seen = newest;
    pace.observe(newest, nowMs);
    nowMs += SCAN_MS;
  }
  return { lateMs, looks, lengthMs: nowMs };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

describe('When the watcher looks', () => {
  it('finds a block soon after it is due, by as many looks as the plain pause takes', () => {
    for (const blockMs of [1_000, 1_900, 2_000, 2_130, 3_700, 12_000]) {
      const { lateMs, looks, lengthMs } = follow(blockMs);
      expect(median(lateMs.slice(40)), `${blockMs} ms`).to.be.at.most(60);
      expect(looks, `${blockMs} ms`).to.be.at.most(plainLooks(lengthMs) * 1.15);
    }
  });

  it('does so when blocks come a little early or late', () => {
    let turn = 0;
    const { lateMs, looks, lengthMs } = follow(2_000, { jitter: () => [0, 35, 10, 60, 25][(turn += 1) % 5]! });
    expect(median(lateMs.slice(40))).to.be.at.most(60);
    expect(looks).to.be.at.most(plainLooks(lengthMs) * 1.15);
  });

  it('looks no more often at a chain that is faster than its looks, or whose blocks come at any time', () => {
    const fast = follow(200, { blocks: 2_000 });
    expect(fast.looks).to.be.at.most(plainLooks(fast.lengthMs) * 1.01);
    let turn = 0;
    const odd = follow(2_000, { jitter: () => ((turn += 1) * 733) % 1_900 });
    expect(odd.looks).to.be.at.most(plainLooks(odd.lengthMs) * 2.5);
  });

  it('goes back to the plain pause while a due block does not come, and finds the pace again', () => {
    const { lateMs, looks, lengthMs } = follow(2_000, { stallAt: 100, stallMs: 600_000 });
    expect(looks).to.be.at.most(plainLooks(lengthMs) * 1.15);
    expect(median(lateMs.slice(-40))).to.be.at.most(60);
  });
});

describe('Wakes by hints from outside', () => {
  let stop: AbortController;
  beforeEach(() => (stop = new AbortController()));
  afterEach(() => stop.abort());
  const monotonicMs = (): number => performance.now();

  it('let the first hints through at once, then no more than they may, and none after the signal', async () => {
    let woken = 0;
    const startedMs = performance.now();
    const limit = createWakeLimit({
      ...{ wake: () => (woken += 1), spacingMs: 2, burst: 3, refillMs: 25 },
      ...{ signal: stop.signal, monotonicMs },
    });
    limit.hint();
    expect(woken).to.equal(1);
    for (let i = 0; i < 100; i += 1) {
      for (let n = 0; n < 1_000; n += 1) limit.hint();
      await delay(2);
    }
    expect(woken).to.be.at.least(4);
    expect(woken).to.be.at.most(3 + (performance.now() - startedMs) / 25 + 1);
    stop.abort();
    const before = woken;
    limit.hint();
    await delay(60);
    expect([woken, limit.count()]).to.deep.equal([before, before]);
  });

  const headWakes = (nextBlock: () => number, wake: () => void, intervalMs = 50) =>
    createHeadWakes({ nextBlock, wake, intervalMs, signal: stop.signal, monotonicMs });

  it('do nothing for a block that was scanned, and look again for one that is told of before it can be read', async () => {
    let [next, woken] = [10, 0];
    const wakes = headWakes(
      () => next,
      () => (woken += 1),
    );
    wakes.onHead(9);
    expect(woken).to.equal(0);
    wakes.onHead(10);
    expect(woken).to.equal(1);
    await until('another look', () => Promise.resolve(woken === 3));
    next = 11;
    await delay(400);
    expect(woken, 'no look for what was found').to.equal(3);
  });

  it('cost a bounded number of looks, whatever heads are invented and however many', async () => {
    let woken = 0;
    const startedMs = performance.now();
    const wakes = headWakes(
      () => 10,
      () => (woken += 1),
    );
    for (let i = 0; i < 300; i += 1) {
      for (let n = 0; n < 100; n += 1) wakes.onHead(2 ** 47 + i * 100 + n);
      await delay(2);
    }
    await delay(500);
    expect(woken).to.be.at.most(8 + (performance.now() - startedMs) / 50 + 1);
    expect(wakes.count()).to.equal(woken);
  });

  it('have a loop take its step long before its pause is over', async () => {
    let steps = 0;
    const loop = startLoop(() => Promise.resolve(void (steps += 1)), {
      ...{ name: 'test', intervalMs: 3_600_000, signal: stop.signal, logger },
    });
    const wakes = headWakes(() => steps, loop.wake);
    for (let n = 1; n <= 3; n += 1) {
      wakes.onHead(n);
      await until(`step ${n + 1}`, () => Promise.resolve(steps > n));
    }
    stop.abort();
    await loop.done;
  });
});

describe('Heads that endpoints tell of', () => {
  let server: WebSocketServer;
  let stop: AbortController;
  let feed: HeadFeed | null;
  let sockets: WebSocket[];
  let heads: number[];
  let asked: string[];
  /** What an endpoint does with a subscription. */
  let answer: (socket: WebSocket) => void;

  const told = (number: string | number): string =>
    JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: '0x1', result: { number } } });
  const accept = (socket: WebSocket): void => socket.send('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
  const urlOf = (one: WebSocketServer | Server): string => `ws://127.0.0.1:${(one.address() as { port: number }).port}`;
  const paces = { firstPauseMs: 5, longestPauseMs: 40, silenceMs: 200, windowMs: 10_000 };
  const start = (urls = [urlOf(server)]): HeadFeed =>
    (feed = startHeadFeed({ urls, onHead: (number) => heads.push(number), signal: stop.signal, logger, paces }));
  const facts = () => feed!.facts()[0]!;

  beforeEach(async () => {
    [heads, asked, sockets, feed] = [[], [], [], null];
    answer = accept;
    stop = new AbortController();
    server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    server.on('connection', (socket) => {
      sockets.push(socket);
      socket.on('message', (data: Buffer) => {
        asked.push(data.toString());
        answer(socket);
      });
    });
    await once(server, 'listening');
  });

  afterEach(async () => {
    stop.abort();
    await feed?.done;
    for (const socket of server.clients) socket.terminate();
    server.close();
  });

  it('are passed on, whatever else comes in between is not, and after a lost connection another one is made', async () => {
    start();
    await until('the subscription', () => Promise.resolve(asked.length === 1));
    expect(JSON.parse(asked[0]!)).to.deep.include({ method: 'eth_subscribe', params: ['newHeads'] });
    await until('the connection', () => Promise.resolve(facts().connected));
    const junk = ['', 'nonsense', '[]', 'null', '7', '{"params":{"result":null}}', told(7), told('0xfffffffffffff')];
    for (const text of [...junk, told('0x1f'), told('seven'), told('0x20')]) sockets[0]!.send(text);
    await until('two heads', () => Promise.resolve(heads.length === 2));
    expect(heads).to.deep.equal([31, 32]);
    sockets[0]!.terminate();
    await until('another subscription', () => Promise.resolve(asked.length === 2));
    sockets[1]!.send(told('0x21'));
    await until('a third head', () => Promise.resolve(heads.length === 3));
    expect(facts()).to.include({ connected: true, heads: 3, failures: 1 });
  });

  it('are not asked for again at once where they are refused, and come all the same from another endpoint', async () => {
    const other = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    other.on('connection', (socket) => socket.on('message', () => socket.send(told('0x5'))));
    await once(other, 'listening');
    answer = (socket) => socket.send('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}');
    try {
      start([urlOf(server), urlOf(other)]);
      await until('failures', () => Promise.resolve(facts().failures >= 3));
      expect(facts()).to.include({ connected: false, heads: 0 });
      expect(heads).to.deep.equal([5]);
    } finally {
      stop.abort();
      for (const socket of other.clients) socket.terminate();
      other.close();
    }
  });

  it('are no longer taken from an endpoint that floods, or that sends what is too long', async () => {
    answer = (socket) => {
      for (let n = 0; n < 5_000; n += 1) socket.send(told(`0x${n.toString(16)}`));
    };
    start();
    await until('the flood to end', () => Promise.resolve(facts().failures >= 2));
    expect(heads.length).to.be.at.most(400 * asked.length);
    stop.abort();
    await feed!.done;
    [heads, sockets] = [[], []];
    stop = new AbortController();
    answer = (socket) => socket.send(told('0x1').padEnd(70_000));
    start();
    await until('a long message to end it', () => Promise.resolve(facts().failures >= 1));
    expect(heads).to.deep.equal([]);
  });

  /** What a server without a library answers a client that asks for a WebSocket. */
  const handshakeOf = (request: Buffer): string => {
    const key = /Sec-WebSocket-Key: (.+)\r\n/i.exec(request.toString())![1]!;
    const digest = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${digest}\r\n\r\n`;
  };
  /** Why connections were given up. */
  const startTelling = (url: string): string[] => {
    const problems: string[] = [];
    const telling = pino({ level: 'warn' }, { write: (line: string) => void problems.push(line) });
    const options = { urls: [url], onHead: () => undefined, signal: stop.signal, logger: telling };
    const once = { silenceMs: 60_000, firstPauseMs: 60_000, longestPauseMs: 60_000 };
    feed = startHeadFeed({ ...options, paces: { ...paces, ...once } });
    return problems;
  };

  it('are no longer taken from an endpoint that floods with control frames', async () => {
    for (const frame of ['ping', 'pong'] as const) {
      let sent = 0;
      let done = false;
      answer = (socket) => {
        // A few at a time, each answered before the next, so that it is their number that ends it.
        const more = (): void => {
          if (sent >= 2_000) done = true;
          else for (let n = 0; n < 10; n += 1) socket[frame]();
          sent += 10;
          if (frame === 'pong' && !done) setImmediate(more);
        };
        let answered = 0;
        socket.on('pong', () => (answered += 1) % 10 === 0 && more());
        socket.on('close', () => (done = true));
        more();
      };
      const problems = startTelling(urlOf(server));
      await until(`the ${frame}s to end`, () => Promise.resolve(done));
      // Sooner than it has sent all.
      expect(sent).to.be.below(2_000);
      await until('word of it', () => Promise.resolve(problems.length > 0));
      expect(problems.join(), frame).to.contain('it floods');
      stop.abort();
      await feed!.done;
      stop = new AbortController();
    }
  });

  it('are asked for anew where nothing comes, not even an answer to a ping', async () => {
    const silent = createServer((socket) => {
      socket.once('data', (data) => {
        socket.write(handshakeOf(data));
      });
      socket.on('error', () => undefined);
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    start([urlOf(silent)]);
    await until('it to be given up', () => Promise.resolve(facts().failures >= 2));
    stop.abort();
    await feed!.done;
    silent.close();
  });

  it('stop with the signal, in the middle of a handshake, too', async () => {
    const mute = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const connected = once(mute, 'connection');
    start([urlOf(mute)]);
    await connected;
    stop.abort();
    await feed!.done;
    mute.close();
    expect(facts().connected).to.equal(false);
  });
});
