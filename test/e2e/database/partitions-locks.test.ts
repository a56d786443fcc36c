/** Partitions of the outbox are cut, detached and attached beside keepers, one command at a time, and hold nobody up for long. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { isUniqueViolation } from '../../../ledger/errors.js';
import { tableBytes } from '../../../ledger/db/storage.js';
import { readOperatorRows } from '../../../ledger/operator/operator-log.js';
import { insertOutbox } from '../../../ledger/transactions/outbox.js';
import {
  attachPartition,
  cutOutbox,
  detachPartition,
  readPartitions,
} from '../../../ledger/transactions/outbox-partitions.js';
import { DAY_MS, forPostgresOutbox } from '../../support/databases/partitions-suite.js';

forPostgresOutbox((suite) => {
  const { run, post, posts, mineUntilFinal, age, stored } = suite;

  /** A transaction that goes on after a statement: one that says no more would be ended once it blocks others. Returns what ends it. */
  async function working(statement: string, ...values: string[]): Promise<() => Promise<void>> {
    const tx = await suite.db.knex.transaction();
    await tx.raw(statement, values);
    const stop = new AbortController();
    const work = (async () => {
      while (!stop.signal.aborted) {
        await tx.raw('select 1');
        await sleep(200, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    })();
    return async () => {
      stop.abort();
      await work;
      await tx.rollback();
    };
  }

  it('wait for others no longer than a second at a time, and give up without a change', async () => {
    await posts(2);
    const before = await stored();
    const endReader = await working('lock table outbox in access share mode');
    try {
      const { code, output } = await run('partitions', 'cut', '--json');
      expect(code).to.equal(1);
      expect(JSON.parse(output)).to.deep.include({ ok: false, code: 'LOCKED' });
      // What comes after it does not wait for it any more.
      await post();
    } finally {
      await endReader();
    }
    expect((await stored()).slice(0, before.length)).to.deep.equal(before);
    expect((await run('partitions', 'cut')).output).to.match(/^1: .*\n2: .*\n$/);
  });

  /** Whether the outbox takes a row of any time. */
  async function expectTakesAll(): Promise<void> {
    const [row] = await stored();
    const late = { ...row!, hash: `0x${'0f'.repeat(32)}` as const, sent_ms: Date.now() + 900 * DAY_MS };
    await suite.db.knex.transaction(async (tx) => {
      await tx('outbox').insert(late);
      await tx('outbox').where({ hash: late.hash }).delete();
    });
  }

  it('leave no bound that would refuse rows, however a cut ends', async () => {
    await posts(2);
    for (const no of [2, 3]) {
      const before = [await stored(), await readPartitions(suite.db)];
      const nowMs = Date.now() + (no - 2) * 9 * DAY_MS;
      // Others hold what the cut needs last, when everything else is done.
      const endOther = await working('create table ?? (nothing int)', `outbox_part_${no}`);
      try {
        const long = await cutOutbox(suite.db, nowMs, { holdMs: 200 }).catch((error: unknown) => error);
        expect(long).to.have.property('code', 'TOO_LONG');
        await expectTakesAll();
        const locked = await cutOutbox(suite.db, nowMs).catch((error: unknown) => error);
        expect(locked).to.have.property('code', 'LOCKED');
        await expectTakesAll();
        const killed = cutOutbox(suite.db, nowMs).catch((error: unknown) => error);
        const kill = `select pg_terminate_backend(pid) from pg_stat_activity
          where query like 'create table%partition of outbox%' and state = 'active' and query like ?
            and pid in (select pid from pg_locks where relation = 'outbox'::regclass::oid and granted)`;
        for (let ended = 0; ended === 0;)
          ended = (await suite.db.knex.raw<{ rows: unknown[] }>(kill, [`%outbox_part_${no}%`])).rows.length;
        expect(await killed, 'its connection').to.be.instanceOf(Error);
        await expectTakesAll();
      } finally {
        await endOther();
      }
      expect([await stored(), await readPartitions(suite.db)]).to.deep.equal(before);
      expect(await cutOutbox(suite.db, nowMs)).to.have.length(no);
      await expectTakesAll();
    }
    const checks = await suite.db
      .knex('pg_constraint')
      .whereRaw("contype = 'c' and connamespace = current_schema()::regnamespace and conname like 'outbox%'");
    expect(checks).to.deep.equal([]);
  });

  it('hold posts up no longer than they may when they are detached and attached, and give up without a change', async () => {
    await posts(3);
    await age();
    await cutOutbox(suite.db, Date.now() - 3 * DAY_MS);
    await mineUntilFinal();
    const candidate = await suite.candidate();
    const detach = (holdMs?: number) =>
      detachPartition(suite.db, candidate, { check: () => Promise.resolve(), timeMs: Date.now(), holdMs });
    const attach = (holdMs?: number) => attachPartition(suite.db, 1, Date.now(), { holdMs });
    const expectTooLong = async (act: (holdMs: number) => Promise<unknown>): Promise<void> => {
      const state = async () => [
        await stored(),
        (await readPartitions(suite.db)).map(({ detached }) => detached),
        await readOperatorRows(suite.db.knex, { after: 0, limit: 100 }),
      ];
      const before = await state();
      for (const holdMs of [200, 0])
        expect(await act(holdMs).catch((error: unknown) => error), `${holdMs} ms`).to.have.property('code', 'TOO_LONG');
      expect(await state()).to.deep.equal(before);
    };
    // Others hold what is needed last, under the lock.
    const other = await suite.db.knex.transaction();
    await other.raw('create table outbox_part_1_detached (nothing int)');
    try {
      await expectTooLong(detach);
      await post();
    } finally {
      await other.rollback();
    }
    await detach();
    await suite.db.knex.raw(`create function slowly() returns trigger language plpgsql as
      $$ begin perform pg_sleep(1); return null; end $$`);
    await suite.db.knex.raw(
      'create trigger slow before update on outbox_part_1_detached for each statement execute function slowly()',
    );
    await expectTooLong(attach);
    await suite.db.knex.raw('drop trigger slow on outbox_part_1_detached');
    await attach();
    await post();
  });

  it('are changed by one command at a time', async () => {
    await posts(4);
    await age();
    const cuts = await Promise.allSettled([1, 2].map(() => cutOutbox(suite.db, Date.now() - 3 * DAY_MS)));
    for (const cut of cuts) if (cut.status === 'rejected') expect(cut.reason).to.have.property('code', 'BUSY');
    expect(await readPartitions(suite.db)).to.have.length(2);
    await mineUntilFinal();
    const whole = await stored('outbox_part_1');
    const candidate = await suite.candidate();
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    let began = (): void => {};
    const begun = new Promise<void>((resolve) => (began = resolve));
    const check = (): Promise<void> => (began(), ended);
    const first = detachPartition(suite.db, candidate, { check, timeMs: Date.now() });
    await begun;
    for (const args of [['cut'], ['detach', '1', '--yes'], ['attach', '1', '--yes']]) {
      const { code, output } = await run('partitions', ...args, '--json');
      expect(code, args[0]).to.equal(1);
      expect(JSON.parse(output), args[0]).to.deep.include({ ok: false, code: 'BUSY' });
    }
    end();
    expect(await first).to.deep.include({ rows: whole.length, kept: 1 });
    const second = await detachPartition(suite.db, candidate, { check, timeMs: Date.now() }).catch((e: unknown) => e);
    expect(second).to.have.property('code', 'IS_DETACHED');
    expect(await stored('outbox_part_1_detached')).to.deep.equal(whole);
    const attached = await Promise.allSettled([1, 2].map(() => attachPartition(suite.db, 1, Date.now())));
    const failed = attached.flatMap((one) => (one.status === 'rejected' ? [one.reason as { code: string }] : []));
    expect(failed.map(({ code }) => code)).to.have.length(1);
    expect(failed[0]!.code).to.be.oneOf(['NOT_DETACHED', 'BUSY']);
    expect(await stored('outbox_part_1')).to.deep.equal(whole);
  });

  it('are not detached when a row changes while they are checked', async () => {
    const [row] = await posts(3);
    await age();
    await cutOutbox(suite.db, Date.now() - 3 * DAY_MS);
    await mineUntilFinal();
    const candidate = await suite.candidate();
    const at = { hash: row!.hash };
    const before = await stored();
    const check = async (): Promise<void> => void (await suite.db.knex('outbox').where(at).update({ finished: 0 }));
    const changed = await detachPartition(suite.db, candidate, { check, timeMs: Date.now() }).catch((e: unknown) => e);
    expect(changed).to.have.property('code', 'CHANGED');
    await suite.db.knex('outbox').where(at).update({ finished: 1 });
    expect(await stored()).to.deep.equal(before);
  });

  it('take every row, whenever it is signed, and each transaction once', async () => {
    const [first] = await posts(1);
    const bytes = (await tableBytes(suite.db)).get('outbox');
    expect((await run('partitions', 'cut')).output).to.match(/^1: the beginning to .*\n2: .* to now, \d+ bytes\n$/);
    expect((await run('partitions', 'cut')).output, 'a second one has nothing to do').to.match(
      /^1: .*\n2: .* to now, \d+ bytes\n$/,
    );
    const [, newest] = await readPartitions(suite.db);
    expect(newest!.fromMs! - Date.now()).to.be.greaterThan(DAY_MS - 60_000);
    const sent = (hash: string, sentMs: number) =>
      suite.db.knex.transaction((tx) =>
        insertOutbox(tx, {
          ...{ txKey: 'post:0.1', signer: first!.signer, nonce: 77, to: first!.to_address, raw: first!.raw },
          ...{ hash: hash as `0x${string}`, sentMs, validUntilSec: null },
        }),
      );
    await sent(`0x${'01'.repeat(32)}`, 0);
    await sent(`0x${'02'.repeat(32)}`, newest!.fromMs! - 1);
    await sent(`0x${'03'.repeat(32)}`, newest!.fromMs! + 400 * DAY_MS);
    expect(await stored('outbox_part_2')).to.have.length(1);
    expect(await stored()).to.have.length(4);
    const again = await sent(`0x${'03'.repeat(32)}`, 5).catch((error: unknown) => error);
    expect(isUniqueViolation(again)).to.equal(true);
    expect((await tableBytes(suite.db)).get('outbox'), 'its partitions count as the outbox').to.be.greaterThan(bytes!);
    const ahead = await cutOutbox(suite.db, newest!.fromMs! + DAY_MS).catch((error: unknown) => error);
    expect(ahead).to.have.property('code', 'ROWS_AHEAD');
    await sent(`0x${'04'.repeat(32)}`, newest!.fromMs! + 900 * DAY_MS);
    await suite.db
      .knex('outbox')
      .where('sent_ms', '>', newest!.fromMs! + DAY_MS)
      .delete();
    await cutOutbox(suite.db, newest!.fromMs! + DAY_MS);
    expect((await readPartitions(suite.db)).map(({ no }) => no)).to.deep.equal([1, 2, 3]);
    const { fromMs, toMs } = (await readPartitions(suite.db))[1]!;
    expect([fromMs, toMs]).to.deep.equal([newest!.fromMs, newest!.fromMs! + 3 * DAY_MS]);
  });
});
