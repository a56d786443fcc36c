/** Compaction that is killed in the middle, read beside, or looked at by its share of the database. */
import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { DAY_MS } from '../../../core/book/schedules.js';
import { LogCompactedError } from '../../../ledger/errors.js';
import { readCompactionPosition } from '../../../ledger/orders/compacted-book.js';
import { createFollower } from '../../../ledger/orders/follower.js';
import { readStorage, SHARES, tableBytes } from '../../../ledger/db/storage.js';
import { migrate } from '../../../ledger/db/db.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import {
  compactedLog,
  markets,
  FAR_MS,
  act,
  logsOf,
  store,
  stateOf,
  bookAt,
  compact,
} from '../../support/worlds/compacted-log.js';

describe('compaction of the order log', function () {
  this.timeout(120_000);

  forEachDatabase((name, open, openBare) => {
    const suite = compactedLog(open);
    const { opens } = suite;

    it('says of a cut before the compacted book that it was compacted, and lets a reader that fell behind begin anew', async () => {
      const logs = logsOf(opens(9));
      await store(suite.db, suite.writer, logs);
      const behind = createFollower(markets);
      await behind.advance(suite.db.knex, { orderSeq: 2, generation: 1 });
      await compact(suite.writer, { orderSeq: 6, generation: 1, beforeMs: FAR_MS });
      const failure = async (work: Promise<unknown>): Promise<unknown> =>
        work.then(
          () => null,
          (error: unknown) => error,
        );
      expect(await failure(behind.advance(suite.db.knex, { orderSeq: 9, generation: 1 }))).to.be.instanceOf(
        LogCompactedError,
      );
      expect(await failure(behind.advance(suite.db.knex, { orderSeq: 5, generation: 1 }))).to.be.instanceOf(
        LogCompactedError,
      );
      expect(await failure(bookAt(suite.db, { orderSeq: 5, generation: 1 }))).to.be.instanceOf(LogCompactedError);
      expect(await failure(bookAt(suite.db, { orderSeq: 12, generation: 1 }))).to.be.instanceOf(RangeError);
      expect((await bookAt(suite.db, { orderSeq: 9, generation: 1 })).open.flat()).to.have.length(9);
    });

    it('has its share of the database shown, by rows of the last day and bytes of each', async () => {
      const logs = logsOf(opens(40));
      // Whose files no other test has grown.
      suite.db = await openBare();
      await migrate(suite.db);
      await store(suite.db, await acquireWriter(suite.db, 'order'), logs);
      // Rows are made 10 ms apart, from 10 ms on.
      const { bytes, shares, otherBytes } = await readStorage(suite.db, DAY_MS + 300);
      const orders = shares.find((share) => share.name === 'order rows')!;
      expect(orders).to.include({ count: 40, lastDay: 10, bytesLastDay: 10 * orders.bytesEach });
      expect(orders.bytesEach).to.be.within(100, 3_000);
      expect(bytes).to.be.greaterThan(40 * orders.bytesEach);
      expect(shares.find((share) => share.name === 'fills')).to.include({ count: 0, bytesEach: 0, bytesLastDay: 0 });
      expect(otherBytes).to.be.within(1, bytes);
      // What is in no share must not grow with trading: these are the tables whose size is that of the platform.
      const sizes = await tableBytes(suite.db);
      const others = [...sizes.keys()].filter((table) => !SHARES.some(({ tables }) => tables.includes(table)));
      expect(others.filter((table) => !/^(knex_|sqlite_)/.test(table))).to.have.members([
        ...[
          'meta',
          'writers',
          'operator_log',
          'markets',
          'custody_events',
          'halts',
          'balances',
          'suspense',
          'suspense_assignments',
          'token_findings',
          'claims',
          'claim_changes',
        ],
        ...[
          'taker_fees',
          'settlements',
          'settlement_outcomes',
          'settlement_costs',
          'reversals',
          'orphaned_rows',
          'capital_origins',
        ],
        ...[
          'fold_position',
          'folded_signers',
          'folded_makers',
          'folded_agents',
          'scan_times',
          'swap_reverts',
          'swap_executors',
          'pair_gains',
        ],
      ]);
      for (const { tables } of SHARES) expect([...sizes.keys()]).to.include.members([...tables]);
    });

    it('loses nothing when it is killed in the middle', async () => {
      const acts = fc.sample(act, { numRuns: 90, seed: 7 });
      const logs = logsOf([...opens(5), ...acts]);
      await store(suite.db, suite.writer, logs);
      const expected = await stateOf(suite.db);
      await suite.writer.release();
      const { url, schema = '-' } = locationOf(suite.db);
      const to = [`${logs.rows.length - 1}`, `${logs.generations.length}`];
      let kills = 0;
      for (let done = false; !done;) {
        const args = ['--import', 'tsx', 'test/support/children/compaction-child.ts', url, schema, ...to];
        const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
        child.stdin.on('error', () => undefined);
        const ended = once(child, 'exit');
        let steps = 0;
        for await (const line of createInterface({ input: child.stdout })) {
          if (line === 'done') done = true;
          steps += 1;
          // So that it is on its way when it is killed, and no further than one step on.
          child.stdin.write('go\n');
          if (steps === 4 + kills && kills < 3) {
            child.kill('SIGKILL');
            kills += 1;
            break;
          }
        }
        const [code] = (await ended) as [number | null];
        expect(code, 'exit code').to.be.oneOf([0, null]);
        expect(await stateOf(suite.db)).to.deep.equal(expected);
      }
      expect(kills).to.equal(3);
      expect((await readCompactionPosition(suite.db.knex)).orderSeq).to.equal(logs.rows.length - 1);
    });
  });
});
