import { expect } from 'chai';
import { count, highest, lowest, numberIn, unitsSum } from '../../../ledger/db/aggregates.js';
import { sendForRows } from '../../../ledger/db/dialects.js';
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

  forEachDatabase((_name, open) => {
    it('of amounts are exact to 78 digits, below zero, too, and null over no row', async () => {
      const db = await open();
      const most = 10n ** 77n;
      const amounts = [most, 1n, most, -3n, 2n ** 63n, -(2n ** 64n) - 5n];
      const rows = amounts.map((units, i) => ({
        ...({ account: 'suspense', token: `0x${i}`, generation: 1, balance_units: units.toString() } as const),
        ...{ reserved_units: '0', net_capital_units: '0' },
      }));
      await db.knex('balances').insert(rows);
      const sumOf = async (where: string): Promise<unknown> =>
        (
          await sendForRows<{ sum: unknown }>(
            db.knex,
            `select ${unitsSum(db.knex, 'balance_units')} as sum from balances where ${where}`,
          )
        )[0]?.sum;
      expect(await sumOf('generation = 1')).to.equal(amounts.reduce((sum, units) => sum + units, 0n).toString());
      expect(await sumOf('generation = 2')).to.equal(null);
    });
  });

  it('are asked for by the name that the query gave them', () => {
    expect(numberIn({ last: 3 }, 'last')).to.equal(3);
    expect(() => numberIn({ last: 3 }, 'first')).to.throw(TypeError);
    expect(() => numberIn(undefined, 'last')).to.throw(TypeError);
  });
});
