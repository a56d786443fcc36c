import { expect } from 'chai';
import fc from 'fast-check';
import { readCompactionPosition } from '../../../ledger/orders/compacted-book.js';
import { compactionBounds } from '../../../ledger/orders/compaction.js';
import { lastOrderSeq, readOrderRows } from '../../../ledger/orders/order-log.js';
import { forEachDatabase } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import {
  compactedLog,
  markets,
  FAR_MS,
  LIMITS,
  type Act,
  act,
  logsOf,
  store,
  stateOf,
  bookAt,
  compact,
  storeBlocks,
  storeCurve,
} from '../../support/worlds/compacted-log.js';

describe('compaction of the order log', function () {
  this.timeout(120_000);

  forEachDatabase((name, open) => {
    const suite = compactedLog(open);
    const { opens } = suite;

    it('changes neither what a gateway begins with nor the book of any later cut', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(act, { minLength: 2, maxLength: 40 }),
          fc.array(fc.tuple(fc.nat(60), fc.nat(15)), { minLength: 1, maxLength: 3 }),
          fc.integer({ min: 1, max: 6 }),
          async (acts, steps, effects) => {
            const logs = logsOf(acts);
            await store(suite.db, suite.writer, logs);
            const expected = await stateOf(suite.db);
            const newest = { orderSeq: logs.rows.length, generation: logs.generations.length };
            let at = { orderSeq: 0, generation: 0 };
            for (const [rows, generations] of steps) {
              at = {
                orderSeq: Math.min(Math.max(at.orderSeq, rows), Math.max(0, newest.orderSeq - 1)),
                generation: Math.min(Math.max(at.generation, generations), newest.generation),
              };
              const books = [await bookAt(suite.db, at), await bookAt(suite.db, newest)];
              await compact(suite.writer, { ...at, beforeMs: FAR_MS }, { ...LIMITS, effects });
              const position = await readCompactionPosition(suite.db.knex);
              expect(position.orderSeq).to.equal(at.orderSeq);
              expect(position.generation).to.be.at.most(at.generation);
              expect([await bookAt(suite.db, at), await bookAt(suite.db, newest)]).to.deep.equal(books);
              expect(await stateOf(suite.db)).to.deep.equal(expected);
            }
            const left = await readOrderRows(suite.db.knex, { after: 0, limit: 1_000 });
            expect(left).to.deep.equal(logs.rows.slice(at.orderSeq));
          },
        ),
        fcOptions(name === 'SQLite' ? 25 : 8),
      );
    });

    it('keeps every order that had a fill, and the newest closed ones beside', async () => {
      const closes = Array.from({ length: 10 }, (_, i): Act => ({ kind: 'close', pick: i, reason: 'canceled' }));
      // One before its cancel is compacted, one after; the third lies beyond the generation that is compacted.
      const fills = [0, 1, 2].map((i): Act => ({ kind: 'fill', pick: i, permille: 100n }));
      const logs = logsOf([...opens(12), fills[0]!, ...closes, fills[1]!, fills[2]!]);
      await store(suite.db, suite.writer, logs);
      await compact(
        suite.writer,
        { orderSeq: logs.rows.length - 1, generation: 2, beforeMs: FAR_MS },
        { ...LIMITS, closedOrders: 3 },
      );
      const kept = await suite.db
        .knex('folded_orders')
        .orderBy('oid')
        .select<{ oid: number; filled_units: string }[]>();
      expect(kept.map(({ oid }) => oid)).to.deep.equal([1, 2, 3, 7, 8, 9, 10, 11, 12]);
      await compact(
        suite.writer,
        { orderSeq: logs.rows.length - 1, generation: 4, beforeMs: FAR_MS },
        { ...LIMITS, closedOrders: 3 },
      );
      const third = await suite.db.knex('folded_orders').where({ oid: 3 }).first<{ filled_units: string }>();
      expect(third.filled_units).to.equal(`${(5n * markets[0]!.lotUnits) / 10n}`);
    });

    it('leaves young rows, and rows that a cut within reach of a reorganisation was made from', async () => {
      const logs = logsOf(opens(9));
      await store(suite.db, suite.writer, { ...logs, generations: Array.from({ length: 40 }, () => []) });
      await storeBlocks(suite.db, 40);
      const rule = { nowMs: 60_000, retentionMs: 0, surplusSeq: 0, leastAgeMs: 0, reorgBlocks: 10 };
      expect(await compactionBounds(suite.db.knex, rule), 'nothing was ever published').to.deep.equal({
        orderSeq: 8,
        generation: 30,
        beforeMs: 60_000,
      });
      expect(await compactionBounds(suite.db.knex, { ...rule, reorgBlocks: 40 })).to.equal(null);
      await storeCurve(suite.db, { seq: 1, cut: { orderSeq: 2, generation: 12 }, deadlineSec: 30 });
      expect((await compactionBounds(suite.db.knex, rule))?.orderSeq, 'dead at the horizon').to.equal(8);
      await storeCurve(suite.db, { seq: 2, cut: { orderSeq: 5, generation: 22 }, deadlineSec: 31 });
      expect(await compactionBounds(suite.db.knex, rule)).to.deep.include({ orderSeq: 5, generation: 22 });
      const young = await compactionBounds(suite.db.knex, { ...rule, nowMs: 50_000, retentionMs: 49_960 });
      expect(young).to.deep.equal({ orderSeq: 5, generation: 0, beforeMs: 40 });
      await compact(suite.writer, young!);
      expect((await readCompactionPosition(suite.db.knex)).orderSeq, 'rows up to 40 ms').to.equal(4);
      await compact(suite.writer, { orderSeq: 8, generation: 0, beforeMs: FAR_MS });
      expect(await lastOrderSeq(suite.db.knex)).to.equal(9);
    });
  });
});
