/** What is taken back after a reorganisation, and what is not, when the first endpoint tells of another chain than most. */
import { expect } from 'chai';
import { pino } from 'pino';
import type { Address } from '../../../core/types.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import { RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { ReconcileError, lostSince, planReconcile } from '../../../keepers/watcher/reconcile.js';
import { planRepair } from '../../../keepers/watcher/repair.js';
import { newestBlocks } from '../../../ledger/chain/blocks.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readOrphans } from '../../../ledger/chain/orphans.js';
import { readReversals } from '../../../ledger/chain/reversals.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import { forEachDatabase } from '../../support/db.js';
import { startDouble, type DoubleKeepers } from '../../support/nodes/double-keepers.js';
import { hiding, stuck } from '../../support/nodes/lies.js';

const ETHER = 10n ** 18n;
const logger = pino({ level: 'silent' });

forEachDatabase((name, open) => {
  describe(`reorganisations that the first endpoint denies, ${name}`, function () {
    this.timeout(60_000);
    let one: DoubleKeepers;

    beforeEach(async () => {
      one = await startDouble(await open());
      await one.send('maker1', 'deposit', [one.token('WETH'), 10n * ETHER]);
      await one.land();
    });

    afterEach(() => one.stack.stop());

    const deps = () => {
      const { deploymentBlock, contracts } = one.chain.manifest;
      const lower = (contract: string) => contracts[contract]!.toLowerCase() as Address;
      return {
        deploymentBlock,
        contracts: { custodian: lower('custodian'), curveBook: lower('curveBook'), entrypoint: lower('entrypoint') },
      };
    };
    const pool = (...all: Rpc[]): RpcPool =>
      createRpcPool(
        all.map((_, i) => String(i)),
        { nowMs: () => performance.now(), logger, connect: (url) => all[Number(url)]! },
      );
    const honest = (label: string): Rpc => ({ ...one.chain.rpc, name: label });
    const three = (first: Rpc): RpcPool => pool(first, honest('b'), honest('c'));
    const plan = (rpc: RpcPool, deep = false) => planReconcile(one.db, rpc, { ...deps(), deep });
    const codeOf = (planned: Promise<unknown>): Promise<unknown> =>
      planned.then(
        (found) => found,
        (error: unknown) => (error instanceof ReconcileError ? error.code : error),
      );

    it('what a lost block held is taken back as lost, and is never repaired instead', async () => {
      const common = await one.snapshot();
      await one.send('maker1', 'requestWithdraw', [one.token('WETH'), ETHER]);
      await one.land();
      const first = await stuck('a', one.chain.rpc);
      await one.fork(common, 2);
      expect((await plan(three(first)))?.reversal.depth).to.equal(1);
      for (const from of [undefined, 2])
        expect(await codeOf(planRepair(one.db, three(first), { ...deps(), from }))).to.equal('chain_changed');
    });

    it('a plan to read blocks again is void once the chain has lost one of them, and what that held is lost', async () => {
      const common = await one.snapshot();
      await one.send('maker1', 'requestWithdraw', [one.token('WETH'), ETHER]);
      await one.land();
      const { reversal } = (await planRepair(one.db, one.pool, { ...deps(), from: 2 }))!;
      // The operator still looks at it.
      await one.fork(common, 2);
      await one.reconcile(reversal);
      expect(await readReversals(one.db.knex), 'what was read again as if nothing was lost').to.deep.equal([]);
      expect((await readHalt(one.db.knex))?.code).to.equal('canonical_mismatch');
      await one.reconcile((await plan(one.pool))!.reversal);
      const [lost, ...others] = await readReversals(one.db.knex);
      expect([lost!.depth, others]).to.deep.equal([1, []]);
      const { custody } = await readOrphans(one.db.knex, lost!.generation);
      expect(custody.map(({ kind }) => kind)).to.deep.equal(['requested']);
      expect(await readHalt(one.db.knex)).to.equal(null);
    });

    it('a plan to read blocks again waits while no majority says whether it still has them', async () => {
      let areSilent = false;
      const moody = (label: string): Rpc => {
        const asked = <T>(answer: () => Promise<T>): Promise<T> =>
          areSilent ? Promise.reject(new RpcUnavailableError('no answer')) : answer();
        const { call, batch } = one.chain.rpc;
        return { name: label, call: (...of) => asked(() => call(...of)), batch: (all) => asked(() => batch(all)) };
      };
      one = await one.restart(one.db, { watcher: { rpc: pool(honest('a'), moody('b'), moody('c')) } });
      const { reversal } = (await planRepair(one.db, one.pool, { ...deps(), from: 2 }))!;
      const depths = async () => (await readReversals(one.db.knex)).map(({ depth }) => depth);
      areSilent = true;
      await requestReconcile(one.db, { reversal, capitalOrigin: false }, 1);
      for (let scans = 0; scans < 2; scans++) await one.stack.watcher.scan().catch(() => undefined);
      expect(await depths()).to.deep.equal([]);
      areSilent = false;
      for (let scans = 0; scans < 2; scans++) await one.stack.watcher.scan();
      expect(await depths()).to.deep.equal([0]);
    });

    it('a lost block that held nothing is taken back, too, and its halt ends', async () => {
      const common = await one.snapshot();
      await one.land();
      const first = await stuck('a', one.chain.rpc);
      await one.fork(common, 2);
      await one.stack.watcher.scan();
      expect((await readHalt(one.db.knex))?.code).to.equal('canonical_mismatch');
      const found = (await plan(three(first)))!;
      expect(found.reversal.depth).to.equal(1);
      await one.reconcile(found.reversal);
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await plan(three(first))).to.equal(null);
    });

    it('one that denies it is not believed while another one trails, and nobody else can contradict it', async () => {
      const trailing = await stuck('b', one.chain.rpc);
      const common = await one.snapshot();
      await one.land();
      const first = await stuck('a', one.chain.rpc);
      await one.fork(common, 2);
      expect(await codeOf(plan(pool(first, trailing, honest('c'))))).to.equal('node_behind');
      expect((await plan(three(first)))?.reversal.depth).to.equal(1);
    });

    it('an endpoint that is behind does not make the chain so, unless it is the only one', async () => {
      const first = await stuck('a', one.chain.rpc);
      await one.land();
      expect(await plan(three(first))).to.equal(null);
      expect(await codeOf(plan(pool(first)))).to.equal('node_behind');
      expect(await codeOf(plan(pool(first, { ...first, name: 'b' }, honest('c'))))).to.equal('node_behind');
    });

    it('an endpoint that invents an older block is passed over', async () => {
      const inventing = hiding('a', one.chain.rpc, 'hash', () => true);
      expect(await plan(three(inventing))).to.equal(null);
      const common = await one.snapshot();
      await one.land();
      await one.fork(common, 2);
      expect((await plan(three(inventing)))?.reversal.depth).to.equal(1);
    });

    it('one of two decides nothing, neither while the other contradicts it nor while it is silent', async () => {
      const common = await one.snapshot();
      await one.land();
      const first = await stuck('a', one.chain.rpc);
      await one.fork(common, 2);
      const isSilent = () => Promise.reject(new RpcUnavailableError('no answer'));
      for (const other of [honest('b'), { name: 'b', call: isSilent, batch: isSilent }])
        expect(await codeOf(plan(pool(first, other)))).to.equal('not_confirmed');
    });

    it('of more than 64 blocks, the first lost one is found where most have it', async () => {
      const common = await one.snapshot();
      const block = Number(await one.chain.rpc.call('eth_blockNumber'));
      for (let done = 0; done < 70; done += 5) {
        await one.mine(5);
        await one.catchUp();
      }
      const first = await stuck('a', one.chain.rpc);
      await one.fork(common, 71);
      const [known] = await newestBlocks(one.db.knex, 1);
      const { endpoints } = three(first);
      const from = deps().deploymentBlock;
      expect(await lostSince(one.db.knex, endpoints, { from, known: known!, logger })).to.equal(block + 1);
      expect(await codeOf(plan(three(first)))).to.equal('reorg_too_deep');
      expect((await plan(three(first), true))?.reversal.depth).to.equal(70);
    });
  });
});
