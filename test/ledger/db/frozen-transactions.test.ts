/** What frozen processes leave in the middle of a transaction on a PostgreSQL server, where others wait for it. */
import { expect } from 'chai';
import pg from 'pg';
import { acquireWriter } from '../../../ledger/db/writers.js';
import type { Db } from '../../../ledger/types.js';
import { forPostgresDatabase, locationOf } from '../../support/db.js';
import { MAKERS } from '../../support/markets.js';

const owner = MAKERS[0]!;

describe('transactions of frozen processes', function () {
  this.timeout(30_000);

  forPostgresDatabase((_name, open) => {
    let clients: pg.Client[] = [];

    afterEach(async () => {
      // Their sessions may have been ended.
      await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
      clients = [];
    });

    /** A session whose client sends nothing more after a statement of a transaction. */
    async function leave(db: Db, statement: string): Promise<pg.Client> {
      const { url, schema } = locationOf(db);
      const client = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` });
      clients.push(client);
      client.on('error', () => undefined);
      await client.connect();
      await client.query('begin');
      await client.query(statement);
      return client;
    }

    it('keep no log from its next holder, when a statement has arrived in part, too', async () => {
      const db = await open();
      await (await acquireWriter(db, 'order')).release();
      const client = await leave(db, "update writers set epoch = epoch where log = 'order'");
      // The first of several messages of which a statement consists.
      const { connection } = client as unknown as { connection: { parse(query: object): void; flush(): void } };
      connection.parse({ text: 'select 1', name: '', types: [] });
      connection.flush();
      const writer = await acquireWriter(db, 'order');
      expect(writer.epoch).to.equal(2);
      await writer.release();
    });

    it('are ended by the holder of any log once they block what it does beside its log', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'order');
      await db.knex('swap_nonces').insert({ owner, issued: 1 });
      await leave(db, `update swap_nonces set issued = 2 where owner = '${owner}'`);
      await db.knex('swap_nonces').where({ owner }).increment('issued', 2);
      expect((await db.knex('swap_nonces').first())?.issued).to.equal(3);
      await writer.release();
    });
  });
});
