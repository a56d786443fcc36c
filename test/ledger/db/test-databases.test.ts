/** What every test that takes a database relies on: it is as migrations make one, whatever the tests before did to theirs. */
import { expect } from 'chai';
import { migrate, openDb } from '../../../ledger/db/db.js';
import type { Db } from '../../../ledger/types.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import { layoutOf } from '../../support/worlds/layout.js';

forEachDatabase((name, open, openBare) => {
  describe(`databases of tests on ${name}`, () => {
    let left: Db | null = null;

    async function reopen(db: Db): Promise<Db> {
      const { url, schema } = locationOf(db);
      return openDb(url, schema === undefined ? {} : { schema });
    }

    after(() => left?.close());

    it('may be filled', async () => {
      const db = await open();
      await db.knex('meta').insert({ key: 'a', value: 'b' });
      await db.knex('writers').insert({ log: 'order', epoch: 7 });
      left = await reopen(db);
      expect(await left.knex('meta').select()).to.have.lengthOf(1);
    });

    it('hold nothing of the test before, and nothing that it still does reaches them', async () => {
      const db = await open();
      for (const table of ['meta', 'writers'] as const) expect(await db.knex(table).select(), table).to.deep.equal([]);
      await left!
        .knex('meta')
        .insert({ key: 'late', value: 'b' })
        .catch(() => undefined);
      expect(await db.knex('meta').select()).to.deep.equal([]);
    });

    it('may be changed', async () => {
      const db = await open();
      await db.knex.schema.alterTable('meta', (table) => void table.text('more'));
      await db.knex.schema.dropTable('writers');
    });

    it('have the tables that migrations make', async () => {
      const [db, bare] = [await open(), await openBare()];
      expect(await bare.knex.schema.hasTable('meta')).to.equal(false);
      await migrate(bare);
      expect(await layoutOf(db)).to.deep.equal(await layoutOf(bare));
      const ran = (one: Db) => one.knex<{ name: string }>('knex_migrations').orderBy('id').pluck('name');
      expect(await ran(db)).to.deep.equal(await ran(bare));
    });
  });
});
