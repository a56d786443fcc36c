/** What exports write beside a poster, and an archive that has one number twice. */
import { expect } from 'chai';
import type { Archive } from '../../../keepers/archive/archive.js';
import { decodeBatch } from '../../../keepers/archive/format.js';
import { exportPublications } from '../../../keepers/archive/export.js';
import { planImport } from '../../../keepers/archive/import.js';
import type { ArchiveStore } from '../../../keepers/archive/store.js';
import { snapshotHash } from '../../../core/snapshot.js';
import { lastPublicationSeq } from '../../../ledger/publications/publication-log.js';
import { balancesOf } from '../../support/archive.js';
import { forEachDatabase } from '../../support/db.js';
import { archivedLedger, MID } from '../../support/worlds/archived-ledger.js';

forEachDatabase((name, open) => {
  describe(`an archive that is written to twice, ${name}`, function () {
    this.timeout(60_000);
    const suite = archivedLedger(open);
    const { trade, scan, goesOn } = suite;

    /** What `curvebook archive export` does, with another store or archive where one is given. */
    const exported = async (change: { store?: ArchiveStore } = {}) =>
      exportPublications({
        db: suite.db,
        store: suite.site.store,
        archive: await suite.site.openArchive(),
        deploymentId: suite.site.chain.manifest.deploymentId,
        ...change,
      });

    it('is given by an export nothing that was prepared after it began', async () => {
      await trade(suite.stack, 3);
      const last = await suite.site.store.lastNumber();
      let isTraded = false;
      const store: ArchiveStore = {
        ...suite.site.store,
        async read(number) {
          if (number === last && !isTraded) {
            isTraded = true;
            await trade(suite.stack, 1);
          }
          return suite.site.store.read(number);
        },
      };
      expect(await exported({ store })).to.deep.equal({ exported: 0, lost: 0 });
      expect(await suite.site.store.lastNumber()).to.equal(4);
      await suite.stack.stop();
      const fresh = await open();
      expect(await suite.site.restore(fresh)).to.include({ imported: 4 });
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect(await balancesOf(fresh)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, fresh);
    });

    it('is given by an export nothing that its poster writes while the export reads', async () => {
      await trade(suite.stack, 3);
      await suite.stack.stop();
      const archive = await suite.site.openArchive();
      const begun = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const write: Archive['write'] = async (...args) => {
        begun.resolve();
        await goOn.promise;
        return archive.write(...args);
      };
      suite.stack = await suite.site.start(suite.db, { archive: { ...archive, write } });
      await scan(suite.stack);
      await suite.stack.order(suite.site.chain.address('maker1'), [
        { side: 'ask', priceTicks: MID + 3n, sizeLots: 500n },
      ]);
      const round = suite.stack.poster.round();
      await begun.promise;
      expect(await lastPublicationSeq(suite.db.knex, 0), 'committed, and in no file').to.equal(4);
      const store: ArchiveStore = {
        ...suite.site.store,
        async read(number) {
          const bytes = await suite.site.store.read(number);
          if (number !== 3) return bytes;
          goOn.resolve();
          await round;
          return bytes;
        },
      };
      expect(await exported({ store })).to.deep.equal({ exported: 0, lost: 0 });
      expect(await suite.site.store.lastNumber()).to.equal(4);
    });

    it('has a publication once that stands in two files, because it was written again', async () => {
      await trade(suite.stack, 3);
      await suite.stack.stop();
      const { batch } = decodeBatch(await suite.site.store.read(2), 'it');
      const again = batch.publications.map((publication) => ({ publication, snapshot: batch.snapshots[0]! }));
      const archive = await suite.site.openArchive();
      await archive.write({ publications: again });
      // In one file, too.
      await archive.write({ publications: [...again, ...again] });
      expect(await exported()).to.deep.equal({ exported: 0, lost: 0 });
      const fresh = await open();
      expect((await planImport(suite.site.importDeps(fresh))).missing).to.have.length(3);
      expect(await suite.site.restore(fresh)).to.include({ imported: 3 });
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect(await balancesOf(fresh)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, fresh);
    });

    it('names the files that have different publications under one number, where the chain decides for neither', async () => {
      await trade(suite.stack, 3);
      await suite.stack.stop();
      const { batch } = decodeBatch(await suite.site.store.read(2), 'it');
      const [publication] = batch.publications;
      const [snapshot] = decodeBatch(await suite.site.store.read(1), 'it').batch.snapshots;
      const archive = await suite.site.openArchive();
      // The same words of another book.
      const other = { ...publication!, snapshotHash: snapshotHash(snapshot!) };
      await archive.write({ publications: [{ publication: other, snapshot: snapshot! }] });
      const refused = await planImport(suite.site.importDeps(await open())).catch((error: Error) => error);
      expect(refused).to.include({ code: 'RESTORE_CONFLICT' });
      expect((refused as Error).message).to.match(
        /^publication 2 of market 0 is another one in file 2 of the archive than in file 4 of the archive, and /,
      );
    });
  });
});
