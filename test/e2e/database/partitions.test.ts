/** `curvebook partitions`: old posts leave a PostgreSQL database at once, and nothing that is served or verified changes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { writeManifest } from '../../../deploy/manifest.js';
import { migrate } from '../../../ledger/db/db.js';
import { isUniqueViolation } from '../../../ledger/errors.js';
import { tableBytes } from '../../../ledger/db/storage.js';
import type { Stored } from '../../../ledger/db/tables.js';
import { readOperatorRows } from '../../../ledger/operator/operator-log.js';
import { readPublicationStates } from '../../../ledger/publications/publication-states.js';
import { insertOutbox, lastFinishedNonce, lastNonce, readUnmined } from '../../../ledger/transactions/outbox.js';
import {
  attachPartition,
  cutOutbox,
  detachPartition,
  findCandidate,
  readPartitions,
} from '../../../ledger/transactions/outbox-partitions.js';
import type { Db } from '../../../ledger/types.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../../support/keeper-stack.js';
import { runCurvebook, type Ran } from '../../support/console/terminal.js';

const DAY_MS = 86_400_000;
/** Blocks that a reorganisation may take back. */
const REORG_BLOCKS = 64;

forEachDatabase((name, _open, openBare) =>
  describe(`partitions of the outbox, ${name}`, function () {
    this.timeout(240_000);
    let chain: ManualChain;
    let stack: KeeperStack;
    let db: Db;
    let folder: string;

    before(async () => {
      chain = await startManualChain();
    });
    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      // Its tables are divided, so that no other test may get them.
      db = await openBare();
      await migrate(db);
      stack = await startKeepers(db, chain);
      folder = mkdtempSync(join(tmpdir(), 'curvebook-partitions-'));
      writeManifest(join(folder, 'manifest.json'), chain.manifest);
      writeFileSync(join(folder, 'settings'), `OPERATOR_ADDRESS=${chain.address('owner')}\n`);
      await chain.mine();
      await stack.watcher.scan();
    });
    afterEach(async () => {
      await stack.stop();
      rmSync(folder, { recursive: true });
    });

    async function run(...args: string[]): Promise<Ran> {
      const { url, schema } = locationOf(db);
      const database = schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
      const common = [
        '--manifest',
        join(folder, 'manifest.json'),
        '--database',
        database,
        '--env',
        join(folder, 'settings'),
      ];
      return runCurvebook([...args, ...common]);
    }

    if (name === 'SQLite') {
      it('are of PostgreSQL alone', async () => {
        for (const args of [['list'], ['cut'], ['detach', '1', '--yes'], ['attach', '1', '--yes']])
          expect((await run('partitions', ...args)).errors, args.join(' ')).to.match(
            /NOT_POSTGRESQL|only a PostgreSQL/,
          );
      });
      return;
    }

    let places = 0;
    /** Another curve, which lands. */
    async function post(): Promise<void> {
      places += 1;
      await stack.order(chain.address('maker1'), [
        { side: 'ask', priceTicks: 300_000n + BigInt(places), sizeLots: 5_000n },
      ]);
      // One curve is cut of one generation.
      await chain.mine();
      await stack.watcher.scan();
      expect(await stack.poster.round()).to.not.equal(null);
      await chain.mine();
      await stack.watcher.scan();
    }

    async function mineUntilFinal(): Promise<void> {
      for (let i = 0; i <= REORG_BLOCKS; i++) await chain.mine();
      await stack.watcher.scan();
    }

    /** Everything that was signed so far, as if it had been four days ago. */
    const age = (): Promise<number> => db.knex('outbox').decrement('sent_ms', 4 * DAY_MS);
    const stored = (table = 'outbox'): Promise<Stored<'outbox'>[]> =>
      db.knex(table).orderBy(['signer', 'nonce', 'hash']).select<Stored<'outbox'>[]>();

    async function posts(count: number): Promise<Stored<'outbox'>[]> {
      for (let i = 0; i < count; i++) await post();
      // The receipt of a post is read by the next round.
      await stack.poster.round();
      return stored();
    }

    /** What the logs say of posts and signers, and what follows from all of them. */
    async function answers(): Promise<unknown> {
      const signer = chain.address('poster');
      const range = { market: 0, afterSeq: 0, limit: 1_000, headSec: 0 };
      const states = (await readPublicationStates(db.knex, range)).map(({ state }) => state);
      const verified = await run('verify', '--json', '--rpc', chain.rpcUrl);
      expect(verified.code, verified.errors).to.equal(0);
      return {
        states,
        last: [await lastNonce(db.knex, signer), await lastFinishedNonce(db.knex, signer)],
        unmined: await readUnmined(db.knex),
        costs: await db.knex('post_costs').orderBy('nonce').select(),
        verified: JSON.parse(verified.output) as unknown,
      };
    }

    it('are cut, detached, dropped and put back while posts go on, as the runbook says', async () => {
      await posts(6);
      await age();
      expect(await run('partitions', 'list')).to.deep.include({ code: 0, output: 'the outbox is not divided\n' });
      const indexes = (): Promise<{ indexname: string }[]> =>
        db
          .knex('pg_indexes')
          .whereRaw('schemaname = current_schema()')
          .where({ tablename: 'outbox' })
          .orderBy('indexname')
          .select('indexname');
      const before = { rows: await stored(), indexes: await indexes() };
      // A cut of three days ago has ended since.
      await cutOutbox(db, Date.now() - 3 * DAY_MS);
      expect(await stored()).to.deep.equal(before.rows);
      expect(await indexes(), 'their names, which later changes of the tables use').to.deep.equal(before.indexes);
      await post();
      await mineUntilFinal();
      await stack.poster.round();
      const whole = await stored('outbox_part_1');
      expect(whole).to.deep.equal(before.rows);
      const known = await answers();

      const done = await run('partitions', 'detach', '1', '--yes', '--json');
      expect(done.code, done.errors).to.equal(0);
      const said = JSON.parse(done.output) as { rows: number; kept: number; digest: string };
      expect(said).to.deep.include({ ok: true, no: 1, rows: whole.length });
      expect(said.kept).to.equal(1);
      expect(
        (await stored('outbox_part_1')).map(({ nonce }) => nonce),
        'the newest',
      ).to.deep.equal([whole.at(-1)!.nonce]);
      expect(await answers(), 'nothing that is served or verified changes').to.deep.equal(known);
      const [act] = (await readOperatorRows(db.knex, { after: 0, limit: 100 })).slice(-1);
      expect(act).to.deep.include({ kind: 'detachPartition', item: 'outbox_part_1' });
      expect(JSON.parse(act!.note)).to.deep.equal({ rows: said.rows, kept: said.kept, digest: said.digest });
      expect((await run('partitions', 'list')).output).to.match(
        /^1: the beginning to .*, detached: .*\n2: .* to now, \d+ bytes\n$/,
      );

      // A file in the operator's hands; the database is free of it at once.
      await db.knex.raw('create table outbox_dump as select * from outbox_part_1_detached');
      await db.knex.raw('drop table outbox_part_1_detached');
      await post();
      const newer = (await stored()).filter(({ sent_ms: sentMs }) => sentMs > Date.now() - DAY_MS);
      expect((await run('partitions', 'attach', '1', '--yes')).errors).to.match(
        /there is no table outbox_part_1_detached/,
      );
      await db.knex.raw('create table outbox_part_1_detached (like outbox including defaults)');
      await db.knex.raw('insert into outbox_part_1_detached select * from outbox_dump');
      await db.knex('outbox_part_1_detached').where({ hash: whole[0]!.hash }).update({ raw: '0x' });
      expect((await run('partitions', 'attach', '1', '--yes')).errors).to.match(/with hash 0x\w+; \d+ with 0x\w+ left/);
      await db.knex('outbox_part_1_detached').where({ hash: whole[0]!.hash }).update({ raw: whole[0]!.raw });
      const back = await run('partitions', 'attach', '1', '--yes');
      expect(back.code, back.errors).to.equal(0);
      expect(await stored('outbox_part_1')).to.deep.equal(whole);
      expect(await stored()).to.deep.equal([...whole, ...newer]);
      expect((await readPartitions(db)).map(({ detached }) => detached)).to.deep.equal([null, null]);
      await post();
    });

    it('are in backups, and restored as they are', async () => {
      await posts(4);
      await age();
      await cutOutbox(db, Date.now() - 3 * DAY_MS);
      await post();
      await mineUntilFinal();
      await stack.poster.round();
      expect((await run('partitions', 'detach', '1', '--yes')).code).to.equal(0);
      await db.knex.raw('drop table outbox_part_1_detached');
      const before = [await stored(), (await readPartitions(db)).map(({ bytes: _, ...one }) => one)];
      expect((await run('backup', join(folder, 'file'))).code).to.equal(0);
      const { schema } = locationOf(db);
      await db.knex.raw('alter schema ?? rename to ??', [schema!, `${schema}_lost`]);
      try {
        const restored = await run('restore', join(folder, 'file'));
        expect(restored.code, restored.output + restored.errors).to.equal(0);
        expect([await stored(), (await readPartitions(db)).map(({ bytes: _, ...one }) => one)]).to.deep.equal(before);
        expect((await run('partitions', 'cut')).code).to.equal(0);
      } finally {
        await db.knex.raw('drop schema ?? cascade', [`${schema}_lost`]);
      }
    });

    it('keep what is of use: other transactions, given up ones, unknown ones, and posts that nothing explains', async () => {
      const rows = await posts(5);
      const [first] = rows;
      const signer = chain.address('settler');
      const other = (i: number, values: Partial<Stored<'outbox'>>): Stored<'outbox'> => ({
        ...first!,
        signer,
        nonce: i,
        hash: `0x${String(i).padStart(64, '0')}`,
        ...values,
      });
      await age();
      await mineUntilFinal();
      await stack.poster.round();
      await cutOutbox(db, Date.now() - 3 * DAY_MS);
      const kept = [
        other(1, { tx_key: 'settle:1' }),
        other(2, { finished: 2 }),
        other(3, { tx_key: 'post:0.999' }),
        other(4, {}),
        other(5, { tx_key: 'settle:2', finished: 0 }),
      ];
      const sentMs = first!.sent_ms - 4 * DAY_MS;
      await db.knex('outbox').insert(kept.map((row) => ({ ...row, sent_ms: sentMs })));
      const cost = { ...(await db.knex('post_costs').first())!, signer, nonce: 4, hash: '0x' as const };
      await db.knex('post_costs').insert(cost);
      // Their bytes are made up.
      expect((await run('partitions', 'detach', '1', '--yes')).errors).to.match(/its bytes hash to|it has nonce/);
      const head = await chain.provider.getBlockNumber();
      const candidate = await findCandidate(db, 1, { nowMs: Date.now(), finalBlock: head - REORG_BLOCKS });
      await detachPartition(db, candidate, { check: () => Promise.resolve(), timeMs: Date.now() });
      const left = await stored('outbox_part_1');
      expect(left.filter((row) => row.signer === signer).map(({ nonce }) => nonce)).to.deep.equal([1, 2, 3, 4, 5]);
      expect(left.filter((row) => row.signer !== signer).map(({ nonce }) => nonce)).to.deep.equal([rows.at(-1)!.nonce]);
    });

    it('are not detached while posts may change, and none that is not what it was', async () => {
      const refused = async (no: string, reason: RegExp): Promise<void> => {
        const before = { rows: await stored(), acts: await readOperatorRows(db.knex, { after: 0, limit: 100 }) };
        const { code, errors } = await run('partitions', 'detach', no, '--yes');
        expect(code).to.equal(1);
        expect(errors).to.match(reason);
        expect({ rows: await stored(), acts: await readOperatorRows(db.knex, { after: 0, limit: 100 }) }).to.deep.equal(
          before,
        );
        const tables = await db
          .knex('pg_tables')
          .whereRaw("schemaname = current_schema() and tablename ~ '_(kept|detached)$'");
        expect(tables).to.deep.equal([]);
      };
      await posts(3);
      await refused('1', /the outbox has no partition 1/);
      await age();
      await cutOutbox(db, Date.now() - 3 * DAY_MS);
      await refused('1', /\d posts of partition 1 are not final, post:0\.\d among them/);
      await mineUntilFinal();
      await stack.poster.round();
      await refused('2', /partition 2 is the newest one/);
      await refused('7', /the outbox has no partition 7/);
      expect((await run('partitions', 'detach')).errors).to.match(/name the number of a partition/);
      expect((await run('partitions', 'detach', '1')).errors).to.match(/nobody to ask/);
      expect((await run('partitions', 'attach', '1', '--yes')).errors).to.match(/partition 1 is not detached/);

      const [row] = await stored('outbox_part_1');
      const at = { hash: row!.hash };
      await db
        .knex('outbox')
        .where(at)
        .update({ raw: `${row!.raw.slice(0, -2)}00` as `0x${string}` });
      await refused('1', /its bytes hash to/);
      await db.knex('outbox').where(at).update({ raw: row!.raw, nonce: 900 });
      await refused('1', /not final|it has nonce/);
      await db.knex('outbox').where(at).update({ nonce: row!.nonce });
      const [published] = await db.knex('publications').where({ tx_key: row!.tx_key });
      await db
        .knex('publications')
        .where({ tx_key: row!.tx_key })
        .update({ deadline_sec: published!.deadline_sec + 1 });
      await refused('1', /it posted something else than its publications/);
      await db.knex('publications').where({ tx_key: row!.tx_key }).update({ deadline_sec: published!.deadline_sec });
      expect((await run('partitions', 'detach', '1', '--yes')).code).to.equal(0);
      await db.knex.raw('drop table outbox_part_1_detached');
      expect((await run('partitions', 'detach', '1', '--yes')).errors).to.match(/partition 1 is detached/);
    });

    it('wait for others no longer than a second at a time, and give up without a change', async () => {
      await posts(2);
      const before = await stored();
      const reader = await db.knex.transaction();
      await reader.raw('lock table outbox in access share mode');
      try {
        const { code, output } = await run('partitions', 'cut', '--json');
        expect(code).to.equal(1);
        expect(JSON.parse(output)).to.deep.include({ ok: false, code: 'LOCKED' });
        // What comes after it does not wait for it any more.
        await post();
      } finally {
        await reader.rollback();
      }
      expect((await stored()).slice(0, before.length)).to.deep.equal(before);
      expect((await run('partitions', 'cut')).output).to.match(/^1: .*\n2: .*\n$/);
    });

    /** Whether the outbox takes a row of any time. */
    async function expectTakesAll(): Promise<void> {
      const [row] = await stored();
      const late = { ...row!, hash: `0x${'0f'.repeat(32)}` as const, sent_ms: Date.now() + 900 * DAY_MS };
      await db.knex.transaction(async (tx) => {
        await tx('outbox').insert(late);
        await tx('outbox').where({ hash: late.hash }).delete();
      });
    }

    it('leave no bound that would refuse rows, however a cut ends', async () => {
      await posts(2);
      for (const no of [2, 3]) {
        const before = [await stored(), await readPartitions(db)];
        const nowMs = Date.now() + (no - 2) * 9 * DAY_MS;
        // Others hold what the cut needs last, when everything else is done.
        const other = await db.knex.transaction();
        await other.raw('create table ?? (nothing int)', [`outbox_part_${no}`]);
        try {
          const long = await cutOutbox(db, nowMs, { holdMs: 200 }).catch((error: unknown) => error);
          expect(long).to.have.property('code', 'TOO_LONG');
          await expectTakesAll();
          const locked = await cutOutbox(db, nowMs).catch((error: unknown) => error);
          expect(locked).to.have.property('code', 'LOCKED');
          await expectTakesAll();
          const killed = cutOutbox(db, nowMs).catch((error: unknown) => error);
          const kill = `select pg_terminate_backend(pid) from pg_stat_activity
            where query like 'create table%partition of outbox%' and state = 'active' and query like ?
              and pid in (select pid from pg_locks where relation = 'outbox'::regclass::oid and granted)`;
          for (let ended = 0; ended === 0;)
            ended = (await db.knex.raw<{ rows: unknown[] }>(kill, [`%outbox_part_${no}%`])).rows.length;
          expect(await killed, 'its connection').to.be.instanceOf(Error);
          await expectTakesAll();
        } finally {
          await other.rollback();
        }
        expect([await stored(), await readPartitions(db)]).to.deep.equal(before);
        expect(await cutOutbox(db, nowMs)).to.have.length(no);
        await expectTakesAll();
      }
      const checks = await db
        .knex('pg_constraint')
        .whereRaw("contype = 'c' and connamespace = current_schema()::regnamespace and conname like 'outbox%'");
      expect(checks).to.deep.equal([]);
    });

    it('are changed by one command at a time', async () => {
      await posts(4);
      await age();
      const cuts = await Promise.allSettled([1, 2].map(() => cutOutbox(db, Date.now() - 3 * DAY_MS)));
      for (const cut of cuts) if (cut.status === 'rejected') expect(cut.reason).to.have.property('code', 'BUSY');
      expect(await readPartitions(db)).to.have.length(2);
      await mineUntilFinal();
      await stack.poster.round();
      const whole = await stored('outbox_part_1');
      const head = await chain.provider.getBlockNumber();
      const candidate = await findCandidate(db, 1, { nowMs: Date.now(), finalBlock: head - REORG_BLOCKS });
      let end = (): void => {};
      const ended = new Promise<void>((resolve) => (end = resolve));
      let began = (): void => {};
      const begun = new Promise<void>((resolve) => (began = resolve));
      const check = (): Promise<void> => (began(), ended);
      const first = detachPartition(db, candidate, { check, timeMs: Date.now() });
      await begun;
      for (const args of [['cut'], ['detach', '1', '--yes'], ['attach', '1', '--yes']]) {
        const { code, output } = await run('partitions', ...args, '--json');
        expect(code, args[0]).to.equal(1);
        expect(JSON.parse(output), args[0]).to.deep.include({ ok: false, code: 'BUSY' });
      }
      end();
      expect(await first).to.deep.include({ rows: whole.length, kept: 1 });
      const second = await detachPartition(db, candidate, { check, timeMs: Date.now() }).catch((e: unknown) => e);
      expect(second).to.have.property('code', 'IS_DETACHED');
      expect(await stored('outbox_part_1_detached')).to.deep.equal(whole);
      const attached = await Promise.allSettled([1, 2].map(() => attachPartition(db, 1, Date.now())));
      const failed = attached.flatMap((one) => (one.status === 'rejected' ? [one.reason as { code: string }] : []));
      expect(failed.map(({ code }) => code)).to.have.length(1);
      expect(failed[0]!.code).to.be.oneOf(['NOT_DETACHED', 'BUSY']);
      expect(await stored('outbox_part_1')).to.deep.equal(whole);
    });

    it('are not detached when a row changes while they are checked', async () => {
      const [row] = await posts(3);
      await age();
      await cutOutbox(db, Date.now() - 3 * DAY_MS);
      await mineUntilFinal();
      await stack.poster.round();
      const head = await chain.provider.getBlockNumber();
      const candidate = await findCandidate(db, 1, { nowMs: Date.now(), finalBlock: head - REORG_BLOCKS });
      const at = { hash: row!.hash };
      const before = await stored();
      const check = async (): Promise<void> => void (await db.knex('outbox').where(at).update({ finished: 0 }));
      const changed = await detachPartition(db, candidate, { check, timeMs: Date.now() }).catch((e: unknown) => e);
      expect(changed).to.have.property('code', 'CHANGED');
      await db.knex('outbox').where(at).update({ finished: 1 });
      expect(await stored()).to.deep.equal(before);
    });

    it('take every row, whenever it is signed, and each transaction once', async () => {
      const [first] = await posts(1);
      const bytes = (await tableBytes(db)).get('outbox');
      expect((await run('partitions', 'cut')).output).to.match(/^1: the beginning to .*\n2: .* to now, \d+ bytes\n$/);
      expect((await run('partitions', 'cut')).output, 'a second one has nothing to do').to.match(
        /^1: .*\n2: .* to now, \d+ bytes\n$/,
      );
      const [, newest] = await readPartitions(db);
      expect(newest!.fromMs! - Date.now()).to.be.greaterThan(DAY_MS - 60_000);
      const sent = (hash: string, sentMs: number) =>
        db.knex.transaction((tx) =>
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
      expect((await tableBytes(db)).get('outbox'), 'its partitions count as the outbox').to.be.greaterThan(bytes!);
      const ahead = await cutOutbox(db, newest!.fromMs! + DAY_MS).catch((error: unknown) => error);
      expect(ahead).to.have.property('code', 'ROWS_AHEAD');
      await sent(`0x${'04'.repeat(32)}`, newest!.fromMs! + 900 * DAY_MS);
      await db
        .knex('outbox')
        .where('sent_ms', '>', newest!.fromMs! + DAY_MS)
        .delete();
      await cutOutbox(db, newest!.fromMs! + DAY_MS);
      expect((await readPartitions(db)).map(({ no }) => no)).to.deep.equal([1, 2, 3]);
      const { fromMs, toMs } = (await readPartitions(db))[1]!;
      expect([fromMs, toMs]).to.deep.equal([newest!.fromMs, newest!.fromMs! + 3 * DAY_MS]);
    });
  }),
);
