/** Databases that are lost and come back, with an archive of what was published. */
import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Archive } from '../../../keepers/archive/archive.js';
import { decodeBatch, encodeBatch, type ArchiveError } from '../../../keepers/archive/format.js';
import { exportPublications, exportSettlements } from '../../../keepers/archive/export.js';
import { planImport } from '../../../keepers/archive/import.js';
import type { ArchiveStore } from '../../../keepers/archive/store.js';
import type { Address, Hex } from '../../../core/types.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readCompactionPosition } from '../../../ledger/orders/compacted-book.js';
import { readNoncesAfterMs } from '../../../ledger/orders/restore.js';
import { lastPublicationSeq } from '../../../ledger/publications/publication-log.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { concerns, readSuspense } from '../../../ledger/chain/suspense.js';
import { SUSPENSE } from '../../../ledger/types.js';
import { balancesOf } from '../../support/archive.js';
import { forEachDatabase } from '../../support/db.js';
import { archivedLedger, MID, LOT } from '../../support/worlds/archived-ledger.js';

forEachDatabase((name, open) => {
  describe(`an archive, ${name}`, function () {
    this.timeout(60_000);
    const suite = archivedLedger(open);
    const { trade, scan, backup, goesOn } = suite;

    it('explains every fill of a backup that is restored late', async () => {
      await trade(suite.stack, 4);
      const copy = await backup();
      await trade(suite.stack, 6);
      // Sent, and not mined before everything is lost.
      await suite.stack.order(suite.site.chain.address('maker1'), [
        { side: 'ask', priceTicks: MID + 3n, sizeLots: 500n },
      ]);
      const last = await suite.stack.poster.round();
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      await suite.site.mine();
      await suite.site.swap(true, LOT * 100n);
      await suite.site.mine();

      const report = await suite.site.restore(copy);
      expect(report.imported).to.equal(7);
      expect(report.closedOrders).to.be.greaterThan(0);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      expect(await lastPublicationSeq(copy.knex, 0)).to.equal(last!.publications[0]!.seq);
      await suite.stack.watcher.scan();
      const after = await balancesOf(copy);
      // The one more fill is of the curve that nobody but the archive knew.
      expect(Object.keys(after)).to.deep.equal(Object.keys(lost));
      await suite.site.verify(copy);
      await goesOn(suite.stack, copy);
    });

    it('explains every fill of a backup that is restored an hour late', async () => {
      await trade(suite.stack, 2);
      const copy = await backup();
      const from = await suite.site.headBlock();
      // An hour of blocks of two seconds, with trades all along.
      for (let part = 0; part < 6; part += 1) {
        await suite.site.mine(299);
        await scan(suite.stack);
        await trade(suite.stack, 1);
      }
      expect((await suite.site.headBlock()) - from).to.be.greaterThan(1_790);
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      await suite.site.restore(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(suite.stack, copy);
    });

    it('is the same ledger as the one that was lost', async () => {
      await trade(suite.stack, 3);
      const copy = await backup();
      await trade(suite.stack, 5);
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      await suite.site.restore(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(suite.stack, copy);
    });

    it('makes a new database of nothing but the chain and itself', async () => {
      await trade(suite.stack, 8);
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      const fresh = await open();
      await suite.site.restore(fresh);
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect((await readHalt(fresh.knex))?.message).to.equal(undefined);
      expect(await balancesOf(fresh)).to.deep.equal(lost);
      await goesOn(suite.stack, fresh);
    });

    it('has the watcher read anew what it had booked without knowing the curves', async () => {
      await trade(suite.stack, 3);
      const copy = await backup();
      await trade(suite.stack, 4);
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      suite.stack = await suite.site.start(copy, { archive: null });
      await scan(suite.stack);
      expect((await readHalt(copy.knex))?.code).to.equal('unexplained_curve');
      expect(await balancesOf(copy)).not.to.deep.equal(lost);
      await suite.stack.stop();

      const report = await suite.site.restore(copy);
      expect(report.reconcileSeq).not.to.equal(null);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(suite.stack, copy);
    });

    it('keeps in suspense what a maker sold twice, once by a curve of each database, and does not have', async () => {
      const { chain, swap, mine } = suite.site;
      const maker = chain.address('maker1');
      /** A curve, and a taker that buys on it. */
      const sell = async (lots: bigint): Promise<void> => {
        await suite.stack.poster.round();
        await mine();
        await swap(true, LOT * lots);
        await mine();
        await scan(suite.stack);
      };
      const rowsOf = async (account: string): Promise<Record<string, string>> => {
        const rows = Object.entries(await balancesOf(copy)).filter(([key]) => key.startsWith(`${account}:`));
        return Object.fromEntries(rows.map(([key, units]) => [key.at(-1)!, units.split(' ')[0]!]));
      };
      // 90 of its 100 WETH.
      await suite.stack.order(maker, [{ side: 'ask', priceTicks: MID, sizeLots: 900_000n }]);
      const copy = await backup();
      await sell(600_000n);
      await suite.stack.stop();
      const on = { archive: null, watcher: { haltOnSuspense: false } };
      suite.stack = await suite.site.start(copy, on);
      await scan(suite.stack);
      expect((await readSuspense(copy.knex, { open: true })).map(({ seq }) => seq)).to.deep.equal([1]);
      await sell(800_000n);
      expect((await rowsOf(maker))['1'], 'WETH').to.equal(`${20n * 10n ** 18n}`);
      await suite.stack.stop();

      const report = await suite.site.restore(copy);
      expect(report.reconcileSeq).not.to.equal(null);
      suite.stack = await suite.site.start(copy, on);
      await scan(suite.stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      const [item, ...others] = await readSuspense(copy.knex, { open: true });
      expect(others).to.deep.equal([]);
      expect(item).to.include({ kind: 'fill', code: 'uncovered_fill', maker, seq: 2, units: -80n * 10n ** 18n });
      expect((await rowsOf(maker))['1'], 'what it had before it').to.equal(`${40n * 10n ** 18n}`);
      expect(await rowsOf(SUSPENSE)).to.deep.equal({ 1: `${item!.units}`, 2: `${item!.otherUnits}` });
      const theirs = (token: Address | null, of: Address = maker) => concerns([item!], { maker: of, token: token! });
      expect([theirs(item!.token), theirs(item!.otherToken)], 'its claims wait').to.deep.equal([true, true]);
      expect(theirs(item!.token, chain.address('maker2')), 'and only its').to.equal(false);
      expect(await suite.site.verify(copy)).to.include({ openSuspense: 1, fills: 2 });

      await appendOperatorRow(copy, { timeMs: 1, kind: 'assign', maker, note: 'its order', item: item!.item });
      await mine();
      await scan(suite.stack);
      expect(await readSuspense(copy.knex, { open: true }), 'it still does not have it').to.have.length(1);
      await suite.site.fund();
      await mine();
      await scan(suite.stack);
      expect(await readSuspense(copy.knex, { open: true })).to.have.length(0);
      expect((await rowsOf(maker))['1']).to.equal(`${60n * 10n ** 18n}`);
      expect(await rowsOf(SUSPENSE)).to.deep.equal({});
      await goesOn(suite.stack, copy);
    });

    it('has it read anew, too, where an import was stopped after it had stored the curves', async () => {
      await trade(suite.stack, 3);
      const copy = await backup();
      await trade(suite.stack, 4);
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      suite.stack = await suite.site.start(copy, { archive: null });
      await scan(suite.stack);
      expect((await readHalt(copy.knex))?.code).to.equal('unexplained_curve');
      await suite.stack.stop();

      const killed = (): never => {
        throw new Error('killed');
      };
      const stopped = await suite.site.restore(copy, { nowMs: killed }).catch((error: unknown) => error);
      expect((stopped as Error).message).to.equal('killed');
      const report = await suite.site.restore(copy);
      expect(report).to.include({ imported: 0 });
      expect(report.reconcileSeq).not.to.equal(null);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(suite.stack, copy);
    });

    it('is written before anything is sent, and posting stops while it can not be', async () => {
      await trade(suite.stack, 1);
      await suite.stack.stop();
      const archive = await suite.site.openArchive();
      let isBroken = true;
      const write: Archive['write'] = (...args) =>
        isBroken ? Promise.reject(new Error('disk full')) : archive.write(...args);
      suite.stack = await suite.site.start(suite.db, { archive: { ...archive, write } });
      const nonce = () =>
        suite.site.chain.rpc.call('eth_getTransactionCount', [suite.site.chain.address('poster'), 'latest']);
      const before = await nonce();
      await scan(suite.stack);
      await suite.stack.order(suite.site.chain.address('maker1'), [
        { side: 'ask', priceTicks: MID + 7n, sizeLots: 500n },
      ]);
      expect(await suite.stack.poster.round()).to.equal(null);
      expect(suite.stack.poster.status().blockedBy).to.equal('archive_fails');
      await suite.site.mine();
      expect(await nonce()).to.equal(before);
      isBroken = false;
      await scan(suite.stack);
      expect((await suite.stack.poster.round())?.publications).to.have.length(1);
      expect(suite.stack.poster.status().blockedBy).to.equal(null);
      await suite.site.mine();
      await scan(suite.stack);
      await suite.site.verify(suite.db);
    });

    it('says which file is missing, altered, of somebody else, or of another chain', async () => {
      await trade(suite.stack, 4);
      const deps = suite.site.importDeps(suite.db);
      const number = await suite.site.store.lastNumber();
      expect(number).to.equal(4);
      const refusal = async (store: ArchiveStore, more: Partial<typeof deps> = {}) =>
        planImport({ ...deps, store, ...more }).then(
          () => null,
          (error: unknown) => (error as ArchiveError).code,
        );
      const bytes = await suite.site.store.read(2);
      const reading = (second: () => Promise<Buffer>): ArchiveStore => ({
        ...suite.site.store,
        read: (one) => (one === 2 ? second() : suite.site.store.read(one)),
      });
      expect(await refusal(suite.site.store)).to.equal(null);
      const { batch } = decodeBatch(bytes, 'it');
      const signedBy = (key: Hex, changed = batch) => reading(() => Promise.resolve(encodeBatch(changed, key)));
      const posterKey = suite.site.chain.wallet('poster').privateKey as Hex;
      const strangerKey = suite.site.chain.wallet('maker1').privateKey as Hex;
      const flipped = Buffer.from(bytes);
      flipped[60]! ^= 1;
      expect(await refusal(reading(() => Promise.resolve(flipped)))).to.equal('ARCHIVE_DAMAGED');
      expect(
        await refusal({ ...suite.site.store, read: (one) => suite.site.store.read(one === 2 ? 99 : one) }),
      ).to.equal('ARCHIVE_DAMAGED');
      // Another maker in the book gives the same words, so that only the signature and the chain of hashes tell.
      const snapshots = batch.snapshots.map((one) => ({
        ...one,
        asks: one.asks.map((order) => ({ ...order, maker: suite.site.chain.address('taker1') })),
      }));
      expect(await refusal(signedBy(strangerKey, { ...batch, snapshots }))).to.equal('ARCHIVE_UNPROVEN');
      expect(await refusal(signedBy(posterKey, { ...batch, snapshots }))).to.equal('ARCHIVE_DAMAGED');
      expect(await refusal(suite.site.store, { deploymentId: 'another' })).to.equal('ARCHIVE_FOREIGN');
      const words = batch.publications.map((one) => ({ ...one, wordsHash: one.snapshotHash }));
      const fresh = await open();
      const tail = { ...suite.site.store, lastNumber: () => Promise.resolve(2) };
      const forged = { ...tail, read: signedBy(posterKey, { ...batch, publications: words }).read };
      expect(await refusal(forged, { db: fresh })).to.equal('ARCHIVE_UNPROVEN');
      expect(
        await refusal({ ...forged, lastNumber: () => Promise.resolve(0), firstNumber: () => Promise.resolve(0) }),
      ).to.equal('ARCHIVE_EMPTY');
    });

    it('says that its last file is cut off, and explains all the rest without it', async () => {
      await trade(suite.stack, 6);
      await suite.stack.stop();
      const last = await suite.site.store.lastNumber();
      const path = readdirSync(suite.site.dir, { recursive: true, encoding: 'utf8' })
        .filter((one) => one.endsWith('.cba'))
        .sort()
        .at(-1)!;
      const file = join(suite.site.dir, path);
      const archive = await suite.site.openArchive();
      truncateSync(file, Math.floor(statSync(file).size / 2));
      const cut = { code: 'ARCHIVE_DAMAGED', message: new RegExp(`^file ${last} of the archive can't be read`) };
      const refusals = [
        () => planImport(suite.site.importDeps(suite.db)),
        () => suite.site.openArchive(),
        () =>
          exportSettlements({
            db: suite.db,
            store: suite.site.store,
            archive,
            deploymentId: suite.site.chain.manifest.deploymentId,
          }),
      ];
      for (const refused of refusals) {
        const error = await refused().then(
          () => null,
          (thrown: unknown) => thrown as ArchiveError,
        );
        expect(error).to.include({ code: cut.code });
        expect(error!.message).to.match(cut.message);
      }
      rmSync(file);
      // Without a database, only the fill of what the file held is unexplained; everything before it has its makers.
      const fresh = await open();
      await suite.site.restore(fresh);
      suite.stack = await suite.site.start(fresh);
      while (suite.stack.watcher.status().nextBlock <= (await suite.site.headBlock())) await suite.stack.watcher.scan();
      expect((await readHalt(fresh.knex))?.code).to.equal('unexplained_curve');
      const suspended = await readSuspense(fresh.knex, { open: true });
      expect(suspended.map(({ kind, seq }) => [kind, seq])).to.deep.equal([['fill', 6]]);
      const attributed = (await fresh.knex('fills').where({ missing_base_units: '0' })) as unknown[];
      expect(attributed).to.have.length(5);
      expect(await suite.site.verify(fresh), 'its curve and its fill').to.include({ suspense: 2, openSuspense: 1 });
      const inSuspense = () => fresh.knex('suspense').where({ kind: 'curve' });
      const curves = await inSuspense().select();
      await inSuspense().delete();
      const verified = await suite.site.verify(fresh).catch((error: Error) => error);
      expect(verified).to.have.property('message', 'curve 6 of WETH-USDC was never prepared');
      await fresh.knex('suspense').insert(curves);
      await suite.stack.stop();
      // With the database the file is written again, under its number.
      const again = await suite.site.openArchive();
      const deps = {
        db: suite.db,
        store: suite.site.store,
        archive: again,
        deploymentId: suite.site.chain.manifest.deploymentId,
      };
      expect(await exportPublications(deps)).to.deep.equal({ exported: 1, lost: 0 });
      expect(await suite.site.store.lastNumber()).to.equal(last);
      const whole = await open();
      await suite.site.restore(whole);
      suite.stack = await suite.site.start(whole);
      await scan(suite.stack);
      expect(await balancesOf(whole)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, whole);
    });

    it('gives no number away again, closes what may have been cancelled, and refuses old nonces', async () => {
      await trade(suite.stack, 2);
      const copy = await backup();
      await trade(suite.stack, 2);
      const [oid] = await suite.stack.order(suite.site.chain.address('maker2'), [
        { side: 'bid', priceTicks: MID - 90n, sizeLots: 10n },
      ]);
      await suite.stack.poster.round();
      await suite.stack.stop();
      const sinceMs = Date.now();
      await suite.site.restore(copy);
      await suite.site.restore(copy);
      expect(await copy.knex('folded_orders').where({ state: 'open' })).to.deep.equal([]);
      expect((await readCompactionPosition(copy.knex)).oid).to.be.greaterThan(oid!);
      expect(await readNoncesAfterMs(copy.knex)).to.be.within(sinceMs, Date.now());
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      await goesOn(suite.stack, copy);
    });
  });
});
