/** Two publications under one number, and what is deleted of an archive: by what landed, and on the word of no single endpoint. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { exportPublications } from '../../../keepers/archive/export.js';
import { decodeBatch } from '../../../keepers/archive/format.js';
import { planImport } from '../../../keepers/archive/import.js';
import { planPrune } from '../../../keepers/archive/prune.js';
import { readArchive, type ArchiveStore } from '../../../keepers/archive/store.js';
import type { Hex } from '../../../core/types.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readSuspense } from '../../../ledger/chain/suspense.js';
import {
  lastPublicationSeq,
  publicationOf,
  readPublication,
  type PublicationRow,
} from '../../../ledger/publications/publication-log.js';
import { decodeSnapshot } from '../../../core/json.js';
import { snapshotHash } from '../../../core/snapshot.js';
import { sentOf } from '../../../ledger/orders/restore.js';
import { RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import type { Db, Publication } from '../../../ledger/types.js';
import { balancesOf, poolOf } from '../../support/archive.js';
import { forEachDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';
import { archivedLedger, MID, LOT } from '../../support/worlds/archived-ledger.js';

forEachDatabase((name, open) => {
  describe(`an archive, ${name}`, function () {
    this.timeout(60_000);
    const suite = archivedLedger(open);
    const { trade, scan, backup, goesOn } = suite;

    /** A backup and the database that it is of go on beside each other, and post different words under the same number. */
    async function rivals(archivedLands: boolean, what: 'cancels' | 'orders' = 'cancels'): Promise<Db> {
      await trade(suite.stack, 2);
      const copy = await backup();
      await suite.stack.stop();
      const mark = await suite.site.mark();
      const post = async (on: KeeperStack, priceTicks: bigint) => {
        await scan(on);
        const maker = suite.site.chain.address('maker2');
        if (what === 'orders') await on.order(maker, [{ side: 'ask', priceTicks, sizeLots: 4_000n }]);
        // Its ask, or its bid.
        else await on.order(maker, [], [priceTicks === MID + 2n ? 3 : 4]);
        const round = await on.poster.round();
        return round!.publications[0]!.seq;
      };
      const lost = archivedLands ? copy : suite.db;
      suite.stack = await suite.site.start(lost, archivedLands ? { archive: null } : {});
      const first = await post(suite.stack, MID + 2n);
      await suite.stack.stop();
      // What it sent never lands.
      await suite.site.takeBack(mark);
      const landing = archivedLands ? suite.db : copy;
      suite.stack = await suite.site.start(landing, archivedLands ? {} : { archive: null });
      expect(await post(suite.stack, MID + 3n)).to.equal(first);
      await suite.site.mine();
      await suite.site.swap(true, LOT * 700n);
      await suite.site.mine();
      await scan(suite.stack);
      await suite.stack.stop();
      return copy;
    }

    it('decides by the words that landed which of two publications under one number was sent', async () => {
      const copy = await rivals(true);
      const plan = await planImport(suite.site.importDeps(copy));
      expect(plan.superseded).to.have.length(1);
      await suite.site.restore(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect(await balancesOf(copy)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, copy);
    });

    it('leaves the database its own publication where that is the one that landed', async () => {
      const copy = await rivals(false);
      const before = await balancesOf(copy);
      const plan = await planImport(suite.site.importDeps(copy));
      expect([plan.superseded, plan.missing]).to.deep.equal([[], []]);
      await suite.site.restore(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect(await balancesOf(copy)).to.deep.equal(before);
      await goesOn(suite.stack, copy);
    });

    /** What `curvebook archive export` does. */
    const exported = async (db: Db) =>
      exportPublications({
        db,
        store: suite.site.store,
        archive: await suite.site.openArchive(),
        deploymentId: suite.site.chain.manifest.deploymentId,
      });

    it('is given by an export the publication that landed, where it has another one under its number', async () => {
      const copy = await rivals(false);
      await suite.site.restore(copy);
      expect(await exported(copy)).to.deep.equal({ exported: 1, lost: 0 });
      expect(await exported(copy), 'once').to.deep.equal({ exported: 0, lost: 0 });
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      await goesOn(suite.stack, copy);
      const balances = await balancesOf(copy);
      await suite.stack.stop();
      const fresh = await open();
      const plan = await planImport(suite.site.importDeps(fresh));
      expect([plan.disproven, plan.unexplained, plan.landed]).to.deep.equal([[], [], plan.missing.length]);
      await suite.site.restore(fresh);
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect((await readHalt(fresh.knex))?.message).to.equal(undefined);
      expect(await balancesOf(fresh)).to.deep.equal(balances);
      await goesOn(suite.stack, fresh);
    });

    it('gives up in time what never landed under a number under which another curve did', async () => {
      const copy = await rivals(false);
      await suite.site.restore(copy);
      await exported(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      await trade(suite.stack, 6);
      const { deploymentId } = suite.site.chain.manifest;
      const deps = { db: copy, store: suite.site.store, deploymentId, beforeMs: Date.now() + 1 + 3_600_000 };
      const kept = await planPrune(deps);
      expect([kept.folders, kept.keeps]).to.deep.equal([
        [],
        'file 1 stays: curve 1 of market 0 may yet be hit by what the ledger has not scanned',
      ]);
      await suite.site.chain.rpc.call('evm_increaseTime', [2_000]);
      await suite.site.mine();
      await scan(suite.stack);
      // File 3 has what never landed.
      expect((await planPrune(deps)).folders[0]).to.include({ first: 1, last: 3 });
      // The other database never saw anything land under that number.
      expect((await planPrune({ ...deps, db: suite.db })).folders).to.deep.equal([]);
    });

    it('explains all the rest where nothing but what never landed was archived under a number', async () => {
      const copy = await rivals(false);
      await suite.site.restore(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      await goesOn(suite.stack, copy);
      await suite.stack.stop();
      const fresh = await open();
      const plan = await planImport(suite.site.importDeps(fresh));
      expect(plan.disproven.map(({ publication: { seq } }) => seq)).to.deep.equal([3]);
      expect(plan.unexplained.map(({ seq }) => seq)).to.deep.equal([3]);
      // An endpoint that nobody else confirms leaves nothing out.
      const { rpc } = suite.site.chain;
      const alone = { ...suite.site.importDeps(fresh), rpc: poolOf([rpc, lying('logs'), lying('logs')]) };
      expect(await planImport(alone).catch((error: Error) => error)).to.include({ code: 'ARCHIVE_UNPROVEN' });
      await suite.site.restore(fresh);
      suite.stack = await suite.site.start(fresh);
      do await suite.stack.watcher.scan();
      while (suite.stack.watcher.status().nextBlock <= (await suite.site.headBlock()));
      expect((await readHalt(fresh.knex))?.code).to.equal('unexplained_curve');
      const suspended = await readSuspense(fresh.knex, { open: true });
      expect(suspended.map(({ kind, seq }) => [kind, seq])).to.deep.equal([['fill', 3]]);
      await suite.stack.stop();
      // The database that has it may give it to the archive later.
      expect(await exported(copy)).to.deep.equal({ exported: 1, lost: 0 });
      await suite.site.restore(fresh);
      suite.stack = await suite.site.start(fresh);
      await scan(suite.stack);
      expect((await readHalt(fresh.knex))?.message).to.equal(undefined);
      expect(await balancesOf(fresh)).to.deep.equal(await balancesOf(copy));
      await goesOn(suite.stack, fresh);
    });

    it('takes of the same words the deadline that the chain has, for a curve and for a touch', async () => {
      await trade(suite.stack, 2);
      let touch: string | undefined;
      for (let tries = 0; tries < 20 && touch !== 'touch'; tries += 1) {
        await suite.site.chain.rpc.call('evm_increaseTime', [4]);
        await suite.site.mine();
        await scan(suite.stack);
        touch = (await suite.stack.poster.round())?.publications[0]?.kind;
        await suite.site.mine();
        await scan(suite.stack);
      }
      expect(touch).to.equal('touch');
      await suite.stack.stop();
      const seqs = [2, await lastPublicationSeq(suite.db.knex, 0)];
      const copy = await backup();
      for (const seq of seqs) {
        const { deadlineSec } = (await readPublication(copy.knex, 0, seq))!;
        await copy
          .knex('publications')
          .where({ market: 0, seq })
          .update({ deadline_sec: deadlineSec + 1 });
      }
      const sent = await Promise.all(seqs.map((seq) => readPublication(suite.db.knex, 0, seq)));
      const plan = await planImport(suite.site.importDeps(copy));
      expect(plan.superseded).to.deep.equal(sent);
      // Both are archived, and the database has neither.
      expect(await exported(copy)).to.deep.equal({ exported: 2, lost: 0 });
      const { missing } = await planImport(suite.site.importDeps(await open()));
      for (const one of sent) expect(missing.filter(({ seq }) => seq === one!.seq)).to.deep.equal([one]);
      await suite.site.restore(copy);
      suite.stack = await suite.site.start(copy);
      await scan(suite.stack);
      expect(await balancesOf(copy)).to.deep.equal(await balancesOf(suite.db));
      await goesOn(suite.stack, copy);
    });

    it('refuses where both took orders after they parted, so that a fill could name either', async () => {
      const copy = await rivals(true, 'orders');
      const refused = await planImport(suite.site.importDeps(copy)).catch((error: Error) => error);
      expect(refused).to.include({ code: 'RESTORE_CONFLICT' });
      expect((refused as Error).message).to.contain('order 5');
    });

    it('refuses where one endpoint denies the words that another one names', async () => {
      const copy = await rivals(true);
      const { rpc } = suite.site.chain;
      const words = decodeBatch(await suite.site.store.read(await suite.site.store.lastNumber()), 'it').batch
        .publications[0]!.wordsHash;
      const lying: Rpc = {
        ...rpc,
        call: async (method, params) => {
          const answer = await rpc.call(method, params);
          const swapped = JSON.stringify(answer).replaceAll(words.slice(2), 'ab'.repeat(32));
          return method === 'eth_getLogs' ? (JSON.parse(swapped) as unknown) : answer;
        },
      };
      const deps = { ...suite.site.importDeps(copy), rpc: poolOf([rpc, lying]) };
      const refused = await planImport(deps).catch((error: { code: string }) => error);
      expect(refused).to.include({ code: 'RESTORE_CONFLICT' });
    });

    /** An endpoint that names no log, or whose newest block is a day later than it is. */
    function lying(about: 'logs' | 'head'): Rpc {
      const { rpc } = suite.site.chain;
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
      const { rpc } = suite.site.chain;
      const plan = (endpoints: readonly Rpc[]) =>
        planImport({ ...suite.site.importDeps(copy), rpc: poolOf(endpoints) }).catch(
          (error: { code: string }) => error,
        );
      const silent = lying('logs');
      const broken: Rpc = { ...rpc, call: () => Promise.reject(new RpcUnavailableError('down')) };
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
        planImport({ ...suite.site.importDeps(copy), rpc: poolOf(endpoints) }).catch(
          (error: { code: string }) => error,
        );
      expect(await plan([silent, silent, early])).to.include({ code: 'RESTORE_CONFLICT' });
      expect(await plan([early, early, silent]), 'most of them say so').to.deep.include({ superseded: [] });
    });

    it('keeps what makes way beside the archive before it is deleted', async () => {
      const copy = await rivals(true);
      const { superseded } = await planImport(suite.site.importDeps(copy));
      const { market, seq } = superseded[0]!;
      const own = (await readPublication(copy.knex, market, seq))!;
      const full: ArchiveStore = { ...suite.site.store, setAside: () => Promise.reject(new Error('disk full')) };
      const failed = await suite.site.restore(copy, { store: full }).catch((error: unknown) => error);
      expect((failed as Error).message).to.equal('disk full');
      expect(await readPublication(copy.knex, market, seq), 'nothing was deleted').to.deep.equal(own);
      await suite.site.restore(copy);
      expect((await readPublication(copy.knex, market, seq))!.wordsHash).to.equal(superseded[0]!.wordsHash);
      const kept = readdirSync(join(suite.site.dir, 'set-aside'));
      expect(kept).to.deep.equal([`${market}-${seq}-${own.snapshotHash}.json`]);
      const { publication, snapshot } = JSON.parse(
        readFileSync(join(suite.site.dir, 'set-aside', kept[0]!), 'utf8'),
      ) as {
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

    it('finds no conflict in the same words of the same book, which the database keeps unless the chain has the other deadline', () => {
      const one = { market: 0, seq: 7, baseSeq: 7, kind: 'full', wordsHash: '0xaa', snapshotHash: '0x1' };
      const own = { ...one, deadlineSec: 100 } as unknown as Publication;
      const both = { own, archived: { ...own, deadlineSec: 101 } };
      const landed = { wordsHash: '0xaa', isAgreed: true } as const;
      expect(sentOf(both, landed, 200)).to.equal('own');
      expect(sentOf(both, { ...landed, deadlineSec: 100 }, 200)).to.equal('own');
      expect(sentOf(both, { ...landed, deadlineSec: 101 }, 200)).to.equal('archived');
      const touching = {
        own: { ...own, kind: 'touch', baseSeq: 6 },
        archived: { ...both.archived, kind: 'touch', baseSeq: 6 },
      };
      const touched = { wordsHash: null, baseSeq: 6, isAgreed: true } as const;
      const touches = touching as typeof both;
      expect(sentOf(touches, { ...touched, deadlineSec: 100 }, 200)).to.equal('own');
      expect(sentOf(touches, { ...touched, deadlineSec: 101 }, 200)).to.equal('archived');
      expect(sentOf({ own, archived: touches.archived }, { ...touched, deadlineSec: 101 }, 200)).to.equal('archived');
      expect(sentOf({ own, archived: touches.archived }, landed, 200), 'a post is no touch').to.equal('own');
      const refusals: (() => unknown)[] = [
        () => sentOf(both, { ...landed, isAgreed: false }, 200),
        () => sentOf(both, null, 101),
        () => sentOf(touches, { ...touched, baseSeq: 5 }, 200),
        () => sentOf({ ...touches, archived: { ...touches.archived, wordsHash: '0xbb' } }, touched, 200),
      ];
      for (const refuse of refusals) expect(refuse).to.throw().with.property('code', 'RESTORE_CONFLICT');
      const words = { ...touched, wordsHash: '0xbb' } as const;
      const other = {
        ...touches,
        archived: { ...touches.archived, wordsHash: '0xbb' as const, snapshotHash: '0x2' as const },
      };
      expect(sentOf(other, words, 200), 'of the curve that it prolongs').to.equal('archived');
    });

    for (const depth of [65, 200]) {
      it(`is the way out of a reorganisation of ${depth} blocks, with a backup and without one`, async () => {
        await trade(suite.stack, 2);
        const early = await backup();
        const mark = await suite.site.mark();
        await trade(suite.stack, 2);
        await suite.site.mine(depth - 4);
        await scan(suite.stack);
        await suite.site.takeBack(mark);
        await suite.site.mine(depth + 1);
        await suite.stack.watcher.scan();
        expect((await readHalt(suite.db.knex))?.code).to.equal('canonical_mismatch');
        await suite.stack.stop();
        const fresh = await open();
        let balances: unknown = null;
        for (const one of [early, fresh]) {
          await suite.site.restore(one);
          suite.stack = await suite.site.start(one);
          await scan(suite.stack);
          expect((await readHalt(one.knex))?.message).to.equal(undefined);
          balances ??= await balancesOf(one);
          expect(await balancesOf(one)).to.deep.equal(balances);
          await suite.site.verify(one);
          if (one === fresh) await goesOn(suite.stack, one);
          else await suite.stack.stop();
        }
      });
    }

    it('gives each number to one of two writers', async () => {
      const [one, other] = [await suite.site.openArchive(), await suite.site.openArchive()];
      await Promise.all([one.write({ book: { orderSeq: 3, oid: 1 } }), other.write({ book: { orderSeq: 2, oid: 9 } })]);
      await one.write({ book: { orderSeq: 1, oid: 1 } });
      const numbers = [];
      for await (const { batch } of readArchive(suite.site.store, suite.site.chain.manifest.deploymentId)) {
        numbers.push(batch.number);
        expect(batch.highs.orderSeq).to.equal(numbers.length === 1 ? batch.highs.orderSeq : 3);
      }
      expect(numbers).to.deep.equal([1, 2, 3]);
      expect((await suite.site.openArchive()).highs()).to.deep.equal({ seqs: {}, orderSeq: 3, oid: 9 });
    });
  });
});
