import { expect } from 'chai';
import { count, highest, lowest, numberIn } from '../../../ledger/db/aggregates.js';
import { forEachDatabase } from '../../support/db.js';

describe('aggregates', () => {
  forEachDatabase((_name, open) => {
    it('are numbers on either database, and null where no row is', async () => {
      const db = await open();
      const orders = () => db.knex('order_log');
      expect([await highest(orders(), 'order_seq'), await lowest(orders(), 'order_seq')]).to.deep.equal([null, null]);
      expect(await count(orders())).to.equal(0);
      const row = { maker: '0xaa', kind: 'order', effects: '[]', signer: null, nonce: null } as const;
      await orders().insert([7, 9].map((seq) => ({ ...row, order_seq: seq, time_ms: 2 ** 40 + seq })));
      expect(await highest(orders(), 'time_ms')).to.equal(2 ** 40 + 9);
      expect(await lowest(orders().where('order_seq', '>', 7), 'time_ms')).to.equal(2 ** 40 + 9);
      expect(await count(orders().where({ order_seq: 7 }))).to.equal(1);
    });

    it('of a column that holds no numbers are refused, not passed on under another type', async () => {
      const db = await open();
      await db.knex('meta').insert({ key: 'a', value: '12' });
      const refused = await highest(db.knex('meta'), 'value').catch((error: Error) => error);
      expect(refused)
        .to.be.instanceOf(TypeError)
        .with.property('message', 'a row says found as a string, not as a number');
    });
  });

  it('are asked for by the name that the query gave them', () => {
    expect(numberIn({ last: 3 }, 'last')).to.equal(3);
    expect(() => numberIn({ last: 3 }, 'first')).to.throw(TypeError);
    expect(() => numberIn(undefined, 'last')).to.throw(TypeError);
  });
});
