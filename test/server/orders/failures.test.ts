import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { networkOf } from '../../../server/rate-limit.js';
import { createFailureLimit } from '../../../server/orders/failures.js';
import { createRecoveryQueue, type Requester } from '../../../server/orders/recovery-queue.js';
import { addGeneration, addressOf, deposit, operate, post, signRequest } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, withGateway } from '../../support/gateway-suite.js';
import { WETH } from '../../support/markets.js';
import { connectWs, type Frame } from '../../support/ws.js';

describe('the budget of failed signatures', () => {
  it('is per address and minute, and long requests use up more of it', () => {
    let nowMs = 0;
    const failures = createFailureLimit(2, () => nowMs);
    failures.failed('1.1.1.1');
    expect(failures.spentSec('1.1.1.1')).to.equal(0);
    nowMs = 30_000;
    failures.failed('1.1.1.1');
    failures.failed('2.2.2.2', 8 * 1024 - 1);
    failures.failed('3.3.3.3', 8 * 1024);
    expect(failures.spentSec('1.1.1.1')).to.equal(30);
    expect([failures.spentSec('2.2.2.2'), failures.spentSec('3.3.3.3')]).to.deep.equal([0, 60]);
    nowMs = 59_999;
    expect(failures.spentSec('1.1.1.1')).to.equal(1);
    nowMs = 60_000;
    expect(failures.spentSec('1.1.1.1')).to.equal(0);
  });

  it('is full again within a minute of a clock that was set back, and trust ends then', () => {
    let nowMs = 3_600_000;
    const failures = createFailureLimit(1, () => nowMs);
    failures.failed('1.1.1.1');
    failures.known('2.2.2.2');
    nowMs = 0;
    expect([failures.spentSec('1.1.1.1'), failures.isTrusted('2.2.2.2')]).to.deep.equal([0, false]);
    failures.failed('1.1.1.1');
    expect(failures.spentSec('1.1.1.1')).to.equal(60);
    nowMs = 60_000;
    expect(failures.spentSec('1.1.1.1')).to.equal(0);
  });

  it('remembers the newest 50,000 addresses, however many there are', () => {
    const failures = createFailureLimit(1, () => 0);
    const before = 50_000;
    for (let index = 0; index <= before; index += 1) {
      failures.failed(`address ${index}`);
      failures.known(`maker ${index}`);
    }
    expect(failures.spentSec('address 0')).to.equal(0);
    expect(failures.spentSec('address 1')).to.equal(60);
    expect(failures.spentSec(`address ${before}`)).to.equal(60);
    expect([failures.isTrusted('maker 0'), failures.isTrusted('maker 1')]).to.deep.equal([false, true]);
  });

  it('trusts an address from which a maker acted lately, until strangers there spend its budget', () => {
    let nowMs = 0;
    const failures = createFailureLimit(1, () => nowMs);
    expect(failures.isTrusted('1.1.1.1')).to.equal(false);
    failures.known('1.1.1.1');
    expect(failures.isTrusted('1.1.1.1')).to.equal(true);
    failures.failed('1.1.1.1');
    expect(failures.isTrusted('1.1.1.1')).to.equal(false);
    nowMs = 60_000;
    expect(failures.isTrusted('1.1.1.1')).to.equal(true);
    nowMs = 600_000;
    expect(failures.isTrusted('1.1.1.1')).to.equal(false);
  });

  it('is one for all addresses that a client of IPv6 has', () => {
    const cases = {
      '10.0.0.1': '10.0.0.1',
      '::ffff:10.0.0.1': '10.0.0.1',
      '2001:db8:0:7::1': '2001:db8:0:7::/64',
      '2001:0DB8:0000:0007:ffff:ffff:ffff:ffff': '2001:db8:0:7::/64',
      '2001:db8::1': '2001:db8:0:0::/64',
      'fe80::1%eth0': 'fe80:0:0:0::/64',
      '1:2:3::10.0.0.1': '1:2:3:0::/64',
      '::1': '0:0:0:0::/64',
      '': '',
    };
    for (const [address, network] of Object.entries(cases)) expect(networkOf(address), address).to.equal(network);
  });
});

