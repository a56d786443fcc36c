/** Compaction of rows that are too many, though none of them is old enough by its age. */
import { expect } from 'chai';
import fc from 'fast-check';
import { readCompactionPosition } from '../../../ledger/orders/compacted-book.js';
import { compactionBounds, compactStep, surplusSeqOf } from '../../../ledger/orders/compaction.js';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { forEachDatabase } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import {
  compactedLog,
  LIMITS,
  act,
  logsOf,
  store,
  stateOf,
  bookAt,
  storeBlocks,
  storeCurve,
} from '../../support/worlds/compacted-log.js';

const YEAR_MS = 365 * 86_400_000;
const GENERATIONS = 40;
const RULE = { nowMs: 60_000, retentionMs: YEAR_MS, leastAgeMs: 0, reorgBlocks: 10 };

describe('compaction of the order log by rows', function () {
  this.timeout(120_000);

  forEachDatabase((name, open) => {
    const suite = compactedLog(open);

    /** Rounds as the compactor's, with bounds computed anew in each step. */
    async function round({ maxRows = 0, ...rule }: typeof RULE & { maxRows?: number }, limits = LIMITS) {
      const total = { orderRows: 0, surplusRows: 0, generations: 0 };
      for (;;) {
        const step = await suite.writer.tx(async (tx) => {
          const bounds = await compactionBounds(tx, { ...rule, surplusSeq: await surplusSeqOf(tx, maxRows) });
          return bounds === null ? null : compactStep(tx, bounds, limits);
        });
        if (step === null || (step.orderRows === 0 && step.generations === 0)) return total;
        total.orderRows += step.orderRows;
        total.surplusRows += step.surplusRows;
        total.generations += step.generations;
      }
    }

    const left = async () =>
      (await readOrderRows(suite.db.knex, { after: 0, limit: 1_000 })).map(({ orderSeq }) => orderSeq);

    /** `count` rows that each open an order, one every four seconds, and generations of a second each. */
    async function steady(count: number): Promise<void> {
      const { rows } = logsOf(suite.opens(count));
      const generations = Array.from({ length: GENERATIONS }, () => []);
      await store(suite.db, suite.writer, {
        rows: rows.map((row) => ({ ...row, timeMs: row.orderSeq * 4_000 })),
        generations,
      });
      await storeBlocks(suite.db, GENERATIONS);
    }

    it('leaves the newest rows, and changes neither what a gateway begins with nor its books', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(act, { minLength: 4, maxLength: 40 }),
          fc.integer({ min: 1, max: 12 }),
          fc.integer({ min: 1, max: 6 }),
          async (acts, maxRows, effects) => {
            const { rows, generations } = logsOf(acts);
            // The horizon of a reorganisation lies behind all of them.
            const settled = [...generations, ...Array.from({ length: RULE.reorgBlocks + 1 }, () => [])];
            await store(suite.db, suite.writer, { rows, generations: settled });
            await suite.db.knex('blocks').delete();
            await storeBlocks(suite.db, settled.length);
            const newest = { orderSeq: rows.length, generation: settled.length };
            const before = [await stateOf(suite.db), await bookAt(suite.db, newest)];
            expect((await round(RULE)).orderRows, 'by age alone').to.equal(0);
            const done = await round({ ...RULE, maxRows }, { ...LIMITS, effects });
            const kept = rows.slice(-maxRows);
            expect(await readOrderRows(suite.db.knex, { after: 0, limit: 1_000 })).to.deep.equal(kept);
            expect(done).to.include({
              orderRows: rows.length - kept.length,
              surplusRows: rows.length - kept.length,
            });
            expect([await stateOf(suite.db), await bookAt(suite.db, newest)]).to.deep.equal(before);
          },
        ),
        fcOptions(name === 'SQLite' ? 25 : 8),
      );
    });

    it('leaves rows that are needed, however many they are', async () => {
      await steady(9);
      const rule = { ...RULE, maxRows: 2 };
      await storeCurve(suite.db, { seq: 1, cut: { orderSeq: 3, generation: 11 }, deadlineSec: 31 });
      await round(rule);
      expect(await left(), 'a live curve').to.deep.equal([4, 5, 6, 7, 8, 9]);
      expect((await readCompactionPosition(suite.db.knex)).generation, 'of the live curve').to.equal(11);
      await suite.db.knex('publications').delete();
      expect((await round({ ...rule, reorgBlocks: GENERATIONS })).orderRows, 'no horizon').to.equal(0);
      await round({ ...rule, nowMs: 50_000, leastAgeMs: 30_000 });
      expect(await left(), 'rows of the last 30 s').to.deep.equal([6, 7, 8, 9]);
      await round({ ...rule, maxRows: 1 });
      expect(await left()).to.deep.equal([9]);
    });

    it('compacts the fills up to the newest of these rows, also when they take more steps', async () => {
      await steady(9);
      const done = await round({ ...RULE, maxRows: 3 }, { ...LIMITS, effects: 100, generations: 2 });
      expect(done).to.deep.equal({ orderRows: 6, surplusRows: 6, generations: 24 });
      expect(await readCompactionPosition(suite.db.knex)).to.include({ orderSeq: 6, generation: 24 });
    });

    it('goes by age or by rows, whichever is first', async () => {
      await steady(9);
      const aged = { ...RULE, nowMs: 60_000, retentionMs: 40_000 };
      expect(await round({ ...aged, maxRows: 7 }), 'rows until second 20').to.include({ orderRows: 5, surplusRows: 0 });
      expect(await left()).to.deep.equal([6, 7, 8, 9]);
      expect(await round({ ...aged, maxRows: 3 })).to.include({ orderRows: 1, surplusRows: 1 });
      expect(await round({ ...aged, nowMs: 68_000, maxRows: 1 }), 'one by age, one by number').to.include({
        orderRows: 2,
        surplusRows: 1,
      });
      expect(await left()).to.deep.equal([9]);
    });

    it('has no bound by rows at 0', async () => {
      await steady(9);
      expect((await round(RULE)).orderRows).to.equal(0);
      expect(await left()).to.have.length(9);
    });
  });
});
