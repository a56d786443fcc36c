import { expect } from 'chai';
import { readPastOrder } from '../../../ledger/orders/past-orders.js';
import { forEachDatabase } from '../../support/db.js';

describe('Past orders', () => {
  forEachDatabase((_name, open) => {
    it('are read however many rows made them smaller', async () => {
      const db = await open();
      const reduced = Array.from({ length: 70_000 }, (_, i) => i + 2);
      expect(await readPastOrder(db.knex, [], 1, { opened: 1, closed: 70_002, reduced })).to.equal(null);
    });
  });
});
