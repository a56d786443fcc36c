/** `curvebook backup` and `restore`: one consistent state while writers go on, and nothing is overwritten. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { MaxUint256, type ContractTransactionResponse } from 'ethers';
import { EXIT_DIFFERENCE } from '../../cli/exit-codes.js';
import { writeManifest } from '../../deploy/manifest.js';
import { openDb } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';
import { custodyOf, GAS, type Custody } from '../support/custody.js';
import { forEachDatabase, locationOf } from '../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { startProgram } from '../support/console/program.js';
import { runCurvebook, type Ran } from '../support/console/terminal.js';

forEachDatabase((name, open) =>
  describe(`backups, ${name}`, function () {
    this.timeout(60_000);
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;
    let folder: string;
    const schemas: string[] = [];

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
    });
    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      stack = await startKeepers(await open(), chain);
      custody = custodyOf(chain, stack);
      await custody.mined();
      folder = mkdtempSync(join(tmpdir(), 'curvebook-backup-'));
      writeManifest(join(folder, 'manifest.json'), chain.manifest);
    });
    afterEach(async () => {
      await stack.stop();
      for (const schema of schemas.splice(0)) await stack.db.knex.raw('drop schema if exists ?? cascade', [schema]);
      rmSync(folder, { recursive: true });
    });

    /** A deposit, which makes postings and a balance. */
    const fund = (): Promise<string[]> =>
      custody.mined(
        () =>
          chain.tokenAs('WETH', 'maker1').getFunction('approve')(
            chain.manifest.contracts.custodian,
            MaxUint256,
            GAS,
          ) as Promise<ContractTransactionResponse>,
        () => custody.as('maker1').deposit(custody.token('WETH'), custody.units('WETH', '10'), GAS),
      );

    const at = (file: string): string => join(folder, file);

    function urlOf(db: Db): string {
      const { url, schema } = locationOf(db);
      return schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
    }

    const partialOf = (file: string): string | undefined =>
      readdirSync(folder).find((name) => name.startsWith(`${file}.`) && name.endsWith('.partial'));

    const run = (database: string, ...args: string[]): Promise<Ran> =>
      runCurvebook([...args, '--manifest', at('manifest.json'), '--database', database]);

    /** The database is lost: its file, or its schema, and nothing is at its address. */
    async function lose(): Promise<string> {
      const url = urlOf(stack.db);
      if (stack.db.kind === 'sqlite') return `sqlite:${at('restored.sqlite')}`;
      const { schema } = locationOf(stack.db);
      schemas.push(`${schema}_lost`);
      await stack.db.knex.raw('alter schema ?? rename to ??', [schema!, `${schema}_lost`]);
      return url;
    }

    const sorted = (rows: readonly object[]): string[] => rows.map((row) => JSON.stringify(row)).sort();
    const everything = async (db: Db): Promise<string[]> =>
      (
        await Promise.all(
          ['meta', 'generations', 'custody_events', 'entries', 'balances', 'writers'].map(async (table) =>
            sorted(await db.knex(table).select()),
          ),
        )
      ).flat();

    it('hold what was there, and restore makes and verifies it', async () => {
      await fund();
      const before = await everything(stack.db);
      const { code, output, errors } = await run(urlOf(stack.db), 'backup', at('one'), '--json');
      expect([code, errors]).to.deep.equal([0, '']);
      expect(JSON.parse(output)).to.deep.equal({
        file: at('one'),
        bytes: statSync(at('one')).size,
        deploymentId: chain.manifest.deploymentId,
      });
      expect(statSync(at('one')).mode & 0o777).to.equal(0o600);
      const target = await lose();
      const restored = await run(target, 'restore', at('one'), '--json', '--rpc', chain.rpcUrl);
      expect(restored.code, restored.output + restored.errors).to.equal(0);
      expect(JSON.parse(restored.output)).to.deep.include({ ok: true });
      const db = await openDb(target);
      expect(await everything(db)).to.deep.equal(before);
      await db.close();
      expect(readdirSync(folder).filter((file) => file.includes('partial'))).to.deep.equal([]);
    });

    it('are one state of a database that is written to meanwhile', async () => {
      const { knex } = stack.db;
      // Tables are read one after the other: the second of a pair long after the first.
      for (const table of ['a_left', 'm_between', 'z_right'])
        await knex.schema.createTable(table, (columns) => {
          columns.integer('count');
          columns.text('filler');
        });
      await knex.batchInsert(
        'm_between',
        Array.from({ length: 4_000 }, (_, count) => ({ count, filler: `${count}-`.repeat(1_000) })),
        100,
      );
      await knex('a_left').insert({ count: 0 });
      await knex('z_right').insert({ count: 0 });
      const url = urlOf(stack.db);
      const backup = startProgram(
        ['node', 'scripts/curvebook.mjs', 'backup', at('busy'), '--manifest', at('manifest.json'), '--database', url],
        {},
      );
      let writes = 0;
      let writesDuring = 0;
      for (; backup.exitCode() === null; writes++) {
        await knex.transaction(async (tx) => {
          await tx('a_left').increment('count', 1);
          await tx('z_right').increment('count', 1);
        });
        const partial = partialOf('busy');
        if (partial !== undefined) {
          writesDuring++;
          const mode = statSync(at(partial), { throwIfNoEntry: false })?.mode ?? 0o600;
          expect(mode & 0o777, 'read by its owner alone from the beginning').to.equal(0o600);
        }
        await setImmediate();
      }
      expect(await backup.ended, backup.output()).to.equal(0);
      expect(writesDuring, `written during the copy, of ${writes}`).to.be.above(0);
      const target = await lose();
      expect((await run(target, 'restore', at('busy'))).code).to.equal(0);
      const db = await openDb(target);
      const counts = await Promise.all(
        ['a_left', 'z_right'].map(async (table) => (await db.knex(table).first<{ count: number }>('count')).count),
      );
      await db.close();
      expect(counts[0]).to.equal(counts[1]).and.be.above(0);
    });

    it('touch nothing of others that are made, or restored, at the same place', async () => {
      const url = urlOf(stack.db);
      writeFileSync(at('same.partial'), 'of another');
      const both = await Promise.all([run(url, 'backup', at('same')), run(url, 'backup', at('same'), '--json')]);
      expect(both.map(({ code }) => code).sort()).to.deep.equal([0, 1]);
      const target = await lose();
      writeFileSync(at('restored.sqlite.partial'), 'of another');
      const ran = await run(target, 'restore', at('same'));
      expect(ran.code, ran.errors).to.equal(0);
      for (const file of ['same.partial', 'restored.sqlite.partial'])
        expect(readFileSync(at(file), 'utf8')).to.equal('of another');
    });

    it('leave nothing behind when they are interrupted', async () => {
      const { knex } = stack.db;
      await knex.schema.createTable('filler', (columns) => columns.text('filler'));
      await knex.batchInsert(
        'filler',
        Array.from({ length: 4_000 }, (_, count) => ({ filler: `${count}-`.repeat(1_000) })),
        100,
      );
      const args = ['backup', at('cut'), '--json', '--manifest', at('manifest.json'), '--database', urlOf(stack.db)];
      const backup = startProgram(['node', 'scripts/curvebook.mjs', ...args], {});
      while (partialOf('cut') === undefined && backup.exitCode() === null) await setImmediate();
      backup.kill('SIGTERM');
      expect(await backup.ended, backup.output()).to.equal(1);
      expect(JSON.parse(backup.output())).to.include({ ok: false, code: 'INTERRUPTED' });
      expect(readdirSync(folder)).to.deep.equal(['manifest.json']);

      expect((await run(urlOf(stack.db), 'backup', at('whole'))).code).to.equal(0);
      const target = await lose();
      const options = ['--manifest', at('manifest.json'), '--database', target];
      // Interrupted at the first progress of the verification, when everything is in the tables.
      const cut = await runCurvebook(['restore', at('whole'), ...options], undefined, () => true);
      expect(cut.code, cut.output).to.equal(1);
      expect(cut.errors).to.match(/interrupted; nothing was restored/);
      expect((await run(target, 'status')).errors).to.match(/holds no ledger yet|There is no database/);
      expect(readdirSync(folder).sort()).to.deep.equal(['manifest.json', 'whole']);
      expect((await run(target, 'restore', at('whole'))).code).to.equal(0);
    });

    it('overwrite no file and no database', async () => {
      const url = urlOf(stack.db);
      writeFileSync(at('mine'), 'mine');
      const refused = await run(url, 'backup', at('mine'));
      expect([refused.code, readFileSync(at('mine'), 'utf8')]).to.deep.equal([1, 'mine']);
      expect(refused.errors).to.match(/is there already; nothing is overwritten/);
      expect((await run(url, 'backup', at('new/folder/good'))).code, 'makes the folder').to.equal(0);
      expect((await run(url, 'backup', at('good'))).code).to.equal(0);
      const before = await everything(stack.db);
      const onto = await run(url, 'restore', at('good'));
      expect(onto.code).to.equal(1);
      expect(onto.errors).to.match(/already; nothing is overwritten/);
      expect(await everything(stack.db)).to.deep.equal(before);
    });

    it('are refused when they are none, of another deployment, or of the other database', async () => {
      expect((await run(urlOf(stack.db), 'backup', at('good'))).code).to.equal(0);
      const target = await lose();
      writeFileSync(at('text'), 'no backup at all');
      expect((await run(target, 'restore', at('text'))).errors).to.match(/text is no backup/);
      expect((await run(target, 'restore', at('absent'))).errors).to.match(/there is no file/);
      expect((await run(target, 'restore')).errors).to.match(/name the file/);
      const ofFolder = JSON.parse((await run(target, 'restore', folder, '--json')).output) as object;
      expect(ofFolder).to.deep.equal({ ok: false, code: 'BAD_BACKUP', message: `${folder} is no file` });
      const other = target.startsWith('sqlite:') ? 'postgres://nobody@127.0.0.1:1/none' : `sqlite:${at('x.sqlite')}`;
      expect((await run(other, 'restore', at('good'))).errors).to.match(/DATABASE_URL names the other/);
      writeManifest(at('manifest.json'), { ...chain.manifest, deploymentId: '0123456789abcdef' });
      expect((await run(target, 'restore', at('good'))).errors).to.match(/is of deployment \w+, not 0123456789abcdef/);
      // Nothing stays of what was refused, so that the right one goes in.
      if (target.startsWith('sqlite:')) expect(existsSync(at('restored.sqlite'))).to.equal(false);
      writeManifest(at('manifest.json'), chain.manifest);
      const { code, errors } = await run(target, 'restore', at('good'));
      expect(code, errors).to.equal(0);
    });

    it('with a mistake in them are found out by verify', async () => {
      await fund();
      await stack.db.knex('balances').update({ balance_units: '1' });
      expect((await run(urlOf(stack.db), 'backup', at('wrong'))).code, 'a copy as it is').to.equal(0);
      const target = await lose();
      const { code, output, errors } = await run(target, 'restore', at('wrong'), '--json');
      expect(code, output).to.equal(EXIT_DIFFERENCE);
      expect(JSON.parse(output)).to.deep.include({ ok: false });
      expect(errors).to.match(/nothing was restored/);
      expect((await run(target, 'status')).errors).to.match(/holds no ledger yet|There is no database/);
    });

    if (name === 'SQLite') {
      it('print one result when a file appears at the target during the verification', async () => {
        expect((await run(urlOf(stack.db), 'backup', at('good'))).code).to.equal(0);
        const target = await lose();
        const restoring = run(target, 'restore', at('good'), '--json');
        while (partialOf('restored.sqlite') === undefined) await setImmediate();
        writeFileSync(at('restored.sqlite'), 'of another');
        const { code, output } = await restoring;
        expect(code).to.equal(1);
        expect(JSON.parse(output)).to.include({ ok: false, code: 'NOT_EMPTY' });
        expect(readFileSync(at('restored.sqlite'), 'utf8')).to.equal('of another');
      });

      it('are restored into a file that has a name', async () => {
        expect((await run(urlOf(stack.db), 'backup', at('good'))).code).to.equal(0);
        for (const url of ['sqlite:', 'sqlite::memory:']) {
          const { code, errors } = await run(url, 'restore', at('good'));
          expect([code, errors]).to.deep.equal([1, 'DATABASE_URL must name the file to restore into: sqlite:<path>\n']);
        }
      });
    }

    if (name === 'PostgreSQL') {
      it('say when the programs are missing', async () => {
        const env = at('env');
        const saved = process.env['PATH'];
        try {
          process.env['PATH'] = folder;
          const { code, errors } = await run(
            urlOf(stack.db),
            'backup',
            at('none'),
            '--env',
            (writeFileSync(env, ''), env),
          );
          expect(code).to.equal(1);
          expect(errors).to.match(/pg_dump: can't be started; install PostgreSQL's client programs/);
        } finally {
          process.env['PATH'] = saved;
        }
        expect(existsSync(at('none'))).to.equal(false);
      });
    }
  }),
);