describe('the queue of recoveries', () => {
  let nowMs = 0;
  let timer: { callback: () => void; atMs: number } | null = null;
  const done: string[] = [];

  const queueOf = (options: { maxWaiting?: number; maxWaitingBytes?: number } = {}) =>
    createRecoveryQueue({
      ...options,
      nowMs: () => nowMs,
      later: (callback, ms) => void (timer = { callback, atMs: nowMs + ms }),
    });

  beforeEach(() => {
    nowMs = 0;
    timer = null;
    done.length = 0;
  });

  /** Lets time go on until nothing is planned. */
  function settle(): void {
    for (let rounds = 0; timer !== null; rounds += 1) {
      if (rounds > 1_000) throw new Error('it never ends');
      const { callback, atMs }: { callback: () => void; atMs: number } = timer;
      timer = null;
      nowMs = Math.max(nowMs, atMs);
      callback();
    }
  }

  const work = (name: string, ms: number, isKnown: boolean) => () => {
    nowMs += ms;
    done.push(name);
    return { value: name, isKnown };
  };
  const from = (key: string, change: Partial<Requester> = {}): Requester => ({
    key,
    bytes: 100,
    isSpent: false,
    ...change,
  });

  it('makes nobody wait while nothing fails', async () => {
    const queue = queueOf();
    expect(await queue.run(from('a'), work('a', 5, true))).to.equal('a');
    expect(await queue.run(from('b'), work('b', 5, true))).to.equal('b');
    expect([nowMs, timer]).to.deep.equal([10, null]);
  });

  it('spends at most a quarter of the time on what fails, also when it throws', async () => {
    const queue = queueOf();
    const all = Array.from({ length: 9 }, (_, index) => queue.run(from('x'), work(`${index}`, 10, false)));
    const thrown = queue.run(from('x'), () => {
      nowMs += 10;
      throw new Error('malformed');
    });
    const caught = thrown.catch((error: unknown) => (error as Error).message);
    settle();
    await Promise.all(all);
    expect(await caught).to.equal('malformed');
    const last = queue.run(from('x'), work('last', 0, true));
    settle();
    await last;
    expect(nowMs).to.equal(10 * 40);
  });

  it('gives keys their turns one after the other, those that are not spent three of four', async () => {
    const queue = queueOf();
    const run = (key: string, isSpent: boolean): Promise<string> =>
      queue.run(from(key, { isSpent }), work(key, 1, false));
    const first = run('first', false);
    const all = [...'aaaaaa'].map((key) => run(key, false));
    all.push(run('b', false), ...[...'zz'].map((key) => run(key, true)), run('maker', true));
    settle();
    await Promise.all([first, ...all]);
    expect(done.slice(1).join(' ')).to.equal('a b a z a a a maker a z');
  });

  it('lets the longest request of the busiest key go when too much waits', async () => {
    const queue = queueOf({ maxWaiting: 100, maxWaitingBytes: 3_000 });
    void queue.run(from('flood'), work('first', 10, false));
    const big = [1, 2].map((index) =>
      queue.run(from('shared', { bytes: 1_200, isSpent: true }), work(`big ${index}`, 10, false)),
    );
    const refused = big.map((one) => one.catch((error: unknown) => (error as Error).name));
    const maker = queue.run(from('shared', { bytes: 400, isSpent: true }), work('maker', 0, true));
    const other = queue.run(from('other', { bytes: 900 }), work('other', 0, true));
    settle();
    expect(await Promise.all([maker, other])).to.deep.equal(['maker', 'other']);
    expect(await Promise.all(refused)).to.deep.equal(['big 1', 'RateLimitedError']);
    expect(queue.waiting()).to.equal(0);
  });

  it('bounds how many wait', async () => {
    const queue = queueOf({ maxWaiting: 3 });
    void queue.run(from('flood'), work('first', 10, false));
    const flood = Array.from({ length: 5 }, () => queue.run(from('flood'), work('flood', 1, false)));
    const ends = Promise.allSettled(flood);
    const maker = queue.run(from('maker'), work('maker', 0, true));
    expect(queue.waiting()).to.equal(3);
    settle();
    expect(await maker).to.equal('maker');
    expect((await ends).filter(({ status }) => status === 'rejected').length).to.equal(3);
  });
});

