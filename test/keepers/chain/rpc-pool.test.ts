import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { pino } from 'pino';
import type { Hex } from '../../../core/types.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import {
  createRpc,
  RpcContradictionError,
  RpcResponseError,
  RpcUnavailableError,
  toQuantity,
  type Rpc,
} from '../../../keepers/chain/rpc.js';
import { confirmMismatch } from '../../../keepers/watcher/scan/canonical.js';

/** An endpoint that answers what the test says. */
interface FakeEndpoint {
  head: number;
  chainId: number;
  down: boolean;
  /** Hash of every block; null for an endpoint that lacks it. */
  hash: Hex | null;
  asked: number;
  /** What it answers to every other question. */
  refusal?: RpcResponseError;
  /** What its answers take, by the pool's clock. */
  lateMs?: number;
}

const HASH_A: Hex = `0x${'aa'.repeat(32)}`;
const HASH_B: Hex = `0x${'bb'.repeat(32)}`;

describe('RPC pool', () => {
  let endpoints: FakeEndpoint[];
  let nowMs: number;

  function connect(url: string): Rpc {
    const one = endpoints[Number(url)]!;
    async function call(method: string, params: unknown[] = []): Promise<unknown> {
      one.asked += 1;
      if (method === 'which') nowMs += one.lateMs ?? 0;
      if (one.down) throw new RpcUnavailableError('down');
      if (method === 'eth_chainId') return toQuantity(one.chainId);
      if (method === 'eth_blockNumber') return toQuantity(one.head);
      if (method === 'eth_getBlockByNumber') {
        if (one.hash === null) return null;
        const rest = { parentHash: HASH_A, timestamp: '0x0', logsBloom: `0x${'00'.repeat(256)}`, transactions: [] };
        return { number: params[0], hash: one.hash, ...rest };
      }
      if (method === 'revert') throw new RpcResponseError(method, 3, 'execution reverted', '0x');
      if (one.refusal !== undefined) throw one.refusal;
      if (method === 'fail') throw new RpcResponseError(method, -32_000, 'no', undefined);
      return url;
    }
    return {
      name: url,
      call,
      batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))),
    };
  }

  function pool(count: number): RpcPool {
    endpoints = Array.from({ length: count }, () => ({
      head: 100,
      chainId: 8453,
      down: false,
      hash: HASH_A,
      asked: 0,
    }));
    nowMs = 0;
    const urls = endpoints.map((_, i) => String(i));
    return createRpcPool(urls, { nowMs: () => nowMs, logger: pino({ level: 'silent' }), chainId: 8453, connect });
  }

  it('uses the first endpoint, moves on when it is silent, and comes back after a pause', async () => {
    const rpc = pool(2);
    expect(await rpc.call('which')).to.equal('0');
    endpoints[0]!.down = true;
    expect(await rpc.call('which')).to.equal('1');
    expect(rpc.health()[0]).to.include({ healthy: false, failures: 1 });
    endpoints[0]!.down = false;
    expect(await rpc.call('which'), 'still paused').to.equal('1');
    nowMs = 500;
    expect(await rpc.call('which')).to.equal('0');
    expect(rpc.health()[0]).to.include({ healthy: true, failures: 0, problem: null });
  });

  it('pauses longer after each failure', async () => {
    const rpc = pool(2);
    endpoints[0]!.down = true;
    for (const [atMs, asked] of [
      [0, 1],
      [499, 1],
      [500, 2],
      [1_499, 2],
      [1_500, 3],
      [3_499, 3],
    ] as const) {
      nowMs = atMs;
      await rpc.call('which');
      expect(endpoints[0]!.asked, `${atMs} ms`).to.equal(asked);
    }
  });

  it('ranks its endpoints as it would ask them, and penalises the one that is named', async () => {
    const rpc = pool(3);
    const [first, second, third] = rpc.endpoints;
    expect(rpc.ranked()).to.deep.equal([first, second, third]);
    rpc.penalize('told a lie', second);
    expect(rpc.ranked()).to.deep.equal([first, third, second]);
    rpc.penalize('told another');
    expect(rpc.ranked()).to.deep.equal([third, first, second]);
    endpoints[1]!.chainId = 1;
    await rpc.probe();
    expect(rpc.ranked()).to.deep.equal([third, first]);
    expect(rpc.health().map(({ problem }) => problem)).to.deep.equal([
      'told another',
      'serves chain 1, not 8453',
      null,
    ]);
  });

  it('takes an error for an answer', async () => {
    const rpc = pool(2);
    const error = await rpc.call('fail').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(RpcResponseError);
    expect(endpoints[1]!.asked).to.equal(0);
  });

  for (const [code, message] of [
    [-32_005, 'daily request count exceeded, request rate limited'],
    [-32_603, 'internal error'],
    [-32_601, 'the method does not exist/is not available'],
    [429, 'compute units per second capacity exceeded'],
    [-32_000, 'unauthorized: bad API key'],
  ] as const) {
    it(`takes "${message}" for no answer: another endpoint is asked, and this one passed over`, async () => {
      const rpc = pool(3);
      endpoints[0]!.refusal = new RpcResponseError('which', code, message, undefined);
      expect(await rpc.call('which')).to.equal('1');
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([false, true, true]);
      expect(await rpc.call('which'), 'not asked again at once').to.equal('1');
      nowMs = 500;
      delete endpoints[0]!.refusal;
      expect(await rpc.call('which'), 'back when its pause is over').to.equal('0');
      // What all of them refuse is a question that none takes.
      for (const one of endpoints) one.refusal = new RpcResponseError('which', code, message, undefined);
      const error = await rpc.call('which').catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(RpcResponseError).and.have.property('code', code);
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true, true]);
    });
  }

  it('asks all of them before it gives up, paused ones included', async () => {
    const rpc = pool(3);
    for (const one of endpoints) one.down = true;
    for (let round = 1; round <= 2; round++) {
      const error = await rpc.call('which').catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(RpcUnavailableError);
      expect(endpoints.map((one) => one.asked)).to.deep.equal([round, round, round]);
    }
  });

  it('passes over an endpoint that lags, and over one of another chain', async () => {
    const rpc = pool(3);
    endpoints[0]!.chainId = 1;
    endpoints[1]!.head = 97;
    await rpc.probe();
    expect(await rpc.call('which')).to.equal('2');
    expect(rpc.health().map((one) => one.healthy)).to.deep.equal([false, false, true]);
    endpoints[1]!.head = 98;
    nowMs = 5_000;
    await rpc.probe();
    expect(await rpc.call('which')).to.equal('1');
    for (const one of endpoints.slice(1)) one.down = true;
    await rpc.call('which').catch(() => undefined);
    expect(rpc.health()[0]?.problem).to.equal('serves chain 1, not 8453');
  });

  it('passes over one that answers late while another one does not, for longer each time', async () => {
    const rpc = pool(3);
    const step = async () => {
      // Nothing else is under way while the answer takes its time.
      await rpc.probe();
      return rpc.attempt(async (one) => (await one.call('which')) as string);
    };
    endpoints[0]!.lateMs = 4_000;
    for (const pauseMs of [10_000, 20_000, 40_000]) {
      expect(await step()).to.equal('0');
      const untilMs = nowMs + pauseMs;
      for (nowMs of [nowMs, untilMs - 1]) expect(await step(), `${nowMs} ms`).to.equal('1');
      expect(rpc.health()[0]).to.include({ healthy: false, problem: 'answers late' });
      nowMs = untilMs;
    }
    // Where all are late, the order stays, and none is called unhealthy.
    for (const one of endpoints) one.lateMs = 2_000;
    for (const expected of ['0', '1', '2', '0']) expect(await step()).to.equal(expected);
    expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true, true]);
    for (const one of endpoints) one.lateMs = 1_999;
    nowMs += 300_000;
    expect(await step()).to.equal('0');
    endpoints[0]!.lateMs = 2_000;
    expect(await step(), 'a step in time makes up for those before').to.equal('0');
    expect(await step()).to.equal('1');
    nowMs += 10_000;
    expect(await step()).to.equal('0');
  });

  describe('one step on one endpoint', () => {
    const caught = (work: Promise<unknown>) => work.catch((thrown: unknown) => thrown);

    it('penalises the endpoint whose answers do not fit, and goes on with the next in the same step', async () => {
      const rpc = pool(3);
      const tried: string[] = [];
      const answer = await rpc.attempt(async (one) => {
        tried.push(one.name);
        expect(await one.call('which')).to.equal(one.name);
        if (one.name === '0') throw new RpcContradictionError('two histories');
        return one.name;
      });
      expect([answer, tried]).to.deep.equal(['1', ['0', '1']]);
      expect(rpc.health()[0]).to.include({ healthy: false, failures: 1, problem: 'two histories' });
      expect(rpc.health()[0]?.counts).to.deep.equal({ silent: 0, contradiction: 1, wrongChain: 0 });
      expect(await rpc.call('which')).to.equal('1');
    });

    it('penalises exactly that one while others answer at the same time', async () => {
      const rpc = pool(2);
      let fail: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (fail = resolve));
      const step = rpc.attempt(async (one) => {
        if (one.name === '1') return one.name;
        await held;
        throw new RpcContradictionError('invented');
      });
      endpoints[0]!.down = true;
      expect(await rpc.call('which'), 'the other one was in use last').to.equal('1');
      fail();
      expect(await step).to.equal('1');
      expect(rpc.health().map(({ counts }) => counts.contradiction)).to.deep.equal([1, 0]);
    });

    it('penalises another one that the error names, and asks the same again', async () => {
      const rpc = pool(2);
      let tries = 0;
      const answer = await rpc.attempt((one) => {
        tries += 1;
        if (tries === 1) throw new RpcContradictionError('it lacks a log', rpc.endpoints[1]);
        return Promise.resolve(one.name);
      });
      expect([answer, tries]).to.deep.equal(['0', 2]);
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, false]);
    });

    it('takes an answer that can not be read for one that can not be true', async () => {
      const rpc = pool(2);
      const answer = await rpc.attempt(async (one) => (one.name === '0' ? BigInt('nonsense') : one.call('which')));
      expect(answer).to.equal('1');
      expect(rpc.health()[0]?.counts.contradiction).to.equal(1);
    });

    it('goes on with the next one after an error that the work ends with, and passes over who refused what that one answers', async () => {
      const rpc = pool(3);
      const work = (one: Rpc) => (one.name === '2' ? one.call('which') : one.call('fail'));
      expect(await rpc.attempt(work)).to.equal('2');
      expect(rpc.health().map(({ healthy, problem }) => [healthy, problem])).to.deep.equal([
        [false, 'fail: no'],
        [false, 'fail: no'],
        [true, null],
      ]);
    });

    it('ends with a call that fails in a contract, at the first endpoint', async () => {
      const rpc = pool(2);
      const tried: string[] = [];
      const error = await caught(
        rpc.attempt((one) => {
          tried.push(one.name);
          return one.call('revert');
        }),
      );
      expect(error).to.have.property('code', 3);
      expect(tried).to.deep.equal(['0']);
    });

    it('ends with an error that all of them answer, and with one that is none of an endpoint', async () => {
      const rpc = pool(2);
      const tried: string[] = [];
      const failing = (one: Rpc) => {
        tried.push(one.name);
        return one.call('fail');
      };
      const ours = (one: Rpc) => {
        tried.push(one.name);
        return Promise.reject(new Error('ours'));
      };
      expect(await caught(rpc.attempt(failing))).to.be.instanceOf(RpcResponseError);
      expect(await caught(rpc.attempt(ours))).to.have.property('message', 'ours');
      expect(tried).to.deep.equal(['0', '1', '0']);
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true]);
    });

    it('gives up when all were tried, and says why', async () => {
      const rpc = pool(2);
      endpoints[1]!.down = true;
      const error = await caught(
        rpc.attempt(async (one) => {
          await one.call('which');
          throw new RpcContradictionError('invented');
        }),
      );
      expect(error).to.be.instanceOf(RpcUnavailableError);
      expect(rpc.health().map(({ counts }) => [counts.silent > 0, counts.contradiction])).to.deep.equal([
        [false, 1],
        [true, 0],
      ]);
    });

    it('does not forget by single answers that an endpoint lied, and rests it longer each time', async () => {
      const rpc = pool(2);
      const lie = (one: Rpc) =>
        one.name === '0' ? Promise.reject(new RpcContradictionError('invented')) : Promise.resolve('true');
      for (const [atMs, healthyAtMs] of [
        [0, 1_000],
        [1_000, 3_000],
        [3_000, 7_000],
      ] as const) {
        nowMs = atMs;
        expect(await rpc.attempt(lie)).to.equal('true');
        nowMs = healthyAtMs - 1;
        expect(await rpc.call('which'), `${nowMs} ms`).to.equal('1');
        nowMs = healthyAtMs;
        expect(await rpc.call('which'), `${nowMs} ms`).to.equal('0');
      }
      expect(await rpc.attempt((one) => Promise.resolve(one.name))).to.equal('0');
      expect(rpc.health()[0]).to.include({ failures: 0, problem: null });
    });
  });

  describe('the chain of an endpoint', () => {
    it('is asked before anything else, also when nobody probes', async () => {
      const rpc = pool(2);
      endpoints[0]!.chainId = 1;
      expect(await rpc.call('which')).to.equal('1');
      expect(endpoints[0]!.asked).to.equal(1);
      expect(await rpc.call('which')).to.equal('1');
      expect(endpoints[0]!.asked).to.equal(1);
      expect(rpc.health()[0]).to.include({ healthy: false, problem: 'serves chain 1, not 8453' });
      expect(rpc.endpoints.map(({ name }) => name)).to.deep.equal(['1']);
      expect(rpc.otherChains()).to.deep.equal([]);
    });

    it('leaves nothing to ask when it is another one', async () => {
      const rpc = pool(1);
      endpoints[0]!.chainId = 1;
      for (let request = 0; request < 3; request++) {
        const error = await rpc.call('eth_sendRawTransaction').catch((thrown: unknown) => thrown);
        expect(error).to.be.instanceOf(RpcUnavailableError);
      }
      expect(endpoints[0]!.asked, 'only the question').to.equal(1);
      expect(rpc.otherChains()).to.deep.equal([1]);
    });

    it('is asked again, so that one that changes is dropped, and one that comes back is used', async () => {
      const rpc = pool(2);
      expect(await rpc.call('which')).to.equal('0');
      endpoints[0]!.chainId = 1;
      nowMs = 59_999;
      expect(await rpc.call('which')).to.equal('0');
      nowMs = 60_000;
      expect(await rpc.call('which'), 'no answer of the other chain gets through').to.equal('1');
      endpoints[0]!.chainId = 8453;
      nowMs = 120_000;
      await rpc.probe();
      expect(await rpc.call('which')).to.equal('0');
      expect(rpc.health()[0]?.counts.wrongChain).to.equal(1);
    });

    it('is asked again after a failure', async () => {
      const rpc = pool(2);
      await rpc.call('which');
      endpoints[0]!.down = true;
      await rpc.call('which');
      Object.assign(endpoints[0]!, { down: false, chainId: 1 });
      nowMs = 500;
      expect(await rpc.call('which')).to.equal('1');
      expect(rpc.health()[0]?.problem).to.equal('serves chain 1, not 8453');
    });
  });

  describe('a head', () => {
    it('far ahead, of one endpoint, does not make the others lag', async () => {
      const rpc = pool(3);
      endpoints[2]!.head = 100_000;
      await rpc.probe();
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true, true]);
      expect(await rpc.call('which')).to.equal('0');
    });

    it('counts when the others stand still', async () => {
      const rpc = pool(3);
      await rpc.probe();
      for (nowMs = 5_000; nowMs <= 10_000; nowMs += 5_000) {
        endpoints[2]!.head += 3;
        await rpc.probe();
      }
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([false, false, true]);
      expect(await rpc.call('which')).to.equal('2');
    });

    it('of an endpoint that was caught is no measure until it was asked again', async () => {
      const rpc = pool(2);
      endpoints[1]!.head = 100_000;
      await rpc.probe();
      expect(await rpc.call('which'), 'of two, the further one').to.equal('1');
      rpc.penalize('it lacks block 100000', rpc.endpoints[1]);
      expect(await rpc.call('which')).to.equal('0');
      expect(rpc.health()[0]).to.include({ healthy: true, problem: null });
    });
  });

  describe('mismatch of a block', () => {
    const known = { number: 100, hash: HASH_A };
    const cases: [string, (Hex | null | 'down')[], Hex | null][] = [
      ['one endpoint has another hash', [HASH_B], HASH_B],
      ['one endpoint lacks the block', [null], null],
      ['one endpoint has it', [HASH_A], null],
      ['two of three have another hash', [HASH_B, HASH_A, HASH_B], HASH_B],
      ['one of three has another hash', [HASH_B, HASH_A, HASH_A], null],
      ['one of two has another hash', [HASH_B, HASH_A], null],
      ['one has another hash, two lack the block', [HASH_B, null, null], null],
      ['one has another hash, two are down', [HASH_B, 'down', 'down'], null],
      ['three of four have another hash', [HASH_B, HASH_B, HASH_B, HASH_A], HASH_B],
    ];
    for (const [what, answers, expected] of cases) {
      it(`is ${expected === null ? 'not ' : ''}confirmed when ${what}`, async () => {
        const rpc = pool(answers.length);
        answers.forEach((answer, i) => {
          if (answer === 'down') endpoints[i]!.down = true;
          else endpoints[i]!.hash = answer;
        });
        expect(await confirmMismatch(rpc.endpoints, known)).to.equal(expected);
      });
    }
  });
});

