/** Which closed orders the compacted book keeps, however the rows were cut into steps and whatever is remembered of the steps before. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { CloseReason } from '../../../core/types.js';
import { compactStep } from '../../../ledger/orders/compaction.js';
import { createForgetting, type Forgetting } from '../../../ledger/orders/forgetting.js';
import { forEachDatabase } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import { act, compactedLog, FAR_MS, LIMITS, logsOf, store, type Act } from '../../support/worlds/compacted-log.js';

/** Fills leave a lot of each order, since when a filled one ended depends on whether its rows or its fills came first. */
const partial = fc.array(
  act.map((one): Act => {
    if (one.kind === 'open') return { ...one, sizeLots: one.sizeLots + 1n };
    if (one.kind === 'reduce') return { kind: 'close', pick: one.pick, reason: 'replaced' };
    return one.kind === 'fill' ? { ...one, permille: 1n } : one;
  }),
  { minLength: 4, maxLength: 60 },
);

describe('forgetting of closed orders', function () {
  this.timeout(120_000);

  forEachDatabase((name, open) => {
    const suite = compactedLog(open);
    const kept = async () => suite.db.knex('folded_orders').orderBy('oid').select();
    const oids = async () => (await kept()).map(({ oid }) => oid);

    /** Compacts up to the last row but one. `forgetting` is asked for in each step. */
    async function compactAll(
      logs: ReturnType<typeof logsOf>,
      { effects, closedOrders }: { effects: number; closedOrders: number },
      forgetting: () => Forgetting,
    ) {
      const bounds = { orderSeq: logs.rows.length - 1, generation: logs.generations.length, beforeMs: FAR_MS };
      for (;;) {
        const step = await suite.writer.tx((tx) =>
          compactStep(tx, bounds, { ...LIMITS, effects, closedOrders }, forgetting()),
        );
        if (step.orderRows === 0 && step.generations === 0) return;
      }
    }

    it('keeps open orders, those with a fill and the newest closed ones, in whatever steps', async () => {
      await fc.assert(
        fc.asyncProperty(
          partial,
          fc.integer({ min: 0, max: 4 }),
          fc.integer({ min: 1, max: 9 }),
          fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
          async (acts, closedOrders, effects, resets) => {
            const logs = logsOf(acts);
            await store(suite.db, suite.writer, logs);
            await compactAll(logs, { effects: 1_000, closedOrders }, createForgetting);
            const expected = await kept();

            const all = new Map<number, { maker: string; closedMs: number | null }>();
            for (const row of logs.rows.slice(0, -1)) {
              for (const effect of row.effects) {
                if (effect.type === 'open') all.set(effect.oid, { maker: row.maker, closedMs: null });
                const order = effect.type === 'close' ? all.get(effect.oid) : undefined;
                if (order !== undefined) order.closedMs ??= row.timeMs;
              }
            }
            const filled = new Set(logs.generations.flat().map(({ oid }) => oid));
            const stay = [...all].filter(([oid, { maker, closedMs }]) => {
              if (closedMs === null || filled.has(oid)) return true;
              const newer = [...all.values()].filter(
                (other) => other.maker === maker && other.closedMs !== null && other.closedMs > closedMs,
              );
              return newer.length < closedOrders;
            });
            expect(expected.map(({ oid }) => oid)).to.deep.equal(stay.map(([oid]) => oid));

            await store(suite.db, suite.writer, logs);
            await compactAll(logs, { effects, closedOrders }, createForgetting);
            expect(await kept(), 'anew in each step').to.deep.equal(expected);

            await store(suite.db, suite.writer, logs);
            const forgetting = createForgetting();
            let steps = 0;
            await compactAll(logs, { effects, closedOrders }, () => {
              if (resets[steps++ % resets.length] === true) forgetting.reset();
              return forgetting;
            });
            expect(await kept(), 'remembered').to.deep.equal(expected);
          },
        ),
        fcOptions(name === 'SQLite' ? 40 : 12),
      );
    });

    const closes = (from: number, to: number): Act[] =>
      Array.from({ length: to - from }, (_, i) => ({ kind: 'close', pick: from + i, reason: 'canceled' }));

    it('orders those of one time by their oids', async () => {
      const logs = logsOf([...suite.opens(6), ...closes(0, 1)]);
      const reason: CloseReason = 'replaced';
      logs.rows.at(-1)!.effects = [4, 2, 6, 3, 5].map((oid) => ({ type: 'close', oid, reason }));
      logs.rows.push({ ...logs.rows[0]!, orderSeq: 8, timeMs: 80, nonce: 8, effects: [] });
      await store(suite.db, suite.writer, logs);
      await compactAll(logs, { effects: 1_000, closedOrders: 2 }, createForgetting);
      expect(await oids()).to.deep.equal([1, 5, 6]);
    });

    it('deletes an order that ended before those that stay', async () => {
      const logs = logsOf([...suite.opens(6), ...closes(0, 5)]);
      await store(suite.db, suite.writer, logs);
      const forgetting = createForgetting();
      const limits = { ...LIMITS, effects: 1_000, closedOrders: 2 };
      const bounds = { orderSeq: 10, generation: 0, beforeMs: FAR_MS };
      await suite.writer.tx((tx) => compactStep(tx, bounds, limits, forgetting));
      expect(await oids()).to.deep.equal([3, 4, 5, 6]);
      const late = { oid: 5, maker: logs.rows[0]!.maker, closedMs: 1, hasFill: false };
      await suite.db.knex('folded_orders').where({ oid: 5 }).update({ state: 'canceled', closed_ms: 1 });
      await suite.writer.tx((tx) => forgetting.forget(tx, [late], 2));
      expect(await oids()).to.deep.equal([3, 4, 6]);
    });
  });
});
