import { expect } from 'chai';
import { insertAll, upsertAll } from '../../../ledger/db/columns.js';
import { forEachDatabase } from '../../support/db.js';

interface Row {
  account: string;
  token: string;
  generation: number;
  balance_units: string;
  reserved_units: string;
  net_capital_units: string;
}

const row = (account: string, units: string, generation = 1): Row => ({
  account,
  token: 't',
  generation,
  balance_units: units,
  reserved_units: '0',
  net_capital_units: `-${'9'.repeat(78)}`,
});

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

describe('rows of tables', () => {
  forEachDatabase((_name, open) => {
    it('are stored as they are, any number of them, of any size', async () => {
      const db = await open();
      const text = `quotes ' " \\ ? $1 :name \n é 💧`;
      const rows = Array.from({ length: 401 }, (_, i) => row(`${String(i).padStart(4, '0')} ${text}`, `${10n ** 77n}`));
      await db.knex.transaction((tx) => insertAll(tx, 'balances', rows));
      expect(await db.knex('balances').orderBy('account').select(Object.keys(rows[0]!))).to.deep.equal(rows);
      const operator = {
        operator_seq: 1,
        time_ms: 2 ** 53 - 1,
        kind: 'x',
        note: '',
        maker: null,
        clears_halt_no: null,
      };
      await db.knex.transaction((tx) => insertAll(tx, 'operator_log', [operator]));
      expect(await db.knex('operator_log').first(Object.keys(operator))).to.deep.equal(operator);
    });

    it('take the place of those with their key', async () => {
      const db = await open();
      const key = ['account', 'token'] as const;
      await db.knex.transaction((tx) => upsertAll<Row>(tx, 'balances', key, [row('a', '1'), row('b', '2')]));
      await db.knex.transaction((tx) => upsertAll<Row>(tx, 'balances', key, [row('b', '3', 2), row('c', '4', 2)]));
      await db.knex.transaction((tx) => upsertAll<Row>(tx, 'balances', key, []));
      expect(
        await db
          .knex('balances')
          .orderBy('account')
          .select(Object.keys(row('a', '1'))),
      ).to.deep.equal([row('a', '1'), row('b', '3', 2), row('c', '4', 2)]);
    });

    it('are refused when they have other columns than the first, or none for a value', async () => {
      const db = await open();
      const { generation: _, ...short } = row('b', '2');
      const long = { ...row('b', '2'), more: 1 };
      const hollow = { ...row('b', '2'), balance_units: undefined };
      for (const other of [short, long, hollow]) {
        const stored = db.knex.transaction((tx) => insertAll<object>(tx, 'balances', [row('a', '1'), other]));
        expect(await errorOf(stored)).to.be.instanceOf(RangeError);
      }
      expect(await db.knex('balances').select()).to.deep.equal([]);
    });

    it('read the same after the table has changed', async () => {
      const db = await open();
      await db.knex.transaction((tx) => insertAll(tx, 'balances', [row('a', '1')]));
      const read = () => db.knex('balances').select().first() as Promise<Record<string, unknown>>;
      expect(await read()).to.not.have.property('added');
      await db.knex.schema.alterTable('balances', (table) => void table.text('added'));
      expect(await read()).to.have.property('added', null);
      await db.knex('balances').update('added', 'x');
      expect(await read()).to.have.property('added', 'x');
    });
  });
});
