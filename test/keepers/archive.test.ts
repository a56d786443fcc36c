/** Databases that are lost and come back, with an archive of what was published. */
import { expect } from 'chai';
import type { Archive } from '../../keepers/archive/archive.js';
import { decodeBatch, encodeBatch, type ArchiveError } from '../../keepers/archive/format.js';
import { planImport } from '../../keepers/archive/import.js';
import { readArchive, type ArchiveStore } from '../../keepers/archive/store.js';
import type { Hex } from '../../core/types.js';
import { migrate } from '../../ledger/db/db.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { readCompactionPosition } from '../../ledger/orders/compacted-book.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { readNoncesAfterMs } from '../../ledger/orders/restore.js';
import { lastPublicationSeq } from '../../ledger/publications/publication-log.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { VAULT, type Db } from '../../ledger/types.js';
import { balancesOf, createSite, type Site } from '../support/archive.js';
import { copyDb } from '../support/copy-db.js';
import { forEachDatabase } from '../support/db.js';
import type { KeeperStack } from '../support/keeper-stack.js';

const MID = 250_000n;
const LOT = 10n ** 14n;

forEachDatabase((name, open) => {
  describe(`an archive, ${name}`, function () {
    this.timeout(60_000);
    let site: Site;
    let db: Db;
    let stack: KeeperStack;

    beforeEach(async () => {
      site = createSite();
      db = await open();
      stack = await site.start(db);
      await site.mine();
      await stack.watcher.scan();
      await site.fund();
      await site.mine();
      await stack.watcher.scan();
    });

    afterEach(async () => {
      await stack.stop();
      site.close();
    });

    /** Orders around the middle, one curve, and a fill of each side of it. */
    async function trade(on: KeeperStack, steps: number): Promise<void> {
      for (let i = 0; i < steps; i += 1) {
        const away = BigInt(10 + (i % 5));
        const maker = site.chain.address(i % 2 === 0 ? 'maker1' : 'maker2');
        await on.order(maker, [
          { side: 'ask', priceTicks: MID + away, sizeLots: 4_000n, cloid: `0x${i.toString(16).padStart(32, '0')}` },
          { side: 'bid', priceTicks: MID - away, sizeLots: 3_000n },
        ]);
        await on.poster.round();
        await site.mine();
        await site.swap(i % 3 !== 0, LOT * 700n + BigInt(i));
        await site.mine();
        await scan(on);
      }
    }

    async function scan(on: KeeperStack): Promise<void> {
      do await on.watcher.scan();
      while (on.watcher.status().nextBlock <= (await site.headBlock()) && on.watcher.status().halt === null);
    }

    async function backup(): Promise<Db> {
      const copy = await open();
      await copyDb(db, copy);
      return copy;
    }

    /** Goes on trading on the database, and holds everything against the chain. */
    async function goesOn(on: KeeperStack, restored: Db): Promise<void> {
      expect((await readHalt(restored.knex))?.message).to.equal(undefined);
      const before = await lastPublicationSeq(restored.knex, 0);
      const fills = (await site.verify(restored)).fills;
      await trade(on, 3);
      expect((await readHalt(restored.knex))?.message).to.equal(undefined);
      expect(await lastPublicationSeq(restored.knex, 0)).to.be.greaterThan(before);
      const report = await site.verify(restored);
      expect(report.fills).to.equal(fills + 3);
    }

    it('explains every fill of a backup that is restored late', async () => {
      await trade(stack, 4);
      const copy = await backup();
      await trade(stack, 6);
      // Sent, and not mined before everything is lost.
      await stack.order(site.chain.address('maker1'), [{ side: 'ask', priceTicks: MID + 3n, sizeLots: 500n }]);
      const last = await stack.poster.round();
      const lost = await balancesOf(db);
      await stack.stop();
      await site.mine();
      await site.swap(true, LOT * 100n);
      await site.mine();

      const report = await site.restore(copy);
      expect(report.imported).to.equal(7);
      expect(report.closedOrders).to.be.greaterThan(0);
      stack = await site.start(copy);
      await scan(stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      expect(await lastPublicationSeq(copy.knex, 0)).to.equal(last!.publications[0]!.seq);
      await stack.watcher.scan();
      const after = await balancesOf(copy);
      // The one more fill is of the curve that nobody but the archive knew.
      expect(Object.keys(after)).to.deep.equal(Object.keys(lost));
      await site.verify(copy);
      await goesOn(stack, copy);
    });

    it('is the same ledger as the one that was lost', async () => {
      await trade(stack, 3);
      const copy = await backup();
      await trade(stack, 5);
      const lost = await balancesOf(db);
      await stack.stop();
      await site.restore(copy);
      stack = await site.start(copy);
      await scan(stack);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(stack, copy);
    });

    it('makes a new database of nothing but the chain and itself', async () => {
      await trade(stack, 8);
      const lost = await balancesOf(db);
      await stack.stop();
      const fresh = await open();
      await migrate(fresh);
      await site.restore(fresh);
      stack = await site.start(fresh);
      await scan(stack);
      expect((await readHalt(fresh.knex))?.message).to.equal(undefined);
      expect(await balancesOf(fresh)).to.deep.equal(lost);
      await goesOn(stack, fresh);
    });

    it('has the watcher read anew what it had booked without knowing the curves', async () => {
      await trade(stack, 3);
      const copy = await backup();
      await trade(stack, 4);
      const lost = await balancesOf(db);
      await stack.stop();
      stack = await site.start(copy, { archive: null });
      await scan(stack);
      expect((await readHalt(copy.knex))?.code).to.equal('unexplained_curve');
      expect(await balancesOf(copy)).not.to.deep.equal(lost);
      await stack.stop();

      const report = await site.restore(copy);
      expect(report.reconcileSeq).not.to.equal(null);
      stack = await site.start(copy);
      await scan(stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(stack, copy);
    });

    it('has it read anew, too, where an import was stopped after it had stored the curves', async () => {
      await trade(stack, 3);
      const copy = await backup();
      await trade(stack, 4);
      const lost = await balancesOf(db);
      await stack.stop();
      stack = await site.start(copy, { archive: null });
      await scan(stack);
      expect((await readHalt(copy.knex))?.code).to.equal('unexplained_curve');
      await stack.stop();

      const killed = (): never => {
        throw new Error('killed');
      };
      const stopped = await site.restore(copy, { nowMs: killed }).catch((error: unknown) => error);
      expect((stopped as Error).message).to.equal('killed');
      const report = await site.restore(copy);
      expect(report).to.include({ imported: 0 });
      expect(report.reconcileSeq).not.to.equal(null);
      stack = await site.start(copy);
      await scan(stack);
      expect((await readHalt(copy.knex))?.message).to.equal(undefined);
      expect(await balancesOf(copy)).to.deep.equal(lost);
      await goesOn(stack, copy);
    });

    it('lets no claim exceed a balance after the promotion of a replica that lagged behind settlements', async () => {
      await trade(stack, 2);
      const replica = await backup();
      await site.withdraw('maker1', 10n ** 18n);
      await site.mine();
      await scan(stack);
      expect((await stack.settler.round()).settlements).to.have.length(1);
      await site.mine();
      await scan(stack);
      await trade(stack, 1);
      const lost = await balancesOf(db);
      await stack.stop();
      await site.restore(replica);
      stack = await site.start(replica);
      await scan(stack);
      // Nothing that was prepared explains it; what it says is the chain's own word.
      expect((await readHalt(replica.knex))?.code).to.equal('unexplained_settlement');
      await appendOperatorRow(replica, { timeMs: 1, kind: 'resume', maker: null, note: '' });
      await scan(stack);
      // What the lost settlement paid stays reserved beside the claim: too much for a while, and never too little.
      const units = (of: Record<string, string>) => Object.values(of).map((text) => text.split(' ')[0]);
      expect(units(await balancesOf(replica))).to.deep.equal(units(lost));
      await stack.settler.round();
      await site.mine();
      await scan(stack);
      for (const row of await readBalances(replica.knex)) {
        if (row.account !== VAULT && row.reservedUnits > 0n)
          expect(row.balanceUnits >= row.reservedUnits).to.equal(true);
      }
      await goesOn(stack, replica);
    });

    for (const depth of [65, 200]) {
      it(`is the way out of a reorganisation of ${depth} blocks, with a backup and without one`, async () => {
        await trade(stack, 2);
        const early = await backup();
        const mark = await site.mark();
        await trade(stack, 2);
        await site.mine(depth - 4);
        await scan(stack);
        await site.takeBack(mark);
        await site.mine(depth + 1);
        await stack.watcher.scan();
        expect((await readHalt(db.knex))?.code).to.equal('canonical_mismatch');
        await stack.stop();
        const fresh = await open();
        await migrate(fresh);
        let balances: unknown = null;
        for (const one of [early, fresh]) {
          await site.restore(one);
          stack = await site.start(one);
          await scan(stack);
          expect((await readHalt(one.knex))?.message).to.equal(undefined);
          balances ??= await balancesOf(one);
          expect(await balancesOf(one)).to.deep.equal(balances);
          await site.verify(one);
          if (one === fresh) await goesOn(stack, one);
          else await stack.stop();
        }
      });
    }

    it('is written before anything is sent, and posting stops while it can not be', async () => {
      await trade(stack, 1);
      await stack.stop();
      const archive = await site.openArchive();
      let isBroken = true;
      const write: Archive['write'] = (...args) =>
        isBroken ? Promise.reject(new Error('disk full')) : archive.write(...args);
      stack = await site.start(db, { archive: { ...archive, write } });
      const nonce = () => site.chain.rpc.call('eth_getTransactionCount', [site.chain.address('poster'), 'latest']);
      const before = await nonce();
      await scan(stack);
      await stack.order(site.chain.address('maker1'), [{ side: 'ask', priceTicks: MID + 7n, sizeLots: 500n }]);
      expect(await stack.poster.round()).to.equal(null);
      expect(stack.poster.status().blockedBy).to.equal('archive_fails');
      await site.mine();
      expect(await nonce()).to.equal(before);
      isBroken = false;
      await scan(stack);
      expect((await stack.poster.round())?.publications).to.have.length(1);
      expect(stack.poster.status().blockedBy).to.equal(null);
      await site.mine();
      await scan(stack);
      await site.verify(db);
    });

    it('says which file is missing, altered, of somebody else, or of another chain', async () => {
      await trade(stack, 4);
      const deps = site.importDeps(db);
      const number = await site.store.lastNumber();
      expect(number).to.equal(4);
      const refusal = async (store: ArchiveStore, more: Partial<typeof deps> = {}) =>
        planImport({ ...deps, store, ...more }).then(
          () => null,
          (error: unknown) => (error as ArchiveError).code,
        );
      const bytes = await site.store.read(2);
      const reading = (second: () => Promise<Buffer>): ArchiveStore => ({
        ...site.store,
        read: (one) => (one === 2 ? second() : site.store.read(one)),
      });
      expect(await refusal(site.store)).to.equal(null);
      const { batch } = decodeBatch(bytes, 'it');
      const signedBy = (key: Hex, changed = batch) => reading(() => Promise.resolve(encodeBatch(changed, key)));
      const posterKey = site.chain.wallet('poster').privateKey as Hex;
      const strangerKey = site.chain.wallet('maker1').privateKey as Hex;
      const flipped = Buffer.from(bytes);
      flipped[60]! ^= 1;
      expect(await refusal(reading(() => Promise.resolve(flipped)))).to.equal('ARCHIVE_DAMAGED');
      expect(await refusal({ ...site.store, read: (one) => site.store.read(one === 2 ? 99 : one) })).to.equal(
        'ARCHIVE_DAMAGED',
      );
      // Another maker in the book gives the same words, so that only the signature and the chain of hashes tell.
      const snapshots = batch.snapshots.map((one) => ({
        ...one,
        asks: one.asks.map((order) => ({ ...order, maker: site.chain.address('taker1') })),
      }));
      expect(await refusal(signedBy(strangerKey, { ...batch, snapshots }))).to.equal('ARCHIVE_UNPROVEN');
      expect(await refusal(signedBy(posterKey, { ...batch, snapshots }))).to.equal('ARCHIVE_DAMAGED');
      expect(await refusal(site.store, { deploymentId: 'another' })).to.equal('ARCHIVE_FOREIGN');
      const words = batch.publications.map((one) => ({ ...one, wordsHash: one.snapshotHash }));
      const fresh = await open();
      await migrate(fresh);
      const tail = { ...site.store, lastNumber: () => Promise.resolve(2) };
      const forged = { ...tail, read: signedBy(posterKey, { ...batch, publications: words }).read };
      expect(await refusal(forged, { db: fresh })).to.equal('ARCHIVE_UNPROVEN');
      expect(
        await refusal({ ...forged, lastNumber: () => Promise.resolve(0), firstNumber: () => Promise.resolve(0) }),
      ).to.equal('ARCHIVE_EMPTY');
    });

    it('gives each number to one of two writers', async () => {
      const [one, other] = [await site.openArchive(), await site.openArchive()];
      await Promise.all([one.write([], { orderSeq: 3, oid: 1 }), other.write([], { orderSeq: 2, oid: 9 })]);
      await one.write([], { orderSeq: 1, oid: 1 });
      const numbers = [];
      for await (const { batch } of readArchive(site.store, site.chain.manifest.deploymentId)) {
        numbers.push(batch.number);
        expect(batch.highs.orderSeq).to.equal(numbers.length === 1 ? batch.highs.orderSeq : 3);
      }
      expect(numbers).to.deep.equal([1, 2, 3]);
      expect((await site.openArchive()).highs()).to.deep.equal({ seqs: {}, orderSeq: 3, oid: 9 });
    });

    it('gives no number away again, closes what may have been cancelled, and refuses old nonces', async () => {
      await trade(stack, 2);
      const copy = await backup();
      await trade(stack, 2);
      const [oid] = await stack.order(site.chain.address('maker2'), [
        { side: 'bid', priceTicks: MID - 90n, sizeLots: 10n },
      ]);
      await stack.poster.round();
      await stack.stop();
      const sinceMs = Date.now();
      await site.restore(copy);
      await site.restore(copy);
      expect(await copy.knex('folded_orders').where({ state: 'open' })).to.deep.equal([]);
      expect((await readCompactionPosition(copy.knex)).oid).to.be.greaterThan(oid!);
      expect(await readNoncesAfterMs(copy.knex)).to.be.within(sinceMs, Date.now());
      stack = await site.start(copy);
      await scan(stack);
      await goesOn(stack, copy);
    });
  });
});
