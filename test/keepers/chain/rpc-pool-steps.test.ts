/** Steps of several requests to one endpoint of a pool: whom a mistake is blamed on, and who goes on. */
import { expect } from 'chai';
import { RpcContradictionError, RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { pooledEndpoints } from '../../support/nodes/pooled-endpoints.js';

describe('RPC pool', () => {
  const suite = pooledEndpoints();
  const { pool } = suite;

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
      suite.endpoints[0]!.down = true;
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
          return one.call('eth_call');
        }),
      );
      expect(error).to.have.property('code', 3);
      expect(tried).to.deep.equal(['0']);
    });

    for (const answer of ['execution reverted', 'runtime error: index out of bounds']) {
      it(`goes on with the next one after "${answer}" to a question that runs no contract`, async () => {
        const rpc = pool(2);
        const asked: Record<string, (one: Rpc) => Promise<unknown>> = {
          alone: (one) => one.call('eth_getLogs'),
          'with a call': (one) =>
            one.batch([
              { method: 'eth_getLogs', params: [] },
              { method: 'eth_call', params: [] },
            ]),
        };
        suite.endpoints[0]!.refusal = new RpcResponseError('eth_getLogs', 3, answer, undefined);
        for (const [how, work] of Object.entries(asked)) {
          // The other one's contract is called in vain, too: what it answers is the step's end.
          const names: string[] = [];
          const found = await rpc
            .attempt(async (one) => {
              names.push(one.name);
              return work(one);
            })
            .catch((error: RpcResponseError) => error.method);
          expect(names, how).to.deep.equal(['0', '1']);
          expect(found, how).to.equal(how === 'alone' ? '1' : 'eth_call');
          expect(rpc.health()[0], how).to.include({ healthy: false, problem: `eth_getLogs: ${answer}` });
          suite.nowMs += 3_600_000;
        }
      });
    }

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
      suite.endpoints[1]!.down = true;
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
        suite.nowMs = atMs;
        expect(await rpc.attempt(lie)).to.equal('true');
        suite.nowMs = healthyAtMs - 1;
        expect(await rpc.call('which'), `${suite.nowMs} ms`).to.equal('1');
        suite.nowMs = healthyAtMs;
        expect(await rpc.call('which'), `${suite.nowMs} ms`).to.equal('0');
      }
      expect(await rpc.attempt((one) => Promise.resolve(one.name))).to.equal('0');
      expect(rpc.health()[0]).to.include({ failures: 0, problem: null });
    });
  });
});
