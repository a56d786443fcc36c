/** What a writer of PostgreSQL sends, and in how many round trips. */
import { expect } from 'chai';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { appendOrderRows, lastOrderSeq } from '../../../ledger/orders/order-log.js';
import type { Transaction } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase } from '../../support/db.js';
import { MAKERS } from '../../support/markets.js';

const maker = MAKERS[0]!;

forEachDatabase((name, open) => {
  if (name === 'PostgreSQL')
    describe('round trips of a writer', () => {
      it('sends BEGIN, the fence and the reads in one round trip, and nothing more when BEGIN fails', async () => {
        const db = await open();
        const writer = await acquireWriter(db, 'order');
        const own = Object.getOwnPropertyDescriptor(pg.Client.prototype, 'query')!;
        type Answered = (error: Error | null, ...rest: unknown[]) => void;
        const query = own.value as (config: { text: string }, done: Answered) => unknown;
        const sent: string[] = [];
        const answered: string[] = [];
        let isFailing = false;
        const watched = function (this: pg.Client, config: { text: string }, done: Answered): unknown {
          const text =
            /^\s*(?:BEGIN|update writers|select|insert|COMMIT|ROLLBACK)/i.exec(config.text)?.[0] ?? config.text;
          sent.push(text);
          const noted = (error: Error | null, ...rest: unknown[]): void => {
            answered.push(text);
            done(error, ...rest);
          };
          // As an answer would come: later than this call.
          if (isFailing && text === 'BEGIN') return setImmediate(() => noted(new Error('no BEGIN')));
          return query.call(this, config, noted);
        };
        const read = async (tx: Transaction): Promise<void> => void (await lastOrderSeq(tx));
        const appendOne = (): Promise<void> =>
          writer.tx(async (tx) => {
            expect(answered.slice(0, 3), 'all before the body').to.deep.equal(['BEGIN', 'update writers', 'select']);
            await appendOrderRows(tx, [
              { orderSeq: 1, timeMs: 1, maker, signer: null, nonce: null, kind: 'x', effects: [] },
            ]);
          }, read);
        await writer.tx(async () => undefined);
        Object.defineProperty(pg.Client.prototype, 'query', { ...own, value: watched });
        try {
          isFailing = true;
          const failed: unknown = await appendOne().then(
            () => null,
            (error: unknown) => error,
          );
          expect(failed).to.have.property('message').that.includes('no BEGIN');
          expect(sent).not.to.include('insert');
          isFailing = false;
          while (answered.length < sent.length) await sleep(10);
          [sent, answered].forEach((list) => list.splice(0));
          await appendOne();
          expect(sent).to.deep.equal(['BEGIN', 'update writers', 'select', 'insert', 'COMMIT']);
        } finally {
          Object.defineProperty(pg.Client.prototype, 'query', own);
        }
        expect(await lastOrderSeq(db.knex)).to.equal(1);
        await writer.release();
      });
    });
});
