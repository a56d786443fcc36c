/** `curvebook archive`: publications out of a database and into another, and what is refused. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openDb } from '../../../ledger/db/db.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { lastPublicationSeq } from '../../../ledger/publications/publication-log.js';
import { GAS } from '../../support/custody.js';
import { forEachDatabase } from '../../support/db.js';
import { operatorCommands } from '../../support/console/operator.js';
import { runCurvebook } from '../../support/console/terminal.js';
import { copyDb } from '../../support/worlds/copy-db.js';

forEachDatabase((name, open) =>
  describe(`archive commands, ${name}`, function () {
    this.timeout(60_000);
    const suite = operatorCommands(open);
    const { urlOf, run, json, expectRefused } = suite;

    it('keep publications in an archive, and bring them back', async () => {
      const dir = join(suite.folder, 'archive');
      const archive = ['--archive', dir, '--rpc', suite.chain.rpcUrl];
      await expectRefused(['archive'], /unknown command: archive/);
      await expectRefused(['archive', 'list'], /ARCHIVE_DIR: required/);
      const before = ['--before', '2026-01-31T12:00:00Z'];
      // A disk that is not mounted, or a slip of the pen.
      const missing = new RegExp(`^there is no folder ${dir}: `);
      for (const args of [['list'], ['check'], ['import', '--yes'], ['prune', ...before]])
        await expectRefused(['archive', ...args, ...archive], missing);
      const codeOfCheck = async (): Promise<unknown> =>
        (JSON.parse((await run(['archive', 'check', '--json', '--archive', dir])).output) as { code: unknown }).code;
      expect(await codeOfCheck()).to.equal('ARCHIVE_MISSING');
      mkdirSync(dir);
      expect((await run(['archive', 'list', ...archive])).output).to.equal('the archive is empty\n');
      await expectRefused(['archive', 'import', '--yes', ...archive], /the archive has no files/);
      await expectRefused(['archive', 'check', '--archive', dir], /the archive has no files/);
      expect(await codeOfCheck()).to.equal('ARCHIVE_EMPTY');
      const unmade = join(suite.folder, 'unmade.sqlite');
      const elsewhere = [
        '--manifest',
        join(suite.folder, 'manifest.json'),
        '--database',
        `sqlite:${unmade}`,
        ...archive,
      ];
      expect((await runCurvebook(['archive', 'import', '--yes', ...elsewhere])).code).to.equal(1);
      expect(existsSync(unmade), 'made for an import that was refused').to.equal(false);
      await suite.custody.mined(() =>
        suite.custody.as('maker1').deposit(suite.custody.token('WETH'), suite.custody.units('WETH', '10'), GAS),
      );
      const backup = await open();
      await copyDb(suite.stack.db, backup);
      await suite.stack.order(suite.chain.address('maker1'), [{ side: 'ask', priceTicks: 250_000n, sizeLots: 900n }]);
      await suite.stack.poster.round();
      await suite.custody.mined();
      expect(await json('archive', 'export', ...archive)).to.deep.equal({
        ok: true,
        exported: 1,
        lost: 0,
        settlements: 0,
      });
      expect(await json('archive', 'export', ...archive)).to.deep.equal({
        ok: true,
        exported: 0,
        lost: 0,
        settlements: 0,
      });
      expect(await json('archive', 'list', ...archive)).to.have.length(1);
      const checked = await json<{ files: number; signers: string[]; import: object }>('archive', 'check', ...archive);
      expect(checked).to.deep.include({ files: 1, signers: [suite.chain.address('poster')] });
      expect(checked.import).to.include({ publications: 1, missing: 0 });
      await expectRefused(['archive', 'prune', ...archive], /--before: when the oldest backup was made/);
      await expectRefused(['archive', 'prune', '--before', '2999-01-01T00:00:00Z', ...archive], /--before/);
      for (const time of ['2026-02-29T12:00:00Z', '2026-04-31T00:00:00+02:00', '2026-00-10T12:00:00Z'])
        await expectRefused(['archive', 'prune', '--before', time, ...archive], /--before/);
      expect(await json('archive', 'prune', '--dry-run', ...before, ...archive)).to.deep.equal({
        ...{ ok: true, folders: [], removed: 0 },
        keeps: 'file 1 is in the newest folder',
      });
      await suite.stack.stop();
      const restored = ['--manifest', join(suite.folder, 'manifest.json'), '--database', urlOf(backup), ...archive];
      const asNew = await runCurvebook(['archive', 'import', ...elsewhere], 'n');
      expect(asNew.code).to.equal(1);
      expect(asNew.errors).to.include(`nothing was imported; sqlite:${unmade} was made and is empty`);
      // As a gateway would on PostgreSQL; on SQLite whoever has the file open does.
      const gateway = await acquireWriter(backup, 'order');
      const disturbing = await runCurvebook(['archive', 'import', '--yes', '--json', ...restored]);
      expect(JSON.parse(disturbing.output)).to.include({ ok: false, code: 'SERVER_RUNS' });
      await gateway.tx(async () => undefined);
      await gateway.release();
      if (name === 'SQLite') await backup.close();
      const asked = await runCurvebook(['archive', 'import', ...restored], 'n');
      expect(asked.code).to.equal(1);
      expect(asked.output).to.include('the database lacks 1 of 1 publications of the archive, of which 1 landed');
      expect(asked.output).to.include('all open orders will be closed');
      const lastSeq = async (): Promise<number> => {
        const db = await openDb(urlOf(backup));
        try {
          return await lastPublicationSeq(db.knex, 0);
        } finally {
          await db.close();
        }
      };
      expect(await lastSeq()).to.equal(0);
      const done = await runCurvebook(['archive', 'import', '--yes', '--json', ...restored]);
      expect(JSON.parse(done.output)).to.include({ ok: true, imported: 1, reconcileSeq: null });
      expect(await lastSeq()).to.equal(1);
    });
  }),
);
