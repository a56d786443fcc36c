/** Reads that share round trips: how they are put together, and that none suffers from another. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { RpcUnavailableError } from '../../../core/rpc-errors.js';
import { MaxUint256 } from 'ethers';
import type { EthReader } from '../../../liquidity/eth.js';
import { joinedReads } from '../../../liquidity/joined-reads.js';
import { createPermits } from '../../../liquidity/permits.js';

const ACCOUNT = '0x0000000000000000000000000000000000000a01';
type Requests = Parameters<EthReader['batch']>[0];
const read = (name: string) => ({ method: 'eth_getCode', params: [name, 'latest'] });
const first = ([answer]: readonly unknown[]): string => String(answer);

describe('joined reads', () => {
  /** Names of each round trip, in the order in which they were sent. */
  let trips: string[][];
  /** Ends of the round trips that are held. */
  let held: (() => void)[];
  let isHeld: boolean;
  let failing: ReadonlySet<string>;

  const namesIn = (requests: Requests): string[] => requests.map(({ params }) => String(params[0]));
  const eth: EthReader = {
    call: () => Promise.reject(new Error('reads are batches')),
    async batch(requests) {
      const names = namesIn(requests);
      trips.push(names);
      if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
      const bad = names.find((name) => failing.has(name));
      if (bad !== undefined) throw new Error(`${bad} fails`);
      return names.map((name) => `of ${name}`);
    },
  };
  const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

  beforeEach(() => {
    [trips, held, isHeld, failing] = [[], [], false, new Set()];
  });

  it('of one turn are one round trip, and each gets its own answers', async () => {
    const joined = joinedReads(eth);
    const answers = await Promise.all([
      joined([read('a')], first),
      joined([read('b'), read('c')], (both) => both.join()),
      joined([], (none) => none.length),
    ]);
    expect(answers).to.deep.equal(['of a', 'of b,of c', 0]);
    expect(trips).to.deep.equal([['a', 'b', 'c']]);
  });

  it('wait for each other only while two round trips are under way', async () => {
    const joined = joinedReads(eth);
    isHeld = true;
    const all: Promise<string>[] = [];
    for (const name of ['a', 'b', 'c', 'd']) {
      all.push(joined([read(name)], first));
      await turn();
    }
    expect(trips).to.deep.equal([['a'], ['b']]);
    isHeld = false;
    held.splice(0).forEach((end) => end());
    expect(await Promise.all(all)).to.deep.equal(['of a', 'of b', 'of c', 'of d']);
    expect(trips).to.deep.equal([['a'], ['b'], ['c', 'd']]);
  });

  it('but not for one that takes long', async () => {
    const joined = joinedReads(eth);
    isHeld = true;
    const late = [joined([read('a')], first)];
    await turn();
    late.push(joined([read('b')], first));
    await turn();
    isHeld = false;
    expect(await joined([read('c')], first)).to.equal('of c');
    expect(trips).to.deep.equal([['a'], ['b'], ['c']]);
    held.splice(0).forEach((end) => end());
    expect(await Promise.all(late)).to.deep.equal(['of a', 'of b']);
  });

  it('of more than twenty requests take several round trips', async () => {
    const joined = joinedReads(eth);
    const names = Array.from({ length: 45 }, (_, i) => `${i}`);
    const answers = await Promise.all(names.map((name) => joined([read(name)], first)));
    expect(answers).to.deep.equal(names.map((name) => `of ${name}`));
    expect(trips.map((trip) => trip.length)).to.deep.equal([20, 20, 5]);
    const large = Array.from({ length: 30 }, (_, i) => read(`${i}`));
    expect(await joined(large, (all) => all.length), 'one that has more goes by itself').to.equal(30);
  });

  it('are fewer at a time where an endpoint does not take as many', async () => {
    const strict: EthReader = {
      ...eth,
      batch: (requests) =>
        requests.length > 3 ? Promise.reject(new RpcUnavailableError('too many')) : eth.batch(requests),
    };
    const joined = joinedReads(strict);
    const names = Array.from({ length: 7 }, (_, i) => `${i}`);
    const answers = await Promise.all(names.map((name) => joined([read(name)], first)));
    expect(answers).to.deep.equal(names.map((name) => `of ${name}`));
    expect(trips.map((trip) => trip.length)).to.deep.equal([3, 2, 2]);
  });

  it('have failed together where no answer came in time', async () => {
    let asked = 0;
    const silent: EthReader = {
      ...eth,
      async batch() {
        asked += 1;
        await delay(300);
        throw new RpcUnavailableError('timed out');
      },
    };
    const joined = joinedReads(silent);
    const results = await Promise.allSettled([joined([read('a')], first), joined([read('b')], first)]);
    expect(results.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(asked).to.equal(1);
  });

  it('that fail do so alone, and whoever was asked with them is answered', async () => {
    const joined = joinedReads(eth);
    failing = new Set(['bad']);
    const results = await Promise.allSettled([
      joined([read('a')], first),
      joined([read('bad')], first),
      joined([read('c')], () => {
        throw new RangeError('not hex');
      }),
      joined([read('d')], first),
    ]);
    expect(results.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason)))).to.deep.equal([
      'of a',
      'Error: bad fails',
      'RangeError: not hex',
      'of d',
    ]);
  });

  it('go to the next endpoint where an answer can not be read', async () => {
    const other: EthReader = { ...eth, batch: (requests) => Promise.resolve(namesIn(requests).map(() => 'nonsense')) };
    const several: EthReader = { ...eth, attempt: (work) => work(other).catch(() => work(eth)) };
    const joined = joinedReads(several);
    const take = ([answer]: readonly unknown[]): string => {
      if (answer === 'nonsense') throw new TypeError('not hex');
      return first([answer]);
    };
    expect(await Promise.all([joined([read('a')], take), joined([read('b')], take)])).to.deep.equal(['of a', 'of b']);
    expect(trips).to.deep.equal([['a', 'b']]);
  });

  it('of a token that answers less than a word, or more, blame no endpoint', async () => {
    const word = 'f'.repeat(64);
    const found: unknown[] = [];
    for (const answer of ['0x', '0x01', `0x${word}`, `0x${word}01`]) {
      const token: EthReader = { ...eth, batch: (requests) => Promise.resolve(requests.map(() => answer)) };
      const permits = createPermits({
        ...{ eth: token, joined: joinedReads(token), chainId: 8453, nowMs: () => 0 },
        ...{ permit2: ACCOUNT, settler: ACCOUNT },
      });
      found.push(await permits.stateOf(ACCOUNT, ACCOUNT, null));
    }
    expect(found).to.deep.equal(
      [0n, 0n, MaxUint256, MaxUint256].map((allowanceUnits) => ({ allowanceUnits, nonce: 0n })),
    );
  });
});
