/** Claims and settlements that a database lost, and an archive knows. */
import { expect } from 'chai';
import type { Archive } from '../../../keepers/archive/archive.js';
import { ArchiveError, decodeBatch, encodeBatch } from '../../../keepers/archive/format.js';
import { exportSettlements } from '../../../keepers/archive/export.js';
import { planImport } from '../../../keepers/archive/import.js';
import { carryOutPrune, planPrune } from '../../../keepers/archive/prune.js';
import type { ArchiveStore } from '../../../keepers/archive/store.js';
import { RpcContradictionError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import type { Hex } from '../../../core/types.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { readSuspense } from '../../../ledger/chain/suspense.js';
import { lastCheckpoint } from '../../../ledger/settlements/checkpoint-log.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { VAULT, type Db } from '../../../ledger/types.js';
import { Custodian__factory } from '../../../typechain-types/index.js';
import { balancesOf, poolOf } from '../../support/archive.js';
import { forEachDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';
import { archivedLedger } from '../../support/worlds/archived-ledger.js';

const HOUR_MS = 3_600_000;

forEachDatabase((name, open) => {
  describe(`an archive, ${name}`, function () {
    this.timeout(60_000);
    const suite = archivedLedger(open);
    const { trade, scan, backup, goesOn } = suite;

    it('lets no claim exceed a balance after the promotion of a replica that lagged behind settlements that no archive has', async () => {
      await suite.stack.stop();
      suite.stack = await suite.site.start(suite.db, { settler: { archive: null } });
      await scan(suite.stack);
      await trade(suite.stack, 2);
      const replica = await backup();
      await suite.site.withdraw('maker1', 10n ** 18n);
      await suite.site.mine();
      await scan(suite.stack);
      expect((await suite.stack.settler.round()).settlements).to.have.length(1);
      await suite.site.mine();
      await scan(suite.stack);
      await trade(suite.stack, 1);
      const lost = await balancesOf(suite.db);
      await suite.stack.stop();
      await suite.site.restore(replica);
      suite.stack = await suite.site.start(replica);
      await scan(suite.stack);
      // Nothing that was prepared explains it; what it says is the chain's own word.
      expect((await readHalt(replica.knex))?.code).to.equal('unexplained_settlement');
      await appendOperatorRow(replica, { timeMs: 1, kind: 'resume', maker: null, note: '' });
      await scan(suite.stack);
      // What the lost settlement paid stays reserved beside the claim: too much for a while, and never too little.
      const units = (of: Record<string, string>) => Object.values(of).map((text) => text.split(' ')[0]);
      expect(units(await balancesOf(replica))).to.deep.equal(units(lost));
      await suite.stack.settler.round();
      await suite.site.mine();
      await scan(suite.stack);
      for (const row of await readBalances(replica.knex)) {
        if (row.account !== VAULT && row.reservedUnits > 0n)
          expect(row.balanceUnits >= row.reservedUnits).to.equal(true);
      }
      await goesOn(suite.stack, replica);
    });

    /** Requests of a maker, settled, landed and seen. */
    async function settle(on: KeeperStack, role: string, units: bigint): Promise<void> {
      await suite.site.withdraw(role, units);
      await suite.site.mine();
      await scan(on);
      expect((await on.settler.round()).settlements).to.have.length(1);
      await suite.site.mine();
      await scan(on);
    }

    it('knows every claim that a lagging replica lost: settled, signed and never mined, and paid', async () => {
      await trade(suite.stack, 2);
      await settle(suite.stack, 'maker2', 10n ** 17n);
      const replica = await backup();
      await settle(suite.stack, 'maker1', 10n ** 18n);
      await trade(suite.stack, 1);
      // Signed, and not mined before everything is lost.
      await suite.site.withdraw('maker2', 10n ** 18n);
      await suite.site.mine();
      await scan(suite.stack);
      const signed = await suite.stack.settler.round();
      expect(signed.settlements).to.have.length(1);
      await suite.stack.stop();
      await suite.site.mine(2);
      const report = await suite.site.restore(replica);
      expect(report).to.include({ settlements: 2 });
      expect(await suite.site.restore(replica), 'done again it does nothing').to.include({
        settlements: 0,
        imported: 0,
      });
      suite.stack = await suite.site.start(replica);
      await scan(suite.stack);
      expect((await readHalt(replica.knex))?.message).to.equal(undefined);
      expect(await readSuspense(replica.knex, { open: true })).to.deep.equal([]);
      const fresh = await open();
      await suite.stack.stop();
      expect(await suite.site.restore(fresh)).to.include({ settlements: 3 });
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect((await readHalt(fresh.knex))?.message).to.equal(undefined);
      expect(await balancesOf(fresh), 'what is reserved, too').to.deep.equal(await balancesOf(replica));
      // The claims that stand are those of the chain, none is raised again, and the next one is.
      expect((await suite.stack.settler.round()).settlements).to.deep.equal([]);
      await settle(suite.stack, 'maker1', 10n ** 16n);
      for (const row of await readBalances(fresh.knex)) {
        if (row.account !== VAULT) expect(row.balanceUnits >= row.reservedUnits).to.equal(true);
      }
      await goesOn(suite.stack, fresh);
    });

    it('stores a settlement once that stands in two files, because it was written again', async () => {
      await settle(suite.stack, 'maker1', 10n ** 18n);
      await suite.stack.stop();
      const { batch } = decodeBatch(await suite.site.store.read(await suite.site.store.lastNumber()), 'it');
      expect(batch.settlements).to.have.length(1);
      const archive = await suite.site.openArchive(suite.site.chain.wallet('settler').privateKey as Hex);
      await archive.write({ settlements: batch.settlements });
      // In one file, too.
      await archive.write({ settlements: [...batch.settlements, ...batch.settlements] });
      const fresh = await open();
      expect((await planImport(suite.site.importDeps(fresh))).settlements).to.have.length(1);
      await suite.site.restore(fresh);
      expect(await fresh.knex('settlements')).to.have.length(1);
    });

    it('holds what was made again against the newest checkpoint that was published, and gives no number of one away again', async () => {
      await trade(suite.stack, 3);
      await settle(suite.stack, 'maker1', 10n ** 18n);
      await suite.site.mine(3);
      await trade(suite.stack, 1);
      const published = (await lastCheckpoint(suite.db.knex))!;
      await suite.stack.stop();
      const fresh = await open();
      await suite.site.restore(fresh);
      expect((await planImport(suite.site.importDeps(fresh))).checkpoint).to.deep.equal(published);
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect((await suite.site.verify(fresh)).archivedCheckpoint).to.equal('agrees');
      await settle(suite.stack, 'maker2', 10n ** 17n);
      expect((await lastCheckpoint(fresh.knex))!.checkpointSeq).to.equal(published.checkpointSeq + 1);
      await goesOn(suite.stack, fresh);
      const value = JSON.stringify({ ...published, leafCount: 1 });
      await fresh.knex('meta').where({ key: 'archived_checkpoint' }).update({ value });
      const differing = await suite.site.verify(fresh);
      expect(differing.archivedCheckpoint).to.equal('differs');
      expect(differing.warnings.join()).to.contain(published.root);
    });

    it('is given what it lacks by an export, once', async () => {
      await suite.stack.stop();
      suite.stack = await suite.site.start(suite.db, { settler: { archive: null } });
      await scan(suite.stack);
      await settle(suite.stack, 'maker1', 10n ** 18n);
      await settle(suite.stack, 'maker2', 10n ** 18n);
      await suite.stack.stop();
      const { deploymentId } = suite.site.chain.manifest;
      const archive = await suite.site.openArchive(suite.site.chain.wallet('settler').privateKey as Hex);
      const deps = { db: suite.db, store: suite.site.store, archive, deploymentId };
      expect([await exportSettlements(deps), await exportSettlements(deps)]).to.deep.equal([2, 0]);
      const fresh = await open();
      expect(await suite.site.restore(fresh)).to.include({ settlements: 2 });
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect(await balancesOf(fresh)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, fresh);
    });

    it('gives up what neither the database nor a backup can lack, and nothing else', async () => {
      await trade(suite.stack, 4);
      await settle(suite.stack, 'maker1', 10n ** 18n);
      await trade(suite.stack, 4);
      const early = await backup();
      await trade(suite.stack, 3);
      await settle(suite.stack, 'maker2', 10n ** 18n);
      const { deploymentId } = suite.site.chain.manifest;
      const deps = { db: suite.db, store: suite.site.store, deploymentId, beforeMs: Date.now() + 1 + HOUR_MS };
      const ranges = async (change: Partial<typeof deps> = {}) =>
        (await planPrune({ ...deps, ...change })).folders.map(({ first, last }) => [first, last]);
      const keeps = async (change: Partial<typeof deps> = {}) => (await planPrune({ ...deps, ...change })).keeps;
      expect([await ranges(), await keeps()]).to.deep.equal([
        [],
        'file 1 stays: curve 1 of market 0 may yet be hit by what the ledger has not scanned',
      ]);
      await suite.site.chain.rpc.call('evm_increaseTime', [2_000]);
      await suite.site.mine();
      await scan(suite.stack);
      await suite.stack.stop();
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
      const { batch: middle } = decodeBatch(await suite.site.store.read(6), 'it');
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
      const { batch: oldest } = decodeBatch(await suite.site.store.read(1), 'it');
      expect(await keeps({ beforeMs: oldest.timeMs + HOUR_MS }), 'clocks that differ').to.equal(
        'file 1 is younger than the oldest backup',
      );

      const plan = await planPrune({ ...deps, beforeMs: middle.timeMs + HOUR_MS });
      expect(await carryOutPrune(suite.site.store, plan)).to.equal(3);
      expect(await suite.site.store.firstNumber()).to.equal(4);
      expect(await ranges(), 'what is left is an archive').to.deep.equal([
        [4, 7],
        [8, 11],
      ]);
      // With what is left the backup is whole again, and a new database is refused.
      await suite.site.restore(early);
      const nothing = await planImport(suite.site.importDeps(fresh));
      expect(
        nothing.unexplained.map(({ seq }) => seq),
        'said before anything is done',
      ).to.deep.equal([1, 2, 3]);
      suite.stack = await suite.site.start(early);
      await scan(suite.stack);
      expect(await balancesOf(early)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, early);
    });

    it('takes settlements of nobody who may not settle', async () => {
      await settle(suite.stack, 'maker1', 10n ** 18n);
      const number = await suite.site.store.lastNumber();
      const { batch } = decodeBatch(await suite.site.store.read(number), 'it');
      expect(batch.settlements).to.have.length(1);
      const posterKey = suite.site.chain.wallet('poster').privateKey as Hex;
      const forged: ArchiveStore = {
        ...suite.site.store,
        read: (one) => (one === number ? Promise.resolve(encodeBatch(batch, posterKey)) : suite.site.store.read(one)),
      };
      const refused = await planImport({ ...suite.site.importDeps(suite.db), store: forged }).catch(
        (error: ArchiveError) => error,
      );
      expect(refused).to.include({ code: 'ARCHIVE_UNPROVEN' });
      expect((refused as Error).message).to.contain('may not settle');
    });

    it('asks a majority whose files it may take, whatever one endpoint says of a key', async () => {
      await settle(suite.stack, 'maker1', 10n ** 18n);
      const number = await suite.site.store.lastNumber();
      const { batch } = decodeBatch(await suite.site.store.read(number), 'it');
      const strangerKey = suite.site.chain.wallet('maker1').privateKey as Hex;
      const forged: ArchiveStore = {
        ...suite.site.store,
        read: (one) => (one === number ? Promise.resolve(encodeBatch(batch, strangerKey)) : suite.site.store.read(one)),
      };
      const { rpc: honest } = suite.site.chain;
      const isPoster = Custodian__factory.createInterface().getFunction('isPoster').selector;
      /** An endpoint that says so of every key. */
      const saying = (word: 0 | 1): Rpc => ({
        ...honest,
        call: async (method, params) => {
          const isAsked = method === 'eth_call' && (params?.[0] as { data: string }).data.startsWith(isPoster);
          return isAsked ? `0x${`${word}`.padStart(64, '0')}` : honest.call(method, params);
        },
      });
      const down: Rpc = { ...honest, call: () => Promise.reject(new RpcUnavailableError('down')) };
      const outcome = (store: ArchiveStore, ...endpoints: Rpc[]): Promise<unknown> =>
        planImport({ ...suite.site.importDeps(suite.db), store, rpc: poolOf(endpoints) }).then(
          () => 'taken',
          (error: unknown) => (error instanceof ArchiveError ? error.code : error),
        );
      expect(await outcome(forged, saying(1), honest, honest)).to.equal('ARCHIVE_UNPROVEN');
      expect(await outcome(forged, down, saying(1), honest), 'undecided').to.be.instanceOf(RpcContradictionError);
      expect(await outcome(suite.site.store, saying(0), honest, honest)).to.equal('taken');
      expect(await outcome(suite.site.store, down, honest)).to.equal('taken');
    });

    it('settles nothing that it can not write, but lowers claims', async () => {
      await settle(suite.stack, 'maker1', 10n ** 18n);
      await suite.stack.stop();
      const archive = await suite.site.openArchive(suite.site.chain.wallet('settler').privateKey as Hex);
      let isBroken = true;
      const write: Archive['write'] = (...args) =>
        isBroken ? Promise.reject(new Error('disk full')) : archive.write(...args);
      suite.stack = await suite.site.start(suite.db, {
        settler: { archive: { archive: { ...archive, write }, required: true } },
      });
      await scan(suite.stack);
      await suite.site.withdraw('maker2', 10n ** 17n);
      await suite.site.mine();
      await scan(suite.stack);
      expect((await suite.stack.settler.round()).txHash).to.equal(null);
      expect(suite.stack.settler.status().blockedBy).to.equal('archive_fails');
      await appendOperatorRow(suite.db, {
        ...{ timeMs: 1, kind: 'lowerClaim', maker: suite.site.chain.address('maker1'), note: '' },
        lower: { token: `0x${'1'.repeat(40)}`, amountUnits: 1n },
      });
      expect((await suite.stack.settler.round()).txHash).not.to.equal(null);
      isBroken = false;
      await suite.site.mine();
      await scan(suite.stack);
      expect((await suite.stack.settler.round()).settlements.map(({ maker }) => maker)).to.deep.equal([
        suite.site.chain.address('maker2'),
      ]);
      expect(suite.stack.settler.status().blockedBy).to.equal(null);
      await suite.site.mine();
      await scan(suite.stack);
      await suite.site.verify(suite.db);
    });
  });
});
