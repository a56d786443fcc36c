/** What one endpoint says of transactions and contracts, held against what others say. */
import { expect } from 'chai';
import { pino } from 'pino';
import type { Address, Hex } from '../../../core/types.js';
import { createBaseFees } from '../../../keepers/chain/base-fees.js';
import { createNonceWatch } from '../../../keepers/chain/nonces.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { mayPost } from '../../../keepers/chain/quorum.js';
import { readReceipts } from '../../../keepers/chain/receipts.js';
import { RpcContradictionError, RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { createOwnerWatch } from '../../../keepers/poster/owner-state.js';
import { simulate } from '../../../keepers/executor/simulate.js';
import { callsAt, codeAt, createHeadReader } from '../../../liquidity/eth.js';
import { Interface } from 'ethers';

const HASH: Hex = `0x${'ab'.repeat(32)}`;
const SETTLER: Address = `0x${'aa'.repeat(20)}`;
const receiptOf = (status: Hex) => ({
  ...{ transactionHash: HASH, status, blockNumber: '0x1', gasUsed: '0x52ab' },
  effectiveGasPrice: '0x1',
});
/** The same in upper-case hex. */
const inCapitals = (receipt: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(receipt).map(([key, hex]) => [key, `0x${hex.slice(2).toUpperCase()}`]));
const REFUSED = new Interface(['error InvalidSigner()']).encodeErrorResult('InvalidSigner', []);
const FILLED = `0x${'1'.padStart(64, '0')}${'2'.padStart(64, '0')}`;

/** Endpoints of which each answers every request with its word; null for one that is down. */
function poolOf(words: unknown[]) {
  const connect = (url: string): Rpc => {
    const word = words[Number(url)];
    const call = (method: string): Promise<unknown> => {
      if (method === 'eth_blockNumber') return Promise.resolve('0x7');
      if (word === 'down') return Promise.reject(new RpcUnavailableError('down'));
      if (word === REFUSED) return Promise.reject(new RpcResponseError(method, 3, 'execution reverted', REFUSED));
      return Promise.resolve(method === 'eth_estimateGas' ? '0x5208' : word);
    };
    return { name: url, call, batch: (requests) => Promise.all(requests.map(({ method }) => call(method))) };
  };
  const urls = words.map((_, i) => `${i}`);
  return createRpcPool(urls, { nowMs: () => 0, logger: pino({ level: 'silent' }), connect });
}

/** Endpoints that answer by method. */
function poolBy(answer: (method: string, url: string) => unknown, count = 1) {
  const connect = (url: string): Rpc => {
    const call = (method: string): Promise<unknown> => Promise.resolve(answer(method, url));
    return { name: url, call, batch: (requests) => Promise.all(requests.map(({ method }) => call(method))) };
  };
  const urls = Array.from({ length: count }, (_, i) => `${i}`);
  return createRpcPool(urls, { nowMs: () => 0, logger: pino({ level: 'silent' }), connect });
}

describe('the word of one endpoint', () => {
  for (const [what, words, expected] of [
    ['of one alone', [receiptOf('0x0')], '0x0'],
    ['while the others are down', [receiptOf('0x0'), 'down', 'down'], '0x0'],
    ['that another one confirms', [receiptOf('0x0'), receiptOf('0x0')], '0x0'],
    ['in whose letter case the other one does not write', [receiptOf('0x0'), inCapitals(receiptOf('0x0'))], '0x0'],
    ['that most contradict', [receiptOf('0x0'), receiptOf('0x1'), receiptOf('0x1')], '0x1'],
    ['that the other one contradicts', [receiptOf('0x0'), receiptOf('0x1')], null],
    ['that the other one does not know', [receiptOf('0x0'), null], null],
    ['that most do not know', [receiptOf('0x0'), null, null], null],
  ] as const) {
    it(`makes a receipt ${what}: ${String(expected)}`, async () => {
      const [receipt] = await readReceipts(poolOf([...words]), [HASH]);
      expect(receipt?.status ?? null).to.equal(expected);
    });
  }

  const headAt = (number: number) => ({
    ...{ number: `0x${number.toString(16)}`, hash: HASH, timestamp: '0x64', baseFeePerGas: '0x7' },
  });
  for (const [what, numbers, expected] of [
    ['of one alone', [1_000], 1_000],
    ['far ahead of most', [1_000, 10, 10], 10],
    ['far behind most', [1, 90, 91], 90],
    ['far ahead of the other one, which prices can be read at', [1_000, 10], 10],
    ['that another one is a block short of', [11, 10, 11], 11],
  ] as const) {
    it(`makes a head ${what}: ${expected}`, async () => {
      const heads = createHeadReader(poolOf(numbers.map(headAt)));
      expect((await heads.head()).number).to.equal(expected);
    });
  }

  it('moves a head on by a few blocks, and no further unless others have come as far', async () => {
    const [first, second, third] = [headAt(10), headAt(10), headAt(10)];
    const heads = createHeadReader(poolOf([first, second, third]));
    await heads.head();
    first.number = '0xc';
    expect((await heads.head()).number).to.equal(12);
    first.number = '0x400';
    expect((await heads.head()).number).to.equal(10);
    for (const one of [first, second, third]) one.number = '0x401';
    expect((await heads.head()).number).to.equal(0x401);
  });

  it('takes the base fee of a head from most endpoints, and never walks away step by step', async () => {
    const [liar, second, third] = [headAt(10), headAt(10), headAt(10)];
    liar.baseFeePerGas = '0xe8d4a51000';
    const heads = createHeadReader(poolOf([liar, second, third]));
    expect((await heads.head()).baseFeeWei).to.equal(7n);
    const walking = { ...headAt(10), baseFeePerGas: '0x64' };
    const honest = () => ({ ...headAt(10), baseFeePerGas: '0x64' });
    const walked = createHeadReader(poolOf([walking, honest(), honest()]));
    for (let wei = 100; wei < 10_000; wei = Math.floor(wei * 1.9)) {
      walking.baseFeePerGas = `0x${wei.toString(16)}`;
      expect(Number((await walked.head()).baseFeeWei)).to.be.at.most(200);
    }
  });

  it('asks the others for the head again after nothing could be read at one', async () => {
    const [first, second, third] = [headAt(10), headAt(10), headAt(10)];
    const heads = createHeadReader(poolOf([first, second, third]));
    await heads.head();
    first.number = '0xe';
    const ahead = await heads.head();
    expect(ahead.number).to.equal(14);
    const failing = heads.at(ahead, 'curve', () =>
      Promise.reject(new RpcResponseError('eth_call', -1, 'no block', null)),
    );
    expect(await failing.catch(() => 'failed')).to.equal('failed');
    expect((await heads.head()).number).to.equal(10);
  });

  it('does not walk the base fee away step by step', async () => {
    const liar = { baseFeePerGas: '0x64' };
    const honest = { baseFeePerGas: '0x64' };
    const fees = createBaseFees(poolOf([liar, honest, honest]), () => 0);
    for (let wei = 100; wei < 10_000; wei = Math.floor(wei * 1.9)) {
      liar.baseFeePerGas = `0x${wei.toString(16)}`;
      expect(Number(await fees.read())).to.be.at.most(200);
    }
  });

  it('ends no order that others would execute', async () => {
    const run = (words: unknown[]) => simulate(poolOf(words), SETTLER, SETTLER, '0x').catch((error: unknown) => error);
    expect(await run([REFUSED])).to.have.nested.property('refusal.code', 'INVALID_SIGNATURE');
    expect(await run([REFUSED, REFUSED, FILLED])).to.have.nested.property('refusal.isFinal', true);
    expect(await run([REFUSED, FILLED, FILLED])).to.include({ ok: true, inUnits: 1n, outUnits: 2n });
    expect(await run([REFUSED, FILLED])).to.be.instanceOf(RpcContradictionError);
  });

  it('is passed over when it is empty for a contract, in the same step', async () => {
    const head = { number: 7, hash: HASH, timestampSec: 0, baseFeeWei: 0n };
    const pool = poolOf(['0x', FILLED]);
    expect(await callsAt(pool, head, [{ to: SETTLER, data: '0x' }])).to.deep.equal([FILLED]);
    expect(pool.health()[0]).to.include({ healthy: false, failures: 1 });
  });

  for (const nonsense of [null, '0x', 7, {}, 'zero', `0x${'f'.repeat(300)}`]) {
    it(`is passed over in the same step when it is nonsense, such as ${JSON.stringify(nonsense).slice(0, 12)}, whoever asked`, async () => {
      const answers: Record<string, unknown> = {
        eth_getBlockByNumber: headAt(10),
        eth_call: `0x${'1'.padStart(64, '0')}`,
        eth_getLogs: [],
        eth_getTransactionCount: '0x3',
        eth_getCode: '0x6000',
        eth_blockNumber: '0xa',
      };
      const asked: Record<string, (pool: ReturnType<typeof poolBy>) => Promise<unknown>> = {
        'a head': (pool) => createHeadReader(pool).head(),
        'a base fee': (pool) => createBaseFees(pool, () => 0).read(),
        'a key': (pool) => mayPost(pool, SETTLER, SETTLER),
        "an owner's events": (pool) => createOwnerWatch({ rpc: pool, curveBook: SETTLER, signer: SETTLER }).read(1, []),
        nonces: (pool) =>
          createNonceWatch({
            ...{ rpc: pool, signer: SETTLER, provenBlock: () => Promise.resolve(null), monotonicMs: () => 0 },
            logger: pino({ level: 'silent' }),
          }).used({ last: 2, lastFinished: 2 }),
        code: (pool) => codeAt(pool, SETTLER),
      };
      for (const [what, ask] of Object.entries(asked)) {
        const honest = await ask(poolBy((method) => answers[method]));
        const pool = poolBy((method, url) => (url === '0' ? nonsense : answers[method]), 2);
        // What is hex is code, and no bit of it says that it is not.
        if (what === 'code' && typeof nonsense === 'string' && nonsense.startsWith('0x')) continue;
        expect(await ask(pool), what).to.deep.equal(honest);
      }
    });
  }

  it('is passed over when a simulation can not be read', async () => {
    const pool = poolOf(['0x', FILLED]);
    expect(await simulate(pool, SETTLER, SETTLER, '0x')).to.include({ ok: true, outUnits: 2n });
    expect(pool.health()[0]?.counts.contradiction).to.equal(1);
  });
});
