import { expect } from 'chai';
import type * as Lanes from '../../scripts/testing/lanes.mjs';

// A program of the repository, where it stands: tests may run from a copy of their own.
const { inLanes } = (await import(new URL('../../scripts/testing/lanes.mjs', import.meta.url).href)) as typeof Lanes;

describe('lanes of the test runner', () => {
  /** Jobs that end when they are told to, and the order in which they began. */
  function jobsOf(count: number) {
    const begun: number[] = [];
    const ends = Array.from({ length: count }, () => Promise.withResolvers<void>());
    const jobs = ends.map(({ promise }, at) => async () => {
      begun.push(at);
      await promise;
      return at;
    });
    return { begun, jobs, endAll: () => ends.forEach(({ resolve }) => resolve()) };
  }
  const pause = () => new Promise((resolve) => setTimeout(resolve, 30));

  it('take jobs in their order, as many at a time as there are', async () => {
    const { begun, jobs, endAll } = jobsOf(5);
    const all = inLanes(jobs, 2);
    await pause();
    expect(begun).to.deep.equal([0, 1]);
    endAll();
    expect(await all).to.deep.equal([0, 1, 2, 3, 4]);
    expect(begun).to.deep.equal([0, 1, 2, 3, 4]);
  });

  it('get more, which take the next job and the last, while processors are idle', async () => {
    const { begun, jobs, endAll } = jobsOf(5);
    const all = inLanes(jobs, 2, { spare: ['next', 'last'], idleShare: () => 0.5, waitMs: 1 });
    await pause();
    expect(begun).to.deep.equal([0, 1, 2, 4]);
    endAll();
    expect(await all).to.deep.equal([0, 1, 2, 3, 4]);
    expect([...begun].sort()).to.deep.equal([0, 1, 2, 3, 4]);
  });

  it('get none while processors are busy', async () => {
    const { begun, jobs, endAll } = jobsOf(5);
    const all = inLanes(jobs, 2, { spare: ['next', 'last'], idleShare: () => 0.05, waitMs: 1 });
    await pause();
    expect(begun).to.deep.equal([0, 1]);
    endAll();
    expect(await all).to.deep.equal([0, 1, 2, 3, 4]);
  });
});
