/** Steps of the compactor: how much each may do, and what one that failed leaves behind. */
import { expect } from 'chai';
import { pino } from 'pino';
import { createCompactor, createStepSize } from '../../keepers/compactor.js';
import { MAX_REORG_BLOCKS } from '../../keepers/watcher/reconcile.js';
import type { Writer } from '../../ledger/types.js';
import { forEachDatabase } from '../support/db.js';
import { compactedLog, logsOf, store, storeBlocks, type Act } from '../support/worlds/compacted-log.js';

describe('steps of the compactor', function () {
  this.timeout(60_000);

  it('do half after one that took too long, and more after one that was used up soon', () => {
    const size = createStepSize();
    const first = size.limits();
    expect(first).to.deep.equal({ effects: 2_000, generations: 200 });
    size.note(10, { effects: 2_000, generations: 0 });
    expect(size.limits()).to.deep.equal({ effects: 4_000, generations: 400 });
    size.note(40, { effects: 4_000, generations: 0 });
    expect(size.limits().effects, 'near the most that one may take').to.equal(4_000);
    size.note(10, { effects: 1_000, generations: 0 });
    expect(size.limits().effects, 'nothing more was left').to.equal(4_000);
    size.note(10, { effects: 0, generations: 400 });
    expect(size.limits().effects, 'as many generations as it may').to.equal(8_000);
    size.restart();
    expect(size.limits(), 'a new round').to.deep.equal(first);
    size.note(51, { effects: 10, generations: 0 });
    expect(size.limits()).to.deep.equal({ effects: 1_000, generations: 100 });
    size.restart();
    expect(size.limits().effects, 'a new round after slow steps').to.equal(1_000);
    size.note(51, null);
    expect(size.limits().effects).to.equal(500);
  });

  it('stay within what is always possible', () => {
    const size = createStepSize();
    for (let i = 0; i < 20; i += 1) size.note(10, { effects: size.limits().effects, generations: 0 });
    expect(size.limits()).to.deep.equal({ effects: 20_000, generations: 2_000 });
    for (let i = 0; i < 20; i += 1) size.note(1_000, null);
    expect(size.limits()).to.deep.equal({ effects: 500, generations: 50 });
  });

  forEachDatabase((_name, open) => {
    const suite = compactedLog(open);

    it('know nothing of a step that failed', async () => {
      const closes = Array.from({ length: 5 }, (_, pick): Act => ({ kind: 'close', pick, reason: 'canceled' }));
      const { rows } = logsOf([...suite.opens(6), ...closes, ...suite.opens(1)]);
      const generations = Array.from({ length: MAX_REORG_BLOCKS + 2 }, () => []);
      await store(suite.db, suite.writer, { rows, generations });
      await storeBlocks(suite.db, generations.length);
      let failures = 0;
      const tx: Writer['tx'] = (run) =>
        suite.writer.tx(async (inner) => {
          const result = await run(inner);
          const isStep = (await inner('fold_position').first()) !== undefined;
          if (!isStep || failures > 0) return result;
          failures += 1;
          throw new Error('the disk is full');
        });
      const compactor = createCompactor({
        writer: { ...suite.writer, tx },
        retentionMs: 0,
        maxRows: 0,
        closedOrders: 2,
        nowMs: () => Date.now(),
        logger: pino({ level: 'silent' }),
      });
      const { signal } = new AbortController();
      const failure: unknown = await compactor.compact(signal).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error).with.property('message', 'the disk is full');
      expect(await suite.db.knex('folded_orders').select()).to.have.length(0);
      expect(await compactor.compact(signal)).to.include({ orderRows: 11 });
      const kept = await suite.db.knex('folded_orders').orderBy('oid').select();
      expect(kept.map(({ oid }) => oid)).to.deep.equal([4, 5, 6]);
    });
  });
});
