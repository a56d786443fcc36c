import { expect } from 'chai';
import { databases } from '../../bench/ledger/databases.js';
import { measureInserts } from '../../bench/ledger/inserts.js';

describe('the benchmark of the ledger', function () {
  this.timeout(60_000);

  for (const database of databases(undefined)) {
    it(`sends each row of the ledger once more by itself, ${database.name}`, async () => {
      const rows = await measureInserts(database, [{ legs: 5, generations: 3 }], 3);
      expect(rows.map(({ goal }) => goal)).to.deep.equal(['', '', '', 'L1']);
      for (const { what, value } of rows) expect(value, what).to.be.greaterThan(0);
    });
  }
});