forEachGateway('failed signatures', (suite) => {
  const place = orderAction(limit(true, '2500', '0.1'));

  it('refuse their address for a while, cancels included, and never a maker there', async () => {
    const { url, time } = await suite.start({ failuresPerMinute: 3 });
    const nowMs = Date.now();
    time.nowMs = () => nowMs;
    const cancel = { type: 'cancelByCloid', cancels: [{ asset: 10000, cloid: `0x${'1'.repeat(32)}` }] };
    for (const action of [place, cancel, { type: 'scheduleCancel' }]) {
      expect((await suite.act(40, action)).response).to.match(/^unknown_signer/);
    }
    for (const action of [place, cancel]) {
      const answer = await post(`${url}/exchange`, signRequest(action, 40, suite.nextNonce()));
      expect([answer.status, answer.text]).to.deep.equal([429, 'null']);
      // Each over another connection, like this maker's.
      expect((await suite.act(1, action)).status).to.equal('ok');
    }
    const client = await connectWs(url);
    const posted = await client.post('action', signRequest(place, 2, suite.nextNonce()));
    expect(posted).to.have.nested.property('payload.status', 'ok');
    await client.close();
    time.nowMs = () => nowMs + 60_000;
    expect((await suite.act(40, place)).response).to.match(/^unknown_signer/);
  });

  it('are those of accounts that may not act, too, which anybody may open with a deposit', async () => {
    await suite.start({ failuresPerMinute: 2 });
    expect((await suite.act(3, place)).response).to.match(/^maker_not_approved/);
    expect((await suite.act(3, place)).response).to.match(/^maker_not_approved/);
    expect((await post(`${suite.running.url}/exchange`, signRequest(place, 3, suite.nextNonce()))).status).to.equal(
      429,
    );
  });

  it('are judged by what the operator did last, without recovering them again', async () => {
    await suite.start({ failuresPerMinute: 1, pollMs: 60_000 });
    await addGeneration(suite.db, { entries: deposit('50', addressOf(50), WETH.address, 10n ** 18n) });
    await operate(suite.db, 'approve', addressOf(50));
    expect((await suite.act(50, { type: 'noop' }, { source: 'b' })).status).to.equal('ok');
  });
});

const on =
  (channel: string) =>
  (frame: Frame): boolean =>
    frame.channel === channel;

withGateway('long requests', (suite) => {
  const cancels = (count: number): object => ({
    type: 'cancelByCloid',
    cancels: Array.from({ length: count }, () => ({ asset: 10000, cloid: `0x${'1'.repeat(32)}` })),
  });

  it('are counted before they are hashed, whoever signed them, and use up no nonce', async () => {
    const { url } = await suite.start({ failuresPerMinute: 1 });
    const nonce = suite.nextNonce();
    const unsigned = { action: cancels(15_000), nonce, signature: { r: '0x1', s: '0x1', v: 27 } };
    expect((await post(`${url}/exchange`, unsigned)).json.response).to.match(/^batch_too_large/);
    expect((await post(`${url}/exchange`, unsigned)).status).to.equal(429);
    expect((await suite.act(1, cancels(1_000), { nonce })).status).to.equal('ok');
  });

  it('keep their place among the messages of a connection', async () => {
    await suite.start();
    const client = await connectWs(suite.running.url);
    client.send({ method: 'ping', padding: 'x'.repeat(200_000) });
    client.socket.send(`{"method":"dance"${' '.repeat(200_000)}}`);
    const answer = client.post('action', signRequest(cancels(1_000), 1, suite.nextNonce()));
    client.send({ method: 'ping' });
    await client.take(on('pong'));
    await client.take(on('error'));
    expect(await answer).to.have.nested.property('payload.status', 'ok');
    await client.take(on('pong'));
    client.socket.send(`{"method":"ping"${' '.repeat(200_000)}`);
    expect((await client.take(on('error'))).data).to.match(/^Error parsing JSON/);
    await client.close();
  });

  it('are refused as queries, over either transport', async () => {
    const { url } = await suite.start();
    const query = { type: 'meta', padding: 'x'.repeat(16 * 1024) };
    const answer = await post(`${url}/info`, query);
    expect([answer.status, answer.type]).to.deep.equal([413, 'text/plain; charset=utf-8']);
    const client = await connectWs(url);
    expect(await client.post('info', query)).to.have.property('type', 'error');
    await client.close();
  });

  it('beyond every limit get their answer, and the connection goes on', async () => {
    const { url } = await suite.start();
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number.parseInt(port, 10) });
    await once(socket, 'connect');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    const head = (length: number): string =>
      `POST /exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    const length = 8 * 1024 * 1024;
    socket.write(head(length));
    // As clients do that read nothing before they have sent everything.
    await new Promise((resolve) => socket.write(Buffer.alloc(length, ' '), resolve));
    socket.write(`${head(2)}{}`);
    while (!/ 422 /.test(text)) await once(socket, 'data');
    expect(text).to.match(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });
});
