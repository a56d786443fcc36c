/** Posts of many markets in as few transactions as the limits of chain and contract allow. */
import { expect } from 'chai';
import type { PostRecord } from '../../../core/curve/post.js';
import { MAX_BATCH, MAX_TX_GAS, gasLimitOf, splitByGas } from '../../../keepers/poster/gas.js';

describe('split of posts', () => {
  const market = (words: number): PostRecord => ({
    kind: 'full',
    marketId: `0x${'1'.repeat(64)}`,
    seq: 1,
    deadlineSec: 1,
    snapAskUnits: 0n,
    snapBidUnits: 0n,
    exactAskKnots: 0,
    exactBidKnots: 0,
    askWords: Array<bigint>(words).fill(1n),
    bidWords: Array<bigint>(words).fill(1n),
  });
  const touch: PostRecord = { kind: 'touch', marketId: `0x${'1'.repeat(64)}`, seq: 2, deadlineSec: 1, baseSeq: 1 };
  const split = (records: readonly PostRecord[]) => splitByGas(records.map((record) => ({ record })));

  it('keeps each transaction within the limits of chain and contract, in order, with nothing left out', () => {
    const records = Array.from({ length: 200 }, (_, i) => market(i % 5));
    const batches = split(records);
    expect(batches.flat().map(({ record }) => record)).to.deep.equal(records);
    for (const batch of batches) {
      expect(gasLimitOf(batch.map(({ record }) => record)) <= MAX_TX_GAS).to.equal(true);
    }
    expect(batches).to.have.length.within(2, 5);
    expect(split(Array<PostRecord>(2 * MAX_BATCH + 1).fill(touch)).map(({ length }) => length)).to.deep.equal([
      256, 256, 1,
    ]);
    expect(split([])).to.deep.equal([]);
  });
});
