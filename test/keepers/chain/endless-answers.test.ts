/** Endpoints whose answers have no end, or come a byte at a time: the same poll goes on with the next one, and no memory is filled. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Interface } from 'ethers';
import { pino } from 'pino';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import {
  createRpc,
  RpcAnswerTooLargeError,
  RpcCallTooLargeError,
  RpcResponseError,
  RpcUnavailableError,
  type Rpc,
} from '../../../keepers/chain/rpc.js';
import { simulate } from '../../../keepers/executor/simulate.js';
import { readReceipts } from '../../../keepers/watcher/scan/receipts.js';
import { parseHeader } from '../../../keepers/watcher/scan/headers.js';
import type { Address, Hex } from '../../../core/types.js';
import { isFailedCall } from '../../../liquidity/eth.js';
import { createSite, type Site } from '../../support/archive.js';
import { forOneDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';
import { sealBlock } from '../../support/nodes/real-blocks.js';

const MIB = 2 ** 20;
const LOT = 10n ** 14n;

type Manner = 'endless' | 'drip' | 'brackets';

interface Question {
  id: number;
  method: string;
  params: unknown[];
}

/** A node in front of a chain in memory, which answers one method in a manner of its own. */
async function startNode(behind: Rpc) {
  const state = { method: 'none', manner: 'endless' as Manner, asked: 0, sentBytes: 0 };

  async function badly(response: ServerResponse): Promise<void> {
    state.asked += 1;
    const part = Buffer.alloc(64 * 1_024, state.manner === 'brackets' ? '[' : ' ');
    if (state.manner === 'brackets') return void response.end(Buffer.concat(Array<Buffer>(48).fill(part)));
    const closed = once(response, 'close');
    while (response.writable && !response.destroyed) {
      const bytes = state.manner === 'drip' ? Buffer.from(' ') : part;
      state.sentBytes += bytes.length;
      const isTaken = response.write(bytes);
      if (state.manner === 'drip') await sleep(1_000, undefined, { ref: false });
      else if (!isTaken) await Promise.race([once(response, 'drain'), closed]);
    }
  }

  async function answer({ id, method, params }: Question): Promise<object> {
    try {
      return { jsonrpc: '2.0', id, result: await behind.call(method, params) };
    } catch (error) {
      if (!(error instanceof RpcResponseError)) throw error;
      const message = error.message.replace(`${method}: `, '').replace('eth_call: ', '');
      return { jsonrpc: '2.0', id, error: { code: error.code, message, data: error.data } };
    }
  }

  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Question | Question[];
      response.setHeader('content-type', 'application/json');
      if ([body].flat().some(({ method }) => method === state.method)) return void badly(response);
      void (Array.isArray(body) ? Promise.all(body.map(answer)) : answer(body)).then(
        (said) => response.end(JSON.stringify(said)),
        () => response.destroy(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    state,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** On a machine with much else to do, megabytes take longer than an endpoint has. */
const PATIENCE_MS = 30_000;

type Node = Awaited<ReturnType<typeof startNode>>;

forOneDatabase((name, open) => {
  describe(`endpoints whose answers do not end, ${name}`, function () {
    this.timeout(60_000);
    let site: Site;
    let node: Node;
    let stack: KeeperStack;
    let pool: RpcPool;
    /** Of the node after each scan: on a slow machine one is over before the next. */
    let problems: (string | null)[];

    beforeEach(async () => {
      site = createSite();
      node = await startNode(site.chain.rpc);
    });

    afterEach(async () => {
      await stack.stop();
      node.close();
      site.close();
    });

    /** The node among two that are honest. */
    async function start(place: 'first' | 'second', timeoutMs = PATIENCE_MS): Promise<void> {
      const rest = ['b', 'c'];
      pool = createRpcPool(place === 'first' ? ['node', ...rest] : ['b', 'node', 'c'], {
        nowMs: () => performance.now(),
        logger: pino({ level: 'silent' }),
        connect: (one) => (one === 'node' ? createRpc(node.url, timeoutMs) : { ...site.chain.rpc, name: one }),
      });
      stack = await site.start(await open(), { watcher: { rpc: pool } });
      await site.mine();
      await site.fund();
      await site.mine();
      await stack.watcher.scan();
      await stack.order(site.chain.address('maker1'), [{ side: 'ask', priceTicks: 250_005n, sizeLots: 4_000n }]);
      await stack.poster.round();
      await site.mine();
    }

    /** A fill, and one poll, or as many as a range that was halved takes: booked up to the head. */
    async function poll(scans = 1): Promise<number> {
      await site.swap(true, LOT * 10n);
      await site.mine();
      const from = performance.now();
      problems = [];
      for (let i = 0; i < scans; i += 1) {
        await stack.watcher.scan();
        problems.push(health().problem);
      }
      const status = stack.watcher.status();
      expect(status.halt).to.equal(null);
      expect(status.nextBlock - 1, 'the head').to.equal(await site.headBlock());
      return performance.now() - from;
    }

    const health = () => pool.health().find(({ name: one }) => one === new URL(node.url).host)!;

    for (const [manner, method] of [
      ['endless', 'eth_getBlockReceipts'],
      ['endless', 'eth_getBlockByNumber'],
      ['brackets', 'eth_getBlockReceipts'],
    ] as const) {
      it(`${manner} in ${method}: the poll goes on with the next, and the endpoint is passed over`, async () => {
        await start('first');
        await poll();
        Object.assign(node.state, { manner, method });
        await poll();
        expect(node.state.asked).to.be.greaterThan(0);
        expect(health().problem).to.match(/RPC_ANSWER_TOO_LARGE/);
        expect(health().counts.contradiction).to.equal(1);
        // What is under way when the connection closes comes on top.
        expect(node.state.sentBytes).to.be.lessThan(160 * MIB);
      });
    }

    it('endless in eth_getLogs: a range is halved, a single block is not believed', async () => {
      await start('first');
      await poll();
      Object.assign(node.state, { manner: 'endless', method: 'eth_getLogs' });
      await site.mine(3);
      await poll(3);
      expect(problems.join('\n')).to.match(/refused blocks .*RPC_ANSWER_TOO_LARGE/);
      expect(health().counts).to.include({ contradiction: 0 });
      expect(health().counts.silent).to.be.greaterThan(0);
      await sleep(1_100);
      await poll();
      expect(problems.join('\n')).to.match(/RPC_ANSWER_TOO_LARGE/);
      expect(health().counts).to.include({ contradiction: 1 });
      // Whoever is asked next is asked for longer ranges again.
      await site.mine(20);
      await poll(4);
    });

    it('a byte a second: the poll goes on with the next after the time of one request', async () => {
      await start('first', 700);
      await poll();
      Object.assign(node.state, { manner: 'drip', method: 'eth_getBlockReceipts' });
      expect(await poll()).to.be.within(650, 5_000);
      expect(health().counts.silent).to.equal(1);
    });

    it('a byte a second, of a second opinion: it is waited for once, not in every poll', async () => {
      await start('second', 700);
      await poll();
      Object.assign(node.state, { manner: 'drip', method: 'eth_getLogs' });
      const fromMs = performance.now();
      for (let i = 0; i < 6; i += 1) await poll();
      // After 2 s it is asked again, then after 4, and so on.
      const most = 1 + Math.log2(1 + (performance.now() - fromMs) / 2_000);
      expect(node.state.asked, `of six; ${most} at most`).to.be.within(1, Math.min(most, 5));
    });
  });
});

describe('an answer of an endpoint', () => {
  const chain = { call: () => Promise.resolve('0x1'), batch: () => Promise.resolve([]), name: 'behind' };
  let node: Node;

  beforeEach(async () => {
    node = await startNode(chain);
  });
  afterEach(() => node.close());

  it('is as long as those of its method can be, and one that is longer is an error with a code', async () => {
    for (const [method, maxBytes] of [
      ['eth_chainId', 65_536],
      ['eth_getTransactionReceipt', 16 * MIB],
    ] as const) {
      Object.assign(node.state, { method, manner: 'endless', sentBytes: 0 });
      const error = await createRpc(node.url)
        .call(method)
        .catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(RpcAnswerTooLargeError).and.instanceOf(RpcUnavailableError);
      expect(error).to.include({ code: 'RPC_ANSWER_TOO_LARGE' });
      expect((error as Error).message).to.match(new RegExp(`answered more than ${maxBytes} bytes`));
    }
  });

  describe('to a call', () => {
    const GAS = 2_000_000;
    const call = [{ to: `0x${'aa'.repeat(20)}`, gas: `0x${GAS.toString(16)}` }, 'latest'];
    // Error(string) of a contract whose owner likes commas; the reason stands in the message, too, as go-ethereum writes it.
    // Encoded once: it takes as long as the pool waits for an answer on a busy machine.
    const reverts = (reason: string) => {
      const data = new Interface(['function Error(string)']).encodeFunctionData('Error', [reason]);
      return () => Promise.reject(new RpcResponseError('eth_call', 3, `execution reverted: ${reason}`, data));
    };

    async function withNodes<T>(
      answers: readonly (Rpc['call'] | 'endless')[],
      use: (pool: RpcPool) => Promise<T>,
    ): Promise<T> {
      const nodes = await Promise.all(
        answers.map((answer) =>
          startNode({
            ...chain,
            call: (method, params) =>
              answer === 'endless' || !['eth_call', 'eth_estimateGas'].includes(method)
                ? Promise.resolve('0x1')
                : answer(method, params),
          }),
        ),
      );
      answers.forEach((answer, i) => answer === 'endless' && Object.assign(nodes[i]!.state, { method: 'eth_call' }));
      const pool = createRpcPool(
        nodes.map(({ url }) => url),
        { nowMs: () => performance.now(), logger: pino({ level: 'silent' }) },
      );
      try {
        return await use(pool);
      } finally {
        nodes.forEach((one) => one.close());
      }
    }

    for (const [what, reason] of [
      ['100,000 commas', ','.repeat(100_000)],
      ['quotes, backslashes and brackets', '\\",[{'.repeat(60_000)],
      ['what takes six bytes each, as much as its gas pays for', '\x01'.repeat(980_000)],
    ] as const)
      it(`is a call that fails where its reason is ${what}, and nobody is blamed`, async () => {
        const answer = reverts(reason);
        await withNodes([answer, answer], async (pool) => {
          const ask = pool.attempt((one) => one.call('eth_call', call));
          const error = await ask.catch((thrown: unknown) => thrown);
          expect(error).to.be.instanceOf(RpcResponseError).and.include({ code: 3 });
          expect(isFailedCall(error)).to.equal(true);
          await pool.survey((one) => one.call('eth_call', call)).catch(() => []);
          for (const { counts } of pool.health()) expect(counts).to.include({ contradiction: 0, silent: 0 });
        });
      });

    it('without an end is held against nobody, unless another one answers', async () => {
      const ask = (pool: RpcPool) =>
        pool.attempt((one) => one.call('eth_call', call)).catch((thrown: unknown) => thrown);
      await withNodes(['endless', 'endless'], async (pool) => {
        const error = await ask(pool);
        expect(error).to.be.instanceOf(RpcCallTooLargeError);
        expect(isFailedCall(error)).to.equal(false);
        for (const { counts } of pool.health()) expect(counts).to.include({ contradiction: 0, silent: 0 });
      });
      await withNodes(['endless', () => Promise.resolve('0x5afe')], async (pool) => {
        expect(await ask(pool)).to.equal('0x5afe');
        expect(pool.health().map(({ counts }) => counts.silent)).to.deep.equal([1, 0]);
      });
    });

    it('is as long as its gas pays for', async () => {
      Object.assign(node.state, { method: 'eth_call', manner: 'endless', sentBytes: 0 });
      const error = await createRpc(node.url)
        .call('eth_call', call)
        .catch((thrown: unknown) => thrown);
      // 2,000,000 gas pay for 31,240 words of memory.
      expect((error as Error).message).to.match(/RPC_ANSWER_TOO_LARGE: the answer has more than 100\d{5} bytes/);
    });

    it('is no way to have a liar vote alone: an order that others execute stays valid', async () => {
      const settler: Address = `0x${'bb'.repeat(20)}`;
      const filled = `0x${'1'.padStart(64, '0')}${'2'.padStart(64, '0')}`;
      const commas = reverts(','.repeat(100_000));
      const refused = new Interface(['error InvalidSigner()']).encodeErrorResult('InvalidSigner', []);
      let isPoisoned = true;
      const honest: Rpc['call'] = (method) =>
        isPoisoned ? commas() : Promise.resolve(method === 'eth_estimateGas' ? '0x5208' : filled);
      const lies: Rpc['call'] = (method) =>
        Promise.reject(new RpcResponseError(method, 3, 'execution reverted', refused));
      await withNodes([honest, honest, lies], async (pool) => {
        await pool.attempt((one) => one.call('eth_call', call)).catch(() => undefined);
        await pool.survey((one) => one.call('eth_call', call)).catch(() => []);
        isPoisoned = false;
        const own = await simulate(pool, settler, settler, '0x');
        expect(own).to.include({ ok: true, outUnits: 2n });
        // Whatever has the honest ones rest, they have a vote where a refusal is final.
        for (const one of pool.endpoints.slice(0, 2)) pool.penalize('whatever', one);
        expect(await simulate(pool, settler, settler, '0x')).to.include({ ok: true, outUnits: 2n });
      });
    });
  });

  it('has all receipts of a busy block, and of the fullest that its gas pays for', async () => {
    const hash = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`;
    const busy = (transactions: number, logs: number, gasUsed: bigint, isEmpty = false) =>
      sealBlock({
        ...{ number: 1, parentHash: hash(0), timestampSec: 0, gasUsed },
        transactions: Array.from({ length: transactions }, (_, i) => ({
          hash: hash(i + 1),
          logs: Array.from({ length: logs }, (__, j) => ({
            address: `0x${'ab'.repeat(20)}` as const,
            topics: isEmpty ? [] : [hash(j), hash(i), hash(7)],
            data: (isEmpty ? '0x' : `0x${'00'.repeat(96)}`) satisfies Hex,
          })),
        })),
      });
    for (const [what, block] of [
      ['400 transactions with 10 logs each', busy(400, 10, 150_000n)],
      // 375 gas for each log and 21,000 for each transaction, less the fifth that may be refunded.
      ['20 MiB of empty logs', busy(30, 2_000, ((2_000n * 379n + 21_000n) * 4n) / 5n, true)],
    ] as const) {
      const real: Rpc = {
        name: 'real',
        call: () => Promise.resolve(block.receipts),
        batch: () => Promise.resolve([block.receipts]),
      };
      const open = await startNode(real);
      try {
        const [answer] = await readReceipts(createRpc(open.url, PATIENCE_MS), [parseHeader(block.header)!], []);
        expect(answer!.isProven, what).to.equal(true);
      } finally {
        open.close();
      }
    }
  });
});
