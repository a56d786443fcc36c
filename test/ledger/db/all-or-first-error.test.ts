import { expect } from 'chai';
import { insertAll } from '../../../ledger/db/columns.js';
import { sendForRows, allOrFirstError } from '../../../ledger/db/dialects.js';
import { CommitUnknownError, isUniqueViolation } from '../../../ledger/errors.js';
import type { Db } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase } from '../../support/db.js';

const meta = (key: string): { key: string; value: string } => ({ key, value: key });
const many = (prefix: string): { key: string; value: string }[] =>
  Array.from({ length: 450 }, (_, i) => meta(`${prefix}${i}`));

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

/** Ends the connection that it is sent over, where there is one to end. */
const cutOff = (db: Db): string =>
  db.kind === 'pg' ? 'select pg_terminate_backend(pg_backend_pid())' : 'select * from nowhere';

describe('statements that are sent together', () => {
  forEachDatabase((_name, open) => {
    it('answer in the order in which they were given, and see each other', async () => {
      const db = await open();
      const answers = await db.knex.transaction((tx) =>
        allOrFirstError([
          insertAll(tx, 'meta', [meta('a')]),
          sendForRows(tx, 'select * from meta where "key" = ?', ['a']),
          sendForRows(tx, 'select * from meta where "key" = ?', ['b']),
        ]),
      );
      expect(answers).to.deep.equal([undefined, [meta('a')], []]);
    });

    it('leave in one write, where the database is not in the process', async () => {
      const db = await open();
      if (db.kind === 'sqlite') return;
      await db.knex.transaction(async (tx) => {
        const { connection } = (await tx.client.acquireConnection()) as {
          connection: { stream: Record<'_write' | '_writev', (...args: unknown[]) => unknown> };
        };
        let writes = 0;
        for (const name of ['_write', '_writev'] as const) {
          const own = connection.stream[name];
          connection.stream[name] = function (...args): unknown {
            writes += 1;
            return own.apply(this, args);
          };
        }
        const one = (i: number): Promise<unknown> => sendForRows(tx, 'select * from meta where "key" = ?', [`${i}`]);
        const numbers = Array.from({ length: 10 }, (_, i) => i);
        await allOrFirstError(numbers.map(one));
        expect(writes).to.equal(1);
        for (const i of numbers) await one(i);
        expect(writes, 'one after the other').to.equal(11);
      });
    });

    it('fail with the cause, whatever fails because of it, and leave nothing', async () => {
      const db = await open();
      await db.knex('meta').insert(meta('known'));
      const writer = await acquireWriter(db, 'ledger');
      const failure = await failureOf(
        writer.tx((tx) =>
          // The first goes on in parts after the second has failed.
          allOrFirstError([
            insertAll(tx, 'meta', many('x')),
            insertAll(tx, 'meta', [meta('known')]),
            insertAll(tx, 'meta', many('y')),
          ]),
        ),
      );
      expect(isUniqueViolation(failure)).to.equal(true);
      expect(await db.knex('meta').select()).to.deep.equal([meta('known')]);
      await writer.tx((tx) => insertAll(tx, 'meta', [meta('next')]));
      expect(await db.knex('meta').orderBy('key').pluck('key')).to.deep.equal(['known', 'next']);
    });

    it('fail with the connection, all of them, and the next ones get another', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'ledger');
      const failure = await failureOf(
        writer.tx(async (tx) => {
          await insertAll(tx, 'meta', [meta('lost')]);
          await allOrFirstError([
            sendForRows(tx, cutOff(db)),
            insertAll(tx, 'meta', many('x')),
            insertAll(tx, 'meta', many('y')),
          ]);
        }),
      );
      expect(failure).to.be.instanceOf(Error);
      expect(failure).not.to.be.instanceOf(CommitUnknownError);
      await writer.tx((tx) => insertAll(tx, 'meta', [meta('next')]));
      expect(await db.knex('meta').select()).to.deep.equal([meta('next')]);
    });
  });
});