describe('an RPC endpoint', () => {
  it('gets name and password of its URL as a header, whatever characters they have', async () => {
    const asked: unknown[] = [];
    const server = createServer((request, response) => {
      asked.push([request.url, request.headers.authorization]);
      response.end('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const at = `127.0.0.1:${port}/v2?key=a`;
      for (const who of ['', 'me:pass@', 'm%40e:a%3Ab@', 'me:100%@'])
        expect(await createRpc(`http://${who}${at}`).call('eth_chainId')).to.equal('0x1');
    } finally {
      server.closeAllConnections();
      server.close();
    }
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    expect(asked).to.deep.equal(
      [undefined, basic('me:pass'), basic('m@e:a:b'), basic('me:100%')].map((header) => ['/v2?key=a', header]),
    );
  });

  describe('of a server', () => {
    let asked: string[];
    let answer: (path: string) => { status: number; headers?: Record<string, string> };
    let server: Server;
    let at: string;

    beforeEach(async () => {
      asked = [];
      server = createServer((request, response) => {
        asked.push(request.url!);
        const { status, headers = {} } = answer(request.url!);
        response.writeHead(status, headers).end('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });

    afterEach(() => {
      server.closeAllConnections();
      server.close();
    });

    for (const status of [301, 302, 307, 308]) {
      it(`that answers ${status} is not followed elsewhere, and passed over`, async () => {
        answer = (path) => (path === '/' ? { status, headers: { location: `${at}/other` } } : { status: 200 });
        const rpcs = createRpcPool([`${at}/`, `${at}/second`], {
          nowMs: () => 0,
          logger: pino({ level: 'silent' }),
        });
        expect(await rpcs.call('eth_chainId')).to.equal('0x1');
        expect(await rpcs.call('eth_chainId')).to.equal('0x1');
        expect(asked).to.deep.equal(['/', '/second', '/second']);
        expect(rpcs.health().map(({ healthy, failures }) => [healthy, failures])).to.deep.equal([
          [false, 1],
          [true, 0],
        ]);
        expect(rpcs.health()[0]!.problem).to.match(/redirect/);
      });
    }

    for (const [what, said, waitMs] of [
      ['7', () => '7', 7_000],
      ['0', () => '0', 0],
      ['86400', () => '86400', 30_000],
      ['a date in an hour', () => new Date(Date.now() + 3_600_000).toUTCString(), 30_000],
      ['a date long ago', () => 'Thu, 01 Jan 1970 00:00:00 GMT', 0],
      ['soon', () => 'soon', 0],
    ] as const) {
      it(`that is busy and says "${what}" gets no request for ${waitMs} ms`, async () => {
        let nowMs = 1_000;
        let isBusy = true;
        answer = () => (isBusy ? { status: 429, headers: { 'retry-after': said() } } : { status: 200 });
        const rpc = createRpc(at, 5_000, () => nowMs);
        const rpcs = createRpcPool(['one'], {
          nowMs: () => nowMs,
          logger: pino({ level: 'silent' }),
          connect: () => rpc,
        });
        await rpcs.call('eth_chainId').catch(() => undefined);
        isBusy = false;
        if (waitMs > 0) {
          nowMs += waitMs - 1;
          const error = await rpcs.call('eth_chainId').catch((thrown: unknown) => thrown);
          expect(error).to.be.an.instanceOf(RpcUnavailableError);
          expect(asked).to.have.length(1);
          expect(rpcs.health()[0]!.healthy).to.equal(false);
          nowMs += 1;
        }
        expect(await rpcs.call('eth_chainId')).to.equal('0x1');
        expect(asked).to.have.length(2);
      });
    }
  });
});
