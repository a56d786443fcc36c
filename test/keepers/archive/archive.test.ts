/** Databases that are lost and come back, with an archive of what was published. */
import { readdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Archive } from '../../../keepers/archive/archive.js';
import { decodeBatch, encodeBatch, type ArchiveError } from '../../../keepers/archive/format.js';
import { exportPublications, exportSettlements } from '../../../keepers/archive/export.js';
import { planImport } from '../../../keepers/archive/import.js';
import { carryOutPrune, planPrune } from '../../../keepers/archive/prune.js';
import { readArchive, type ArchiveStore } from '../../../keepers/archive/store.js';
import type { Hex } from '../../../core/types.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readCompactionPosition } from '../../../ledger/orders/compacted-book.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { readNoncesAfterMs } from '../../../ledger/orders/restore.js';
import {
  lastPublicationSeq,
  publicationOf,
  readPublication,
  type PublicationRow,
} from '../../../ledger/publications/publication-log.js';
import { decodeSnapshot } from '../../../core/json.js';
import { snapshotHash } from '../../../core/snapshot.js';
import { readSuspense } from '../../../ledger/chain/suspense.js';
import { sentOf } from '../../../ledger/orders/restore.js';
import { lastCheckpoint } from '../../../ledger/settlements/checkpoint-log.js';
import type { Rpc } from '../../../keepers/chain/rpc.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { VAULT, type Db, type Publication } from '../../../ledger/types.js';
import { balancesOf, createSite, type Site } from '../../support/archive.js';
import { copyDb } from '../../support/worlds/copy-db.js';
import { forEachDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';

const MID = 250_000n;
const LOT = 10n ** 14n;
const HOUR_MS = 3_600_000;

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

    it('explains every fill of a backup that is restored an hour late', async () => {
      await trade(stack, 2);
      const copy = await backup();
      const from = await site.headBlock();
      // An hour of blocks of two seconds, with trades all along.
      for (let part = 0; part < 6; part += 1) {
        await site.mine(299);
        await scan(stack);
        await trade(stack, 1);
      }
      expect((await site.headBlock()) - from).to.be.greaterThan(1_790);
      const lost = await balancesOf(db);
      await stack.stop();
      await site.restore(copy);
      stack = await site.start(copy);
      await scan(stack);
      expect(await balancesOf(copy)).to.deep.equal(lost);
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

    it('lets no claim exceed a balance after the promotion of a replica that lagged behind settlements that no archive has', async () => {
      await stack.stop();
      stack = await site.start(db, { settler: { archive: null } });
      await scan(stack);
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

    /** Requests of a maker, settled, landed and seen. */
    async function settle(on: KeeperStack, role: string, units: bigint): Promise<void> {
      await site.withdraw(role, units);
      await site.mine();
      await scan(on);
      expect((await on.settler.round()).settlements).to.have.length(1);
      await site.mine();
      await scan(on);
    }

    it('knows every claim that a lagging replica lost: settled, signed and never mined, and paid', async () => {
      await trade(stack, 2);
      await settle(stack, 'maker2', 10n ** 17n);
      const replica = await backup();
      await settle(stack, 'maker1', 10n ** 18n);
      await trade(stack, 1);
      // Signed, and not mined before everything is lost.
      await site.withdraw('maker2', 10n ** 18n);
      await site.mine();
      await scan(stack);
      const signed = await stack.settler.round();
      expect(signed.settlements).to.have.length(1);
      await stack.stop();
      await site.mine(2);
      const report = await site.restore(replica);
      expect(report).to.include({ settlements: 2 });
      expect(await site.restore(replica), 'done again it does nothing').to.include({ settlements: 0, imported: 0 });
      stack = await site.start(replica);
      await scan(stack);
      expect((await readHalt(replica.knex))?.message).to.equal(undefined);
      expect(await readSuspense(replica.knex, { open: true })).to.deep.equal([]);
      const fresh = await open();
      await stack.stop();
      expect(await site.restore(fresh)).to.include({ settlements: 3 });
      stack = await site.start(fresh);
      await scan(stack);
      expect((await readHalt(fresh.knex))?.message).to.equal(undefined);
      expect(await balancesOf(fresh), 'what is reserved, too').to.deep.equal(await balancesOf(replica));
      // The claims that stand are those of the chain, none is raised again, and the next one is.
      expect((await stack.settler.round()).settlements).to.deep.equal([]);
      await settle(stack, 'maker1', 10n ** 16n);
      for (const row of await readBalances(fresh.knex)) {
        if (row.account !== VAULT) expect(row.balanceUnits >= row.reservedUnits).to.equal(true);
      }
      await goesOn(stack, fresh);
    });

    it('stores a settlement once that stands in two files, because it was written again', async () => {
      await settle(stack, 'maker1', 10n ** 18n);
      await stack.stop();
      const { batch } = decodeBatch(await site.store.read(await site.store.lastNumber()), 'it');
      expect(batch.settlements).to.have.length(1);
      const archive = await site.openArchive(site.chain.wallet('settler').privateKey as Hex);
      await archive.write({ settlements: batch.settlements });
      // In one file, too.
      await archive.write({ settlements: [...batch.settlements, ...batch.settlements] });
      const fresh = await open();
      expect((await planImport(site.importDeps(fresh))).settlements).to.have.length(1);
      await site.restore(fresh);
      expect(await fresh.knex('settlements')).to.have.length(1);
    });

    it('holds what was made again against the newest checkpoint that was published, and gives no number of one away again', async () => {
      await trade(stack, 3);
      await settle(stack, 'maker1', 10n ** 18n);
      await site.mine(3);
      await trade(stack, 1);
      const published = (await lastCheckpoint(db.knex))!;
      await stack.stop();
      const fresh = await open();
      await site.restore(fresh);
      expect((await planImport(site.importDeps(fresh))).checkpoint).to.deep.equal(published);
      stack = await site.start(fresh);
      await scan(stack);
      expect((await site.verify(fresh)).archivedCheckpoint).to.equal('agrees');
      await settle(stack, 'maker2', 10n ** 17n);
      expect((await lastCheckpoint(fresh.knex))!.checkpointSeq).to.equal(published.checkpointSeq + 1);
      await goesOn(stack, fresh);
      const value = JSON.stringify({ ...published, leafCount: 1 });
      await fresh.knex('meta').where({ key: 'archived_checkpoint' }).update({ value });
      const differing = await site.verify(fresh);
      expect(differing.archivedCheckpoint).to.equal('differs');
      expect(differing.warnings.join()).to.contain(published.root);
    });

    it('is given what it lacks by an export, once', async () => {
      await stack.stop();
      stack = await site.start(db, { settler: { archive: null } });
      await scan(stack);
      await settle(stack, 'maker1', 10n ** 18n);
      await settle(stack, 'maker2', 10n ** 18n);
      await stack.stop();
      const { deploymentId } = site.chain.manifest;
      const archive = await site.openArchive(site.chain.wallet('settler').privateKey as Hex);
      const deps = { db, store: site.store, archive, deploymentId };
      expect([await exportSettlements(deps), await exportSettlements(deps)]).to.deep.equal([2, 0]);
      const fresh = await open();
      expect(await site.restore(fresh)).to.include({ settlements: 2 });
      stack = await site.start(fresh);
      await scan(stack);
      expect(await balancesOf(fresh)).to.deep.equal(await balancesOf(db));
      await goesOn(stack, fresh);
    });

    it('gives up what neither the database nor a backup can lack, and nothing else', async () => {
      await trade(stack, 4);
      await settle(stack, 'maker1', 10n ** 18n);
      await trade(stack, 4);
      const early = await backup();
      await trade(stack, 3);
      await settle(stack, 'maker2', 10n ** 18n);
      const { deploymentId } = site.chain.manifest;
      const deps = { db, store: site.store, deploymentId, beforeMs: Date.now() + 1 + HOUR_MS };
      const ranges = async (change: Partial<typeof deps> = {}) =>
        (await planPrune({ ...deps, ...change })).folders.map(({ first, last }) => [first, last]);
      const keeps = async (change: Partial<typeof deps> = {}) => (await planPrune({ ...deps, ...change })).keeps;
      expect([await ranges(), await keeps()]).to.deep.equal([
        [],
        'file 1 stays: curve 1 of market 0 may yet be hit by what the ledger has not scanned',
      ]);
      await site.chain.rpc.call('evm_increaseTime', [2_000]);
      await site.mine();
      await scan(stack);
      await stack.stop();
      expect([await ranges(), await keeps()]).to.deep.equal([
        [
          [1, 3],
          [4, 7],
          [8, 11],
        ],
        'file 12 is in the newest folder',
      ]);
      expect(await ranges({ beforeMs: 0 })).to.deep.equal([]);
      expect(await keeps({ beforeMs: 0 })).to.equal('file 1 is younger than the oldest backup');
      const { batch: middle } = decodeBatch(await site.store.read(6), 'it');
      expect(await ranges({ beforeMs: middle.timeMs + HOUR_MS }), 'no part of a folder').to.deep.equal([[1, 3]]);
      const fresh = await open();
      expect(await keeps({ db: fresh })).to.equal('file 1 stays: curve 1 of market 0 is not in the database');
      // The backup's ledger has not seen that the curves are over.
      expect(await ranges({ db: early })).to.deep.equal([]);
      const change = async (work: (q: Db['knex']) => Promise<unknown>): Promise<Db> => {
        const copy = await backup();
        await work(copy.knex);
        return copy;
      };
      const waiting = await change((q) => q('settlement_outcomes').delete());
      expect(await keeps({ db: waiting })).to.equal('file 5 stays: settlement 1 may yet land');
      const without = await change((q) => q('settlements').where({ settlement_no: 1 }).delete());
      expect(await keeps({ db: without })).to.equal('file 5 stays: settlement 1 is not in the database');
      const otherwise = await change((q) =>
        q('publications')
          .where({ seq: 2 })
          .update({ words_hash: `0x${'7'.repeat(64)}` }),
      );
      expect(await keeps({ db: otherwise })).to.equal('file 2 stays: curve 2 of market 0 is not in the database');
      const otherBook = await change((q) =>
        q('publications')
          .where({ seq: 2 })
          .update({ snapshot_hash: `0x${'7'.repeat(64)}` }),
      );
      expect(await keeps({ db: otherBook }), 'the same words of another book').to.equal(
        'file 2 stays: curve 2 of market 0 is not in the database',
      );
      const { batch: oldest } = decodeBatch(await site.store.read(1), 'it');
      expect(await keeps({ beforeMs: oldest.timeMs + HOUR_MS }), 'clocks that differ').to.equal(
        'file 1 is younger than the oldest backup',
      );

      const plan = await planPrune({ ...deps, beforeMs: middle.timeMs + HOUR_MS });
      expect(await carryOutPrune(site.store, plan)).to.equal(3);
      expect(await site.store.firstNumber()).to.equal(4);
      expect(await ranges(), 'what is left is an archive').to.deep.equal([
        [4, 7],
        [8, 11],
      ]);
      // With what is left the backup is whole again, and a new database is refused.
      await site.restore(early);
      const nothing = await planImport(site.importDeps(fresh));
      expect(
        nothing.unexplained.map(({ seq }) => seq),
        'said before anything is done',
      ).to.deep.equal([1, 2, 3]);
      stack = await site.start(early);
      await scan(stack);
      expect(await balancesOf(early)).to.deep.equal(await balancesOf(db));
      await goesOn(stack, early);
    });

    it('takes settlements of nobody who may not settle', async () => {
      await settle(stack, 'maker1', 10n ** 18n);
      const number = await site.store.lastNumber();
      const { batch } = decodeBatch(await site.store.read(number), 'it');
      expect(batch.settlements).to.have.length(1);
      const posterKey = site.chain.wallet('poster').privateKey as Hex;
      const forged: ArchiveStore = {
        ...site.store,
        read: (one) => (one === number ? Promise.resolve(encodeBatch(batch, posterKey)) : site.store.read(one)),
      };
      const refused = await planImport({ ...site.importDeps(db), store: forged }).catch((error: ArchiveError) => error);
      expect(refused).to.include({ code: 'ARCHIVE_UNPROVEN' });
      expect((refused as Error).message).to.contain('may not settle');
    });

    it('settles nothing that it can not write, but lowers claims', async () => {
      await settle(stack, 'maker1', 10n ** 18n);
      await stack.stop();
      const archive = await site.openArchive(site.chain.wallet('settler').privateKey as Hex);
      let isBroken = true;
      const write: Archive['write'] = (...args) =>
        isBroken ? Promise.reject(new Error('disk full')) : archive.write(...args);
      stack = await site.start(db, { settler: { archive: { archive: { ...archive, write }, required: true } } });
      await scan(stack);
      await site.withdraw('maker2', 10n ** 17n);
      await site.mine();
      await scan(stack);
      expect((await stack.settler.round()).txHash).to.equal(null);
      expect(stack.settler.status().blockedBy).to.equal('archive_fails');
      await appendOperatorRow(db, {
        ...{ timeMs: 1, kind: 'lowerClaim', maker: site.chain.address('maker1'), note: '' },
        lower: { token: `0x${'1'.repeat(40)}`, amountUnits: 1n },
      });
      expect((await stack.settler.round()).txHash).not.to.equal(null);
      isBroken = false;
      await site.mine();
      await scan(stack);
      expect((await stack.settler.round()).settlements.map(({ maker }) => maker)).to.deep.equal([
        site.chain.address('maker2'),
      ]);
      expect(stack.settler.status().blockedBy).to.equal(null);
      await site.mine();
      await scan(stack);
      await site.verify(db);
    });

    /** A backup and the database that it is of go on beside each other, and post different words under the same number. */
    async function rivals(archivedLands: boolean, what: 'cancels' | 'orders' = 'cancels'): Promise<Db> {
      await trade(stack, 2);
      const copy = await backup();
      await stack.stop();
      const mark = await site.mark();
      const post = async (on: KeeperStack, priceTicks: bigint) => {
        await scan(on);
        const maker = site.chain.address('maker2');
        if (what === 'orders') await on.order(maker, [{ side: 'ask', priceTicks, sizeLots: 4_000n }]);
        // Its ask, or its bid.
        else await on.order(maker, [], [priceTicks === MID + 2n ? 3 : 4]);
        const round = await on.poster.round();
        return round!.publications[0]!.seq;
      };
      const lost = archivedLands ? copy : db;
      stack = await site.start(lost, archivedLands ? { archive: null } : {});
      const first = await post(stack, MID + 2n);
      await stack.stop();
      // What it sent never lands.
      await site.takeBack(mark);
      const landing = archivedLands ? db : copy;
      stack = await site.start(landing, archivedLands ? {} : { archive: null });
      expect(await post(stack, MID + 3n)).to.equal(first);
      await site.mine();
      await site.swap(true, LOT * 700n);
      await site.mine();
      await scan(stack);
      await stack.stop();
      return copy;
    }

    it('decides by the words that landed which of two publications under one number was sent', async () => {
      const copy = await rivals(true);
      const plan = await planImport(site.importDeps(copy));
      expect(plan.superseded).to.have.length(1);
      await site.restore(copy);
      stack = await site.start(copy);
      await scan(stack);
      expect(await balancesOf(copy)).to.deep.equal(await balancesOf(db));
      await goesOn(stack, copy);
    });

    it('leaves the database its own publication where that is the one that landed', async () => {
      const copy = await rivals(false);
      const before = await balancesOf(copy);
      const plan = await planImport(site.importDeps(copy));
      expect([plan.superseded, plan.missing]).to.deep.equal([[], []]);
      await site.restore(copy);
      stack = await site.start(copy);
      await scan(stack);
      expect(await balancesOf(copy)).to.deep.equal(before);
      await goesOn(stack, copy);
    });

    it('refuses where both took orders after they parted, so that a fill could name either', async () => {
      const copy = await rivals(true, 'orders');
      const refused = await planImport(site.importDeps(copy)).catch((error: Error) => error);
      expect(refused).to.include({ code: 'RESTORE_CONFLICT' });
      expect((refused as Error).message).to.contain('order 5');
    });

    it('refuses where one endpoint denies the words that another one names', async () => {
      const copy = await rivals(true);
      const { rpc } = site.chain;
      const words = decodeBatch(await site.store.read(await site.store.lastNumber()), 'it').batch.publications[0]!
        .wordsHash;
      const lying: Rpc = {
        ...rpc,
        call: async (method, params) => {
          const answer = await rpc.call(method, params);
          const swapped = JSON.stringify(answer).replaceAll(words.slice(2), 'ab'.repeat(32));
          return method === 'eth_getLogs' ? (JSON.parse(swapped) as unknown) : answer;
        },
      };
      const deps = { ...site.importDeps(copy), endpoints: [rpc, lying] };
      const refused = await planImport(deps).catch((error: { code: string }) => error);
      expect(refused).to.include({ code: 'RESTORE_CONFLICT' });
    });

    /** An endpoint that names no log, or whose newest block is a day later than it is. */
    function lying(about: 'logs' | 'head'): Rpc {
      const { rpc } = site.chain;
      return {
        ...rpc,
        call: async (method, params) => {
          const answer = await rpc.call(method, params);
          if (about === 'logs') return method === 'eth_getLogs' ? [] : answer;
          if (method !== 'eth_getBlockByNumber') return answer;
          const block = answer as { timestamp: Hex };
          return { ...block, timestamp: `0x${(BigInt(block.timestamp) + 86_400n).toString(16)}` };
        },
      };
    }

    it('deletes nothing on the word of one endpoint that names a curve and the others do not', async () => {
      const copy = await rivals(true);
      const { rpc } = site.chain;
      const plan = (endpoints: readonly Rpc[]) =>
        planImport({ ...site.importDeps(copy), endpoints }).catch((error: { code: string }) => error);
      const silent = lying('logs');
      const broken: Rpc = { ...rpc, call: () => Promise.reject(new Error('down')) };
      for (const endpoints of [
        [rpc, silent, silent],
        [silent, rpc],
        [rpc, broken],
      ]) {
        expect(await plan(endpoints)).to.include({ code: 'RESTORE_CONFLICT' });
      }
      for (const endpoints of [
        [rpc, silent, rpc],
        [broken, rpc, rpc],
      ]) {
        expect(await plan(endpoints))
          .to.have.property('superseded')
          .with.length(1);
      }
    });

    it('takes no deadline for over because one endpoint says how late it is', async () => {
      const copy = await rivals(true);
      // Neither has landed as far as anybody names logs.
      const silent = lying('logs');
      const early: Rpc = {
        ...silent,
        call: (method, params) => (method === 'eth_getLogs' ? silent : lying('head')).call(method, params),
      };
      const plan = (endpoints: readonly Rpc[]) =>
        planImport({ ...site.importDeps(copy), endpoints }).catch((error: { code: string }) => error);
      expect(await plan([silent, silent, early])).to.include({ code: 'RESTORE_CONFLICT' });
      expect(await plan([early, early, silent]), 'most of them say so').to.deep.include({ superseded: [] });
    });

    it('keeps what makes way beside the archive before it is deleted', async () => {
      const copy = await rivals(true);
      const { superseded } = await planImport(site.importDeps(copy));
      const { market, seq } = superseded[0]!;
      const own = (await readPublication(copy.knex, market, seq))!;
      const full: ArchiveStore = { ...site.store, setAside: () => Promise.reject(new Error('disk full')) };
      const failed = await site.restore(copy, { store: full }).catch((error: unknown) => error);
      expect((failed as Error).message).to.equal('disk full');
      expect(await readPublication(copy.knex, market, seq), 'nothing was deleted').to.deep.equal(own);
      await site.restore(copy);
      expect((await readPublication(copy.knex, market, seq))!.wordsHash).to.equal(superseded[0]!.wordsHash);
      const kept = readdirSync(join(site.dir, 'set-aside'));
      expect(kept).to.deep.equal([`${market}-${seq}-${own.snapshotHash}.json`]);
      const { publication, snapshot } = JSON.parse(readFileSync(join(site.dir, 'set-aside', kept[0]!), 'utf8')) as {
        publication: PublicationRow;
        snapshot: string;
      };
      expect(publicationOf(publication)).to.deep.equal(own);
      expect(snapshotHash(decodeSnapshot(snapshot))).to.equal(own.snapshotHash);
    });

    it('judges rivals by what landed, by their deadlines, and by nothing else', () => {
      const one = {
        market: 0,
        seq: 7,
        wordsHash: '0xaa',
        snapshotHash: '0x1',
        deadlineSec: 100,
      } as unknown as Publication;
      const other = { ...one, wordsHash: '0xbb' } as Publication;
      const both = { own: one, archived: other };
      expect(sentOf(both, { wordsHash: '0xaa', isAgreed: true }, 50)).to.equal('own');
      expect(sentOf(both, { wordsHash: '0xbb', isAgreed: true }, 50)).to.equal('archived');
      expect(sentOf(both, null, 101)).to.equal('own');
      const refusals: (() => unknown)[] = [
        () => sentOf(both, null, 100),
        () => sentOf(both, null, null),
        () => sentOf(both, { wordsHash: '0xaa', isAgreed: false }, 200),
        () => sentOf(both, { wordsHash: '0xbb', isAgreed: false }, 200),
        () => sentOf(both, { wordsHash: null, isAgreed: true }, 200),
        () => sentOf(both, { wordsHash: '0xcc', isAgreed: true }, 200),
        () =>
          sentOf({ own: one, archived: { ...one, snapshotHash: '0x2' } }, { wordsHash: '0xaa', isAgreed: true }, 200),
      ];
      for (const refuse of refusals) expect(refuse).to.throw().with.property('code', 'RESTORE_CONFLICT');
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
      const tail = { ...site.store, lastNumber: () => Promise.resolve(2) };
      const forged = { ...tail, read: signedBy(posterKey, { ...batch, publications: words }).read };
      expect(await refusal(forged, { db: fresh })).to.equal('ARCHIVE_UNPROVEN');
      expect(
        await refusal({ ...forged, lastNumber: () => Promise.resolve(0), firstNumber: () => Promise.resolve(0) }),
      ).to.equal('ARCHIVE_EMPTY');
    });

    it('says that its last file is cut off, and explains all the rest without it', async () => {
      await trade(stack, 6);
      await stack.stop();
      const last = await site.store.lastNumber();
      const path = readdirSync(site.dir, { recursive: true, encoding: 'utf8' })
        .filter((one) => one.endsWith('.cba'))
        .sort()
        .at(-1)!;
      const file = join(site.dir, path);
      const archive = await site.openArchive();
      truncateSync(file, Math.floor(statSync(file).size / 2));
      const cut = { code: 'ARCHIVE_DAMAGED', message: new RegExp(`^file ${last} of the archive can't be read`) };
      const refusals = [
        () => planImport(site.importDeps(db)),
        () => site.openArchive(),
        () => exportSettlements({ db, store: site.store, archive, deploymentId: site.chain.manifest.deploymentId }),
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
      await site.restore(fresh);
      stack = await site.start(fresh);
      while (stack.watcher.status().nextBlock <= (await site.headBlock())) await stack.watcher.scan();
      expect((await readHalt(fresh.knex))?.code).to.equal('unexplained_curve');
      const suspended = await readSuspense(fresh.knex, { open: true });
      expect(suspended.map(({ kind, seq }) => [kind, seq])).to.deep.equal([['fill', 6]]);
      const attributed = (await fresh.knex('fills').where({ missing_base_units: '0' })) as unknown[];
      expect(attributed).to.have.length(5);
      const verified = await site.verify(fresh).catch((error: Error) => error);
      expect(verified).to.have.property('message', 'curve 6 of WETH-USDC was never prepared');
      await stack.stop();
      // With the database the file is written again, under its number.
      const again = await site.openArchive();
      const deps = { db, store: site.store, archive: again, deploymentId: site.chain.manifest.deploymentId };
      expect(await exportPublications(deps)).to.deep.equal({ exported: 1, lost: 0 });
      expect(await site.store.lastNumber()).to.equal(last);
      const whole = await open();
      await site.restore(whole);
      stack = await site.start(whole);
      await scan(stack);
      expect(await balancesOf(whole)).to.deep.equal(await balancesOf(db));
      await goesOn(stack, whole);
    });

    it('gives each number to one of two writers', async () => {
      const [one, other] = [await site.openArchive(), await site.openArchive()];
      await Promise.all([one.write({ book: { orderSeq: 3, oid: 1 } }), other.write({ book: { orderSeq: 2, oid: 9 } })]);
      await one.write({ book: { orderSeq: 1, oid: 1 } });
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
