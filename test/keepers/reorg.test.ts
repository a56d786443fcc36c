import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { MaxUint256, parseUnits } from 'ethers';
import { pino } from 'pino';
import type { Address, Hex } from '../../core/types.js';
import { createOutbox } from '../../keepers/chain/outbox.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import { ReconcileError, planReconcile, type ReconcilePlan } from '../../keepers/watcher/reconcile.js';
import { verifyLedger, type VerifyReport } from '../../keepers/verify/verify.js';
import { readBalances, sumBalances } from '../../ledger/chain/balances.js';
import { readCapitalOrigin } from '../../ledger/chain/operator-capital.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { readOrphans } from '../../ledger/chain/orphans.js';
import { listOutbox } from '../../ledger/transactions/outbox.js';
import { fillSeqs, fillWithLegs } from '../../ledger/views/reads.js';
import { requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import { readReversals } from '../../ledger/chain/reversals.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { Custodian__factory } from '../../typechain-types/index.js';
import { forEachDatabase } from '../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { verifyDeps } from '../support/verify.js';

const ETHER = 10n ** 18n;
const DEPTHS = [1, 2, 3, 5, 8, 13, 21, 34, 64];
const LOTS = 10_000n;

describe('a chain that takes blocks back', () => {
  let chain: ManualChain;

  before(async function () {
    this.timeout(120_000);
    chain = await startManualChain();
    await chain.tokenAs('WETH', 'taker2').getFunction('approve')(chain.manifest.contracts.custodian, MaxUint256, {
      gasLimit: 100_000n,
    });
    await chain.mine();
  });

  after(() => chain.close());

  forEachDatabase((_name, open) => {
    let stack: KeeperStack;
    let rpc: RpcPool;
    let start: string;
    let maker: Address;
    let newcomer: Address;

    beforeEach(async function () {
      this.timeout(60_000);
      start = await snapshot();
      maker = chain.address('maker1');
      newcomer = chain.address('taker2');
      rpc = createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger: pino({ level: 'silent' }) });
      stack = await startKeepers(await open(), chain);
      await land();
    });

    afterEach(async () => {
      await stack.stop();
      await chain.provider.send('evm_revert', [start]);
    });

    const snapshot = async (): Promise<string> => (await chain.provider.send('evm_snapshot', [])) as string;
    const token = (symbol: string): Address =>
      chain.manifest.tokens.find((one) => one.symbol === symbol)!.address.toLowerCase() as Address;
    const lastFill = async (): Promise<number> => (await fillSeqs(stack.db.knex)).get(0) ?? 0;
    const plan = () => planReconcile(stack.db, rpc, { deploymentBlock: chain.manifest.deploymentBlock });

    async function balanceOf(account: Address, symbol: string): Promise<bigint> {
      const rows = await readBalances(stack.db.knex, { account });
      return rows.find((row) => row.token === token(symbol))?.balanceUnits ?? 0n;
    }

    async function land(): Promise<void> {
      await chain.mine();
      await stack.watcher.scan();
    }

    async function deposit(units: bigint): Promise<void> {
      const custodian = Custodian__factory.connect(chain.manifest.contracts.custodian, chain.wallet('taker2'));
      const gasPrice = parseUnits('3', 'gwei');
      await custodian.deposit(token('WETH'), units, { gasLimit: 300_000n, gasPrice });
    }

    async function buy(units: bigint): Promise<void> {
      const taker = chain.address('taker1');
      await chain
        .entrypointAs('taker1')
        .swapExactOutput(token('USDC'), token('WETH'), units, MaxUint256, taker, MaxUint256, {
          gasPrice: parseUnits('3', 'gwei'),
          gasLimit: 1_000_000n,
        });
    }

    async function expectSolvent(): Promise<void> {
      expect(await readHalt(stack.db.knex)).to.equal(null);
      const sums = await sumBalances(stack.db.knex);
      for (const symbol of ['WETH', 'USDC']) {
        const held = (await chain.tokenAs(symbol, 'owner').getFunction('balanceOf')(
          chain.manifest.contracts.custodian,
        )) as bigint;
        expect(sums.get(token(symbol)), symbol).to.equal(held);
      }
    }

    /** Everything follows from what it was derived from, and agrees with the chain. */
    async function expectVerified(): Promise<VerifyReport> {
      return verifyLedger({ ...verifyDeps(stack.db, chain), rpc });
    }

    /** Scans until the ledger is at the head. */
    async function catchUp(): Promise<void> {
      do await stack.watcher.scan();
      while (stack.watcher.status().catchingUp && stack.watcher.status().halt === null);
    }

    /** Takes the chain back to a snapshot and lets it grow otherwise, to more blocks than before. */
    async function fork(to: string, blocks: number): Promise<void> {
      await chain.provider.send('evm_revert', [to]);
      // From the time it had: a curve must not expire because the lost branch took long.
      const head = (await chain.provider.getBlock('latest'))!;
      await chain.provider.send('evm_setNextBlockTimestamp', [head.timestamp + 2]);
      // One by one: the chain makes up the hashes of blocks that it mines in bulk.
      for (let block = 0; block < blocks; block++) await chain.mine();
    }

    async function reconcile(found: ReconcilePlan): Promise<void> {
      await requestReconcile(stack.db, { reversal: found.reversal, capitalOrigin: false }, 1);
      await catchUp();
    }

    const legsOf = async (fillSeq: number) =>
      (await fillWithLegs(stack.db.knex, 0, fillSeq))?.decomposition.legs.map((leg) => [leg.maker, leg.priceTicks]);

    it('takes back deposits that were quoted and fills, at any depth up to 64', async function () {
      this.timeout(180_000);
      const [resting] = await stack.order(maker, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 5n * LOTS }]);
      for (const [round, depth] of DEPTHS.entries()) {
        await stack.poster.round();
        await land();
        const common = await snapshot();
        const commonBlock = await chain.provider.getBlockNumber();
        const before = {
          maker: [await balanceOf(maker, 'WETH'), await balanceOf(maker, 'USDC')],
          fill: await lastFill(),
          sums: await sumBalances(stack.db.knex),
        };

        // A branch of `depth` blocks: a deposit that is quoted as soon as it is seen, a curve with it, and fills.
        await deposit(4n * ETHER);
        if (depth < 3) await buy(ETHER / 8n);
        await land();
        const [quoted] = await stack.order(newcomer, [{ side: 'ask', priceTicks: 299_000n, sizeLots: 2n * LOTS }]);
        const lost = await stack.poster.round();
        expect(lost).to.not.equal(null);
        for (let block = 2; block <= depth; block++) {
          if (block === 3) await buy(ETHER / 4n);
          await chain.mine();
          if (block % 4 !== 1) await stack.watcher.scan();
        }
        await catchUp();
        expect(await chain.provider.getBlockNumber()).to.equal(commonBlock + depth);
        expect(await lastFill()).to.equal(before.fill + 1);
        const expectedMaker = depth < 3 ? [maker, 300_000n] : [newcomer, 299_000n];
        expect(await legsOf(before.fill + 1)).to.deep.equal([expectedMaker]);

        await fork(common, depth + 1);
        await stack.watcher.scan();
        expect(stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
        expect(await stack.poster.round(), 'nothing is published while halted').to.equal(null);
        const found = (await plan())!;
        expect(found.orphanedBlocks).to.deep.equal({ from: commonBlock + 1, to: commonBlock + depth });
        expect(found.reversal.depth).to.equal(depth);
        expect(found.orphans.fills.map(({ fillSeq }) => fillSeq)).to.deep.equal([before.fill + 1]);
        const told = found.orphans.fills.flatMap((fill) => fill.notifications.map((one) => [one.maker, one.oid]));
        expect(told).to.deep.equal([depth < 3 ? [maker, resting] : [newcomer, quoted]]);
        expect(found.orphans.custody.map(({ kind, maker: who }) => [kind, who])).to.deep.equal([
          ['deposited', newcomer],
        ]);

        await reconcile(found);
        await expectSolvent();
        const reversals = await readReversals(stack.db.knex);
        expect(reversals).to.have.length(round + 1);
        expect((await readOrphans(stack.db.knex, reversals.at(-1)!.generation)).fills).to.deep.equal(
          found.orphans.fills,
        );
        expect(await plan()).to.equal(null);
        expect(await balanceOf(newcomer, 'WETH')).to.equal(0n);
        expect([await balanceOf(maker, 'WETH'), await balanceOf(maker, 'USDC')]).to.deep.equal(before.maker);
        expect(await sumBalances(stack.db.knex)).to.deep.equal(before.sums);
        expect(await lastFill()).to.equal(before.fill);
        expect(await legsOf(before.fill + 1)).to.equal(undefined);

        // The curve of the lost view can't land any more, and what it quoted for nothing is not quoted again.
        await buy(ETHER / 2n);
        await land();
        expect(await legsOf(before.fill + 1)).to.deep.equal([[maker, 300_000n]]);
        await stack.poster.round();
        await land();
        await buy(ETHER / 2n);
        await land();
        expect(await legsOf(before.fill + 2)).to.deep.equal([[maker, 300_000n]]);
        await expectSolvent();
        if (depth === 3 || depth === 64) {
          const report = await expectVerified();
          expect([report.reversals, report.fills]).to.deep.equal([round + 1, before.fill + 2]);
        }
        await stack.order(newcomer, [], [quoted!]);
        await stack.order(maker, [{ side: 'ask', priceTicks: 300_000n, sizeLots: LOTS }]);
      }
    });

    it('books what was mined again once more, and the same after the chain went back', async function () {
      this.timeout(60_000);
      let before = await snapshot();
      await deposit(3n * ETHER);
      await land();
      // The very same transaction is mined in another block, again and again.
      for (let times = 1; times <= 3; times++) {
        await chain.provider.send('evm_revert', [before]);
        before = await snapshot();
        await chain.provider.send('evm_increaseTime', [times]);
        await chain.mine();
        await deposit(3n * ETHER);
        await chain.mine();
        await stack.watcher.scan();
        await reconcile((await plan())!);
        const rows = await readBalances(stack.db.knex, { account: newcomer });
        const row = rows.find((one) => one.token === token('WETH'));
        expect([row?.balanceUnits, row?.netCapitalUnits]).to.deep.equal([3n * ETHER, 3n * ETHER]);
        await expectSolvent();
      }
      await expectVerified();
      const hashes = await stack.db
        .knex('entries')
        .where({ kind: 'deposit', account: newcomer })
        .select<{ ref: string }[]>('ref');
      expect(new Set(hashes.map(({ ref }) => ref.replace('reversed:', '').replace(/~.*/, ''))).size).to.equal(1);
    });

    it('refuses a depth of 65 and stays halted', async function () {
      this.timeout(60_000);
      const common = await snapshot();
      for (let block = 0; block < 65; block++) await chain.mine();
      await catchUp();
      await fork(common, 66);
      await stack.watcher.scan();
      const refused = await plan().catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(ReconcileError);
      expect((refused as ReconcileError).code).to.equal('reorg_too_deep');
      await stack.watcher.scan();
      expect(stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
    });

    it('does not carry out a request that the ledger has overtaken', async () => {
      const common = await snapshot();
      await land();
      await fork(common, 2);
      await stack.watcher.scan();
      const found = (await plan())!;
      const stale = { ...found.reversal, headGeneration: found.reversal.headGeneration - 1 };
      await requestReconcile(stack.db, { reversal: stale, capitalOrigin: false }, 1);
      await stack.watcher.scan();
      expect(stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
      expect(await readReversals(stack.db.knex)).to.deep.equal([]);
      await reconcile(found);
      await expectSolvent();
    });

    it('never leaves readers without markets while it is reconciled', async () => {
      const common = await snapshot();
      await land();
      await fork(common, 2);
      await stack.watcher.scan();
      const found = (await plan())!;
      await requestReconcile(stack.db, { reversal: found.reversal, capitalOrigin: false }, 1);
      const seen = new Set<number>();
      let done = false;
      const scanning = stack.watcher.scan().finally(() => (done = true));
      for (; !done; await nextTurn()) seen.add(stack.markets.length);
      await scanning;
      expect([...seen]).to.deep.equal([1]);
      await expectSolvent();
    });

    it('says that the node is behind, or that nothing is to be done', async () => {
      expect(await plan()).to.equal(null);
      const common = await snapshot();
      await land();
      await chain.provider.send('evm_revert', [common]);
      const refused = await plan().catch((error: unknown) => error);
      expect((refused as ReconcileError).code).to.equal('node_behind');
    });

    it('sends the very same transaction again when its block is lost, and raises its fee when it stays unmined', async () => {
      const { db } = stack;
      let nowMs = 1_000_000;
      const outbox = createOutbox({
        db,
        writer: await acquireWriter(db, 'swap'),
        rpc,
        chainId: chain.manifest.chainId,
        privateKey: chain.wallet('settler').privateKey as Hex,
        nowMs: () => nowMs,
        logger: pino({ level: 'silent' }),
        order: 'queue',
      });
      const common = await snapshot();
      const request = { to: newcomer, data: '0x' as const, gasLimit: 30_000n, validUntilSec: null };
      const first = await outbox.send({ ...request, txKey: 'first' });
      await chain.mine();
      await outbox.resume(0);
      expect((await listOutbox(db.knex, { signer: outbox.signer, limit: 9 })).map((row) => row.finished)).to.deep.equal(
        [true],
      );
      await chain.provider.send('evm_revert', [common]);
      expect(await chain.provider.getTransactionReceipt(first.hash)).to.equal(null);
      await outbox.resume(0);
      const second = await outbox.send({ ...request, txKey: 'second' });
      nowMs += 60_000;
      await outbox.resume(0);
      await chain.mine();
      // Both were signed again for more by then; the chain took each nonce once.
      await outbox.resume(0);
      const rows = await listOutbox(db.knex, { signer: outbox.signer, limit: 9 });
      expect(rows.map((row) => row.finished)).to.deep.equal([true, true, true, true]);
      expect(await chain.provider.getTransactionCount(outbox.signer)).to.equal(second.nonce + 1);
      const mined = await Promise.all(rows.map((row) => chain.provider.getTransactionReceipt(row.hash)));
      expect(mined.filter((receipt) => receipt !== null)).to.have.length(2);
    });

    it('lets the counters of capital start again', async () => {
      await deposit(2n * ETHER);
      await land();
      const head = (await lastGeneration(stack.db.knex))!;
      await requestReconcile(stack.db, { reversal: null, capitalOrigin: true }, 1);
      await land();
      expect(await readCapitalOrigin(stack.db.knex)).to.equal(head.toBlock + 1);
      const rows = await readBalances(stack.db.knex);
      expect(rows.every((row) => row.netCapitalUnits === 0n)).to.equal(true);
      await deposit(ETHER);
      await land();
      const [row] = (await readBalances(stack.db.knex, { account: newcomer })).filter(
        (one) => one.token === token('WETH'),
      );
      expect([row?.balanceUnits, row?.netCapitalUnits]).to.deep.equal([3n * ETHER, ETHER]);
      await expectSolvent();
      await expectVerified();
    });
  });
});
