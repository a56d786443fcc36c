import { expect } from 'chai';
import { pino } from 'pino';
import type { Address } from '../../../core/types.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { mayPost } from '../../../keepers/chain/quorum.js';
import { RpcContradictionError, RpcUnavailableError, toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { createOwnerWatch } from '../../../keepers/poster/owner-state.js';

const BOOK: Address = `0x${'bb'.repeat(20)}`;
const KEY: Address = `0x${'aa'.repeat(20)}`;

/** A pool whose endpoints answer so when asked for a key, `nothing` with no word at all; null for one that is down. */
function poolOf(answers: (boolean | 'nothing' | null)[]) {
  const connect = (url: string): Rpc => {
    const call = (method: string): Promise<unknown> => {
      const answer = answers[Number(url)] ?? null;
      if (answer === null) return Promise.reject(new RpcUnavailableError('down'));
      if (answer === 'nothing') return Promise.resolve('0x');
      return Promise.resolve(method === 'eth_getLogs' ? [] : toQuantity(answer ? 1 : 0));
    };
    return { name: url, call, batch: (requests) => Promise.all(requests.map(({ method }) => call(method))) };
  };
  const urls = answers.map((_, i) => `${i}`);
  return createRpcPool(urls, { nowMs: () => 0, logger: pino({ level: 'silent' }), connect });
}

describe('the key of a keeper', () => {
  for (const [answers, expected] of [
    [[true], true],
    [[false], false],
    [[false, true, true], true],
    [[false, false, true], false],
    [[false, null], false],
    [[false, true], 'doubt'],
    [['nothing', true], true],
    [['nothing', false, false], false],
  ] as const) {
    it(`${String(expected)} when endpoints say ${answers.join(', ')}`, async () => {
      const said = await mayPost(poolOf([...answers]), BOOK, KEY).catch((error: unknown) => error);
      if (expected === 'doubt') expect(said).to.be.instanceOf(RpcContradictionError);
      else expect(said).to.equal(expected);
    });
  }

  it('is asked for again after a no, though no event came since', async () => {
    const answers = [false];
    const watch = createOwnerWatch({ rpc: poolOf(answers), curveBook: BOOK, signer: KEY });
    expect((await watch.read(100, [])).isPoster).to.equal(false);
    answers[0] = true;
    expect((await watch.read(100, [])).isPoster).to.equal(true);
  });
});
