import { expect } from 'chai';
import { LIMITS } from '../../bench/gas/limits.js';
import { measureAll } from '../../bench/gas/measure.js';
import type { Row } from '../../bench/gas/rows.js';
import { gasModelOf } from '../../bench/gas/model.js';
import { ROUTES, ROUTE_NAMES } from '../../bench/gas/routes.js';
import { driftOf, readSnapshot, snapshotOf } from '../../bench/gas/snapshot.js';
import { DEFAULT_GAS, gasOf } from '../../core/swap/pricing.js';

/** Above their limits, as the report says; a row that comes below its limit must be taken from here. */
const ABOVE = ['quote.weth'];

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

  it('is what the fees of signed orders reckon with, and never less than an order costs', () => {
    expect(DEFAULT_GAS, '`npm run bench:swap` prints it').to.deep.equal(gasModelOf(readSnapshot()));
    for (const route of ROUTE_NAMES) {
      const charged = gasOf(DEFAULT_GAS, ROUTES[route]);
      const ofRoute = rows.filter(({ id }) => id.startsWith(`order.${route}.`));
      const gasOfThose = (isPartnered: boolean): bigint[] =>
        ofRoute.filter(({ id }) => id.endsWith('.partner') === isPartnered).map(({ gas: one }) => BigInt(one));
      const measured = gasOfThose(false);
      expect(measured).to.have.length(10);
      const partnered = gasOfThose(true);
      expect(partnered).to.have.length(8);
      const most = charged + DEFAULT_GAS.partner;
      expect(
        partnered.every((one) => one <= most),
        `${route} with a partner: ${most}`,
      ).to.equal(true);
      const highest = measured.reduce((a, b) => (a > b ? a : b));
      expect(charged >= highest, `${route}: ${charged} for ${highest}`).to.equal(true);
      // What is charged beyond the costliest order is a nonce word of its own, and that parts are charged at their highest.
      expect(charged * 100n <= highest * 115n, `${route}: ${charged} for ${highest}`).to.equal(true);
    }
  });

  it('has a comparison that notices a changed, a new and a missing row', () => {
    const committed = { a: { gas: 1, calldataBytes: 4 }, b: { gas: 2 } };
    expect(driftOf(committed, { a: { gas: 1, calldataBytes: 4 }, b: { gas: 2 } })).to.deep.equal([]);
    expect(driftOf(committed, { a: { gas: 1, calldataBytes: 5 }, c: { gas: 2 } })).to.have.length(3);
  });
});
