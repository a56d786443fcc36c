import { expect } from 'chai';
import { LIMITS } from '../../bench/gas/limits.js';
import { measureAll } from '../../bench/gas/measure.js';
import type { Row } from '../../bench/gas/rows.js';
import { driftOf, readSnapshot, snapshotOf } from '../../bench/gas/snapshot.js';

/** Above their limits, as the report says; a row that comes below its limit must be taken from here. */
const ABOVE = ['swap.weth.buy.segment1', 'gasless.weth.buy', 'quote.plain', 'quote.weth'];

describe('gas', function () {
  this.timeout(120_000);
  let rows: Row[];

  before(async () => {
    rows = await measureAll();
  });

  it('is what snapshots/gas.json says: `npm run bench:gas -- --write` renews it', () => {
    expect(driftOf(readSnapshot(), snapshotOf(rows))).to.deep.equal([]);
  });

  it('is within its limits, but for those rows that are known to be above', () => {
    const gas = new Map(rows.map((row) => [row.id, row.gas]));
    expect(LIMITS.filter(({ id, limit }) => gas.get(id)! > limit).map(({ id }) => id)).to.deep.equal(ABOVE);
  });

  it('has a comparison that notices a changed, a new and a missing row', () => {
    const committed = { a: { gas: 1, calldataBytes: 4 }, b: { gas: 2 } };
    expect(driftOf(committed, { a: { gas: 1, calldataBytes: 4 }, b: { gas: 2 } })).to.deep.equal([]);
    expect(driftOf(committed, { a: { gas: 1, calldataBytes: 5 }, c: { gas: 2 } })).to.have.length(3);
  });
});
