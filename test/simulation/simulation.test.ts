import { expect } from 'chai';
import { fcOptions } from '../support/fc.js';
import { DEFAULT_FAULTS } from './faults.js';
import { createReport } from './report.js';
import { simulate } from './run.js';

const BLOCKS = 100;
/** As many runs reach every fault and every way of recovery. */
const ENOUGH = 40;

describe('the whole backend on a virtual clock', () => {
  it('gives the same trace for the same seed, and another for another', async function () {
    this.timeout(120_000);
    const of = async (seed: number) => (await simulate({ seed, blocks: 40, faults: DEFAULT_FAULTS })).digest;
    const first = await of(7);
    expect(await of(7)).to.equal(first);
    expect(await of(8)).to.not.equal(first);
  });

  it('stays right while everything around it fails, and goes on when that is over', async function () {
    const { numRuns } = fcOptions(8);
    this.timeout(60_000 * numRuns);
    const report = createReport();
    for (let seed = 1; seed <= numRuns; seed += 1) {
      const result = await simulate({ seed, blocks: BLOCKS, faults: DEFAULT_FAULTS });
      report.add(result);
      expect(result.violations, `npm run simulate -- --seed ${seed} --blocks ${BLOCKS} --trace`).to.deep.equal([]);
    }
    console.log(`      ${report.lines().at(-1)}`);
    if (numRuns >= ENOUGH) expect(report.missed(DEFAULT_FAULTS)).to.deep.equal([]);
  });
});
