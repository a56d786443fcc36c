import { expect } from 'chai';
import type { Hex } from '../../../core/types.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { confirmMismatch, isConfirmed } from '../../../keepers/watcher/scan/canonical.js';
import { pooledEndpoints, HASH_A } from '../../support/nodes/pooled-endpoints.js';

const HASH_B: Hex = `0x${'bb'.repeat(32)}`;

describe('RPC pool', () => {
  const suite = pooledEndpoints();
  const { pool } = suite;

  it('uses the first endpoint, moves on when it is silent, and comes back after a pause', async () => {
    const rpc = pool(2);
    expect(await rpc.call('which')).to.equal('0');
    suite.endpoints[0]!.down = true;
    expect(await rpc.call('which')).to.equal('1');
    expect(rpc.health()[0]).to.include({ healthy: false, failures: 1 });
    suite.endpoints[0]!.down = false;
    expect(await rpc.call('which'), 'still paused').to.equal('1');
    suite.nowMs = 500;
    expect(await rpc.call('which')).to.equal('0');
    expect(rpc.health()[0]).to.include({ healthy: true, failures: 0, problem: null });
  });

  it('pauses longer after each failure', async () => {
    const rpc = pool(2);
    suite.endpoints[0]!.down = true;
    for (const [atMs, asked] of [
      [0, 1],
      [499, 1],
      [500, 2],
      [1_499, 2],
      [1_500, 3],
      [3_499, 3],
    ] as const) {
      suite.nowMs = atMs;
      await rpc.call('which');
      expect(suite.endpoints[0]!.asked, `${atMs} ms`).to.equal(asked);
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
    suite.endpoints[1]!.chainId = 1;
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
    expect(suite.endpoints[1]!.asked).to.equal(0);
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
      suite.endpoints[0]!.refusal = new RpcResponseError('which', code, message, undefined);
      expect(await rpc.call('which')).to.equal('1');
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([false, true, true]);
      expect(await rpc.call('which'), 'not asked again at once').to.equal('1');
      suite.nowMs = 500;
      delete suite.endpoints[0]!.refusal;
      expect(await rpc.call('which'), 'back when its pause is over').to.equal('0');
      // What all of them refuse is a question that none takes.
      for (const one of suite.endpoints) one.refusal = new RpcResponseError('which', code, message, undefined);
      const error = await rpc.call('which').catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(RpcResponseError).and.have.property('code', code);
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true, true]);
    });
  }

  it('asks all of them before it gives up, paused ones included', async () => {
    const rpc = pool(3);
    for (const one of suite.endpoints) one.down = true;
    for (let round = 1; round <= 2; round++) {
      const error = await rpc.call('which').catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(RpcUnavailableError);
      expect(suite.endpoints.map((one) => one.asked)).to.deep.equal([round, round, round]);
    }
  });

  it('passes over an endpoint that lags, and over one of another chain', async () => {
    const rpc = pool(3);
    suite.endpoints[0]!.chainId = 1;
    suite.endpoints[1]!.head = 97;
    await rpc.probe();
    expect(await rpc.call('which')).to.equal('2');
    expect(rpc.health().map((one) => one.healthy)).to.deep.equal([false, false, true]);
    suite.endpoints[1]!.head = 98;
    suite.nowMs = 5_000;
    await rpc.probe();
    expect(await rpc.call('which')).to.equal('1');
    for (const one of suite.endpoints.slice(1)) one.down = true;
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
    suite.endpoints[0]!.lateMs = 4_000;
    for (const pauseMs of [10_000, 20_000, 40_000]) {
      expect(await step()).to.equal('0');
      const untilMs = suite.nowMs + pauseMs;
      for (suite.nowMs of [suite.nowMs, untilMs - 1]) expect(await step(), `${suite.nowMs} ms`).to.equal('1');
      expect(rpc.health()[0]).to.include({ healthy: false, problem: 'answers late' });
      suite.nowMs = untilMs;
    }
    // Where all are late, the order stays, and none is called unhealthy.
    for (const one of suite.endpoints) one.lateMs = 2_000;
    for (const expected of ['0', '1', '2', '0']) expect(await step()).to.equal(expected);
    expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true, true]);
    for (const one of suite.endpoints) one.lateMs = 1_999;
    suite.nowMs += 300_000;
    expect(await step()).to.equal('0');
    suite.endpoints[0]!.lateMs = 2_000;
    expect(await step(), 'a step in time makes up for those before').to.equal('0');
    expect(await step()).to.equal('1');
    suite.nowMs += 10_000;
    expect(await step()).to.equal('0');
  });

  /** As many questions, one after the other, as a look of the watcher has. */
  async function look(rpc: ReturnType<typeof pool>): Promise<{ by: string; tookMs: number }> {
    const fromMs = suite.nowMs;
    await rpc.probe();
    const by = await rpc.attempt(async (one) => {
      for (let i = 0; i < 6; i += 1) await one.call('which');
      return one.name;
    });
    return { by, tookMs: suite.nowMs - fromMs };
  }

  for (const lateMs of [500, 850, 1_900]) {
    it(`passes over one whose answers of ${lateMs} ms add up in a step, for as long as it is slow`, async () => {
      const rpc = pool(3);
      suite.endpoints[0]!.lateMs = lateMs;
      suite.endpoints[0]!.probeLateMs = lateMs;
      expect((await look(rpc)).by, 'nothing is known of it').to.equal('0');
      expect(rpc.health()[0]).to.include({ healthy: false, problem: 'answers late' });
      for (const untilMs = suite.nowMs + 600_000; suite.nowMs < untilMs; suite.nowMs += 1_000) {
        const { by, tookMs } = await look(rpc);
        expect(by, `${suite.nowMs} ms`).to.equal('1');
        expect(tookMs).to.be.at.most(lateMs);
      }
      // Nobody else may be left.
      for (const one of suite.endpoints.slice(1)) one.down = true;
      expect((await look(rpc)).by).to.equal('0');
      for (const one of suite.endpoints.slice(1)) one.down = false;
      suite.nowMs += 300_000;
      expect((await look(rpc)).by, 'still as slow').to.equal('1');
      suite.endpoints[0]!.lateMs = suite.endpoints[0]!.probeLateMs = 20;
      suite.nowMs += 300_000;
      expect((await look(rpc)).by).to.equal('0');
      expect(rpc.health()[0]).to.include({ healthy: true, problem: null });
    });
  }

  it('counts in a step only what its own endpoint takes', async () => {
    const rpc = pool(2);
    suite.endpoints[0]!.lateMs = 450;
    expect((await look(rpc)).by).to.equal('0');
    suite.endpoints[1]!.lateMs = 1_900;
    const step = async (): Promise<string> =>
      rpc.attempt(async (one) => {
        for (let i = 0; i < 3; i += 1) await one.batch([{ method: 'which', params: [] }]);
        for (let i = 0; i < 3; i += 1) await rpc.endpoints[1]!.call('which');
        return one.name;
      });
    for (let i = 0; i < 3; i += 1) expect(await step()).to.equal('0');
  });

  describe('the chain of an endpoint', () => {
    it('is asked before anything else, also when nobody probes', async () => {
      const rpc = pool(2);
      suite.endpoints[0]!.chainId = 1;
      expect(await rpc.call('which')).to.equal('1');
      expect(suite.endpoints[0]!.asked).to.equal(1);
      expect(await rpc.call('which')).to.equal('1');
      expect(suite.endpoints[0]!.asked).to.equal(1);
      expect(rpc.health()[0]).to.include({ healthy: false, problem: 'serves chain 1, not 8453' });
      expect(rpc.endpoints.map(({ name }) => name)).to.deep.equal(['1']);
      expect(rpc.otherChains()).to.deep.equal([]);
    });

    it('leaves nothing to ask when it is another one', async () => {
      const rpc = pool(1);
      suite.endpoints[0]!.chainId = 1;
      for (let request = 0; request < 3; request++) {
        const error = await rpc.call('eth_sendRawTransaction').catch((thrown: unknown) => thrown);
        expect(error).to.be.instanceOf(RpcUnavailableError);
      }
      expect(suite.endpoints[0]!.asked, 'only the question').to.equal(1);
      expect(rpc.otherChains()).to.deep.equal([1]);
    });

    it('is asked again, so that one that changes is dropped, and one that comes back is used', async () => {
      const rpc = pool(2);
      expect(await rpc.call('which')).to.equal('0');
      suite.endpoints[0]!.chainId = 1;
      suite.nowMs = 59_999;
      expect(await rpc.call('which')).to.equal('0');
      suite.nowMs = 60_000;
      expect(await rpc.call('which'), 'no answer of the other chain gets through').to.equal('1');
      suite.endpoints[0]!.chainId = 8453;
      suite.nowMs = 120_000;
      await rpc.probe();
      expect(await rpc.call('which')).to.equal('0');
      expect(rpc.health()[0]?.counts.wrongChain).to.equal(1);
    });

    it('is asked again after a failure', async () => {
      const rpc = pool(2);
      await rpc.call('which');
      suite.endpoints[0]!.down = true;
      await rpc.call('which');
      Object.assign(suite.endpoints[0]!, { down: false, chainId: 1 });
      suite.nowMs = 500;
      expect(await rpc.call('which')).to.equal('1');
      expect(rpc.health()[0]?.problem).to.equal('serves chain 1, not 8453');
    });
  });

  describe('a head', () => {
    it('far ahead, of one endpoint, does not make the others lag', async () => {
      const rpc = pool(3);
      suite.endpoints[2]!.head = 100_000;
      await rpc.probe();
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([true, true, true]);
      expect(await rpc.call('which')).to.equal('0');
    });

    it('of one that is silent is waited for by whoever needs all of them alone', async () => {
      const rpc = pool(3);
      const speaks = Promise.withResolvers<void>();
      suite.endpoints[1]!.silentUntil = speaks.promise;
      suite.endpoints[2]!.head = 90;
      const all = rpc.probe();
      suite.nowMs = 5_000;
      await rpc.probe(false);
      expect(
        rpc.health().map(({ head }) => head),
        'as far as they answer',
      ).to.deep.equal([100, null, 90]);
      speaks.resolve();
      await all;
      expect(rpc.health().map(({ head }) => head)).to.deep.equal([100, 100, 90]);
    });

    it('counts when the others stand still', async () => {
      const rpc = pool(3);
      await rpc.probe();
      for (suite.nowMs = 5_000; suite.nowMs <= 10_000; suite.nowMs += 5_000) {
        suite.endpoints[2]!.head += 3;
        await rpc.probe();
      }
      expect(rpc.health().map((one) => one.healthy)).to.deep.equal([false, false, true]);
      expect(await rpc.call('which')).to.equal('2');
    });

    it('of an endpoint that was caught is no measure until it was asked again', async () => {
      const rpc = pool(2);
      suite.endpoints[1]!.head = 100_000;
      await rpc.probe();
      expect(await rpc.call('which'), 'of two, the further one').to.equal('1');
      rpc.penalize('it lacks block 100000', rpc.endpoints[1]);
      expect(await rpc.call('which')).to.equal('0');
      expect(rpc.health()[0]).to.include({ healthy: true, problem: null });
    });
  });

  it('does not wait for one that has just failed as if it were well, where the question is asked again', async () => {
    const rpc = pool(2);
    const speaks = Promise.withResolvers<void>();
    const ask = (one: Rpc) => one.call('which');
    suite.endpoints[1]!.down = true;
    expect((await rpc.survey(ask, 2, true, false)).map(({ answer }) => answer)).to.deep.equal(['0']);
    Object.assign(suite.endpoints[1]!, { down: false, silentUntil: speaks.promise });
    expect((await rpc.survey(ask, 2, true, false)).map(({ answer }) => answer)).to.deep.equal(['0']);
    speaks.resolve();
    expect(
      (await rpc.survey(ask, 2, true, false)).map(({ answer }) => answer),
      'asked all the same',
    ).to.deep.equal(['0', '1']);
  });

  it('asks one that is paused, too, where one of the others does not answer, so that not one alone decides', async () => {
    const rpc = pool(3);
    rpc.penalize('it lied', rpc.endpoints[2]);
    suite.endpoints[1]!.down = true;
    for (const awaitsPaused of [true, false])
      expect(
        (await rpc.survey((one) => one.call('which'), 2, true, awaitsPaused)).map(({ answer }) => answer),
      ).to.deep.equal(['0', '2']);
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
          if (answer === 'down') suite.endpoints[i]!.down = true;
          else suite.endpoints[i]!.hash = answer;
        });
        expect(await confirmMismatch(rpc.endpoints, known)).to.equal(expected);
      });
    }

    for (const [what, hash] of [
      ['another block', HASH_B],
      ['this block', HASH_A],
    ] as const) {
      it(`does not wait for an endpoint that hangs once a majority has ${what}`, async () => {
        const rpc = pool(3);
        const speaks = Promise.withResolvers<void>();
        Object.assign(suite.endpoints[0]!, { silentUntil: speaks.promise });
        for (const one of suite.endpoints.slice(1)) one.hash = hash;
        expect(await confirmMismatch(rpc.endpoints, known)).to.equal(hash === HASH_A ? null : hash);
        expect(await isConfirmed(rpc.endpoints, known)).to.equal(hash === HASH_A);
        speaks.resolve();
      });
    }
  });
});
