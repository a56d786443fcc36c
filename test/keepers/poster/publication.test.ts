import { expect } from 'chai';
import { MaxUint256, parseUnits } from 'ethers';
import { quoteUnitsFloor } from '../../../core/market.js';
import type { Address } from '../../../core/types.js';
import { readBalances, sumBalances } from '../../../ledger/chain/balances.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { fillWithLegs } from '../../../ledger/views/reads.js';
import { readSnapshot } from '../../../ledger/chain/ledger-log.js';
import { VAULT } from '../../../ledger/types.js';
import { startKeepers, type KeeperStack, type ManualChain } from '../../support/keeper-stack.js';
import { forEachKeepers } from '../../support/manual-suite.js';

const WETH_UNITS = 10n ** 18n;

describe('watcher and poster on a chain', () => {
  forEachKeepers((begin, open) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let maker1: Address;
    let maker2: Address;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack } = await begin());
      maker1 = chain.address('maker1');
      maker2 = chain.address('maker2');
      await chain.mine();
      await stack.watcher.scan();
    });

    afterEach(async () => {
      await stack.stop();
    });

    const token = (symbol: string): Address =>
      chain.manifest.tokens.find((one) => one.symbol === symbol)!.address.toLowerCase() as Address;

    async function balanceOf(account: Address, symbol: string): Promise<bigint> {
      const rows = await readBalances(stack.db.knex, { account });
      return rows.find((row) => row.token === token(symbol))?.balanceUnits ?? 0n;
    }

    async function land(): Promise<void> {
      await chain.mine();
      await stack.watcher.scan();
    }

    async function buy(baseUnits: bigint, gasPriceGwei = '3'): Promise<void> {
      const sent = chain
        .entrypointAs('taker1')
        .swapExactOutput(token('USDC'), token('WETH'), baseUnits, MaxUint256, chain.address('taker1'), MaxUint256, {
          gasPrice: parseUnits(gasPriceGwei, 'gwei'),
          gasLimit: 1_000_000n,
        });
      await sent;
    }

    async function expectSolvent(): Promise<void> {
      expect(await readHalt(stack.db.knex)).to.equal(null);
      const sums = await sumBalances(stack.db.knex);
      for (const symbol of ['WETH', 'USDC']) {
        const held = (await chain.tokenAs(symbol, 'owner').getFunction('balanceOf')(
          chain.manifest.contracts['custodian'],
        )) as bigint;
        expect(sums.get(token(symbol)), symbol).to.equal(held);
      }
    }

    it('credits deposits, posts the book, and pays each maker its own price', async () => {
      expect(await balanceOf(maker1, 'WETH')).to.be.greaterThan(0n);
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 5_000n }]);
      await stack.order(maker2, [
        { side: 'ask', priceTicks: 300_000n, sizeLots: 15_000n },
        { side: 'ask', priceTicks: 300_500n, sizeLots: 10_000n },
      ]);
      const before = { one: await balanceOf(maker1, 'USDC'), two: await balanceOf(maker2, 'USDC') };
      const round = await stack.poster.round();
      expect(round?.publications.map(({ kind }) => kind)).to.deep.equal(['full']);
      await land();

      await buy((5n * WETH_UNITS) / 2n);
      await land();
      const market = stack.markets[0]!;
      const fillSeq = stack.watcher.status().halt === null ? await lastFillSeq() : 0;
      const explained = await fillWithLegs(stack.db.knex, 0, fillSeq);
      expect(
        explained?.decomposition.legs.map(({ maker, priceTicks, baseUnits }) => [maker, priceTicks, baseUnits]),
      ).to.deep.equal(
        [
          [maker1, 300_000n, WETH_UNITS / 2n],
          [maker2, 300_000n, (3n * WETH_UNITS) / 2n],
          [maker2, 300_500n, WETH_UNITS / 2n],
        ].sort((a, b) => (a[1]! < b[1]! ? -1 : a[1]! > b[1]! ? 1 : a[0]! < b[0]! ? -1 : 1)),
      );
      expect((await balanceOf(maker1, 'USDC')) - before.one).to.equal(
        quoteUnitsFloor(market, 300_000n, WETH_UNITS / 2n),
      );
      expect((await balanceOf(maker2, 'USDC')) - before.two).to.equal(
        quoteUnitsFloor(market, 300_000n, (3n * WETH_UNITS) / 2n) + quoteUnitsFloor(market, 300_500n, WETH_UNITS / 2n),
      );
      await expectSolvent();
    });

    async function lastFillSeq(): Promise<number> {
      const row = (await stack.db.knex('fills').max({ last: 'fill_seq' }).first()) as { last: number | null };
      return row.last ?? 0;
    }

    it('carries a fill that lands between the cut and the post, also over a restart', async () => {
      const [first] = await stack.order(maker1, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 10_000n }]);
      await stack.order(maker2, [{ side: 'ask', priceTicks: 301_000n, sizeLots: 10_000n }]);
      await stack.poster.round();
      await land();

      // maker1 moves its order; the next curve is cut from that book, but a swap on the live one is mined before it.
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_100n, sizeLots: 10_000n }], [first!]);
      await chain.mine();
      await stack.watcher.scan();
      await stack.poster.round();
      await buy((4n * WETH_UNITS) / 10n, '50');
      await land();
      await expectSolvent();
      const lateSeq = await lastFillSeq();
      const late = await fillWithLegs(stack.db.knex, 0, lateSeq);
      expect(late?.decomposition.legs.map(({ priceTicks }) => priceTicks)).to.deep.equal([300_000n]);

      // The keepers start again with nothing in memory; then a swap takes the new curve from where the late one left it.
      await stack.stop();
      const db = stack.db;
      stack = await startKeepers(db, chain);
      await buy((8n * WETH_UNITS) / 10n);
      await land();
      await expectSolvent();
      const next = await fillWithLegs(stack.db.knex, 0, lateSeq + 1);
      expect(next?.fill.consumedBeforeUnits).to.equal((4n * WETH_UNITS) / 10n);
      expect(next?.decomposition.legs.map(({ priceTicks, baseUnits }) => [priceTicks, baseUnits])).to.deep.equal([
        [300_100n, (6n * WETH_UNITS) / 10n],
        [301_000n, (2n * WETH_UNITS) / 10n],
      ]);
      expect(await readSnapshot(stack.db.knex, 0, next!.fill.curveSeq)).to.not.equal(null);
    });

    it('publishes nothing twice for an unchanged book, and never more than a maker can pay', async () => {
      const balance = await balanceOf(maker1, 'WETH');
      const lots = balance / stack.markets[0]!.lotUnits;
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_000n, sizeLots: lots }]);
      await stack.poster.round();
      await land();
      expect(await stack.poster.round()).to.equal(null);
      await land();
      expect(await stack.poster.round()).to.equal(null);

      // A second order for what is already promised stays unpublished.
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_200n, sizeLots: 1_000n }]);
      await land();
      await stack.poster.round();
      await land();
      const quoted = await chain
        .entrypointAs('taker1')
        .quoteExactOutput(token('USDC'), token('WETH'), lots * stack.markets[0]!.lotUnits + 1n);
      expect(quoted).to.equal(0n);
      await expectSolvent();
    });

    it('books tokens sent past deposit() to nobody', async () => {
      await await chain.tokenAs('USDC', 'taker2').getFunction('transfer')(chain.manifest.contracts['custodian'], 7n, {
        gasLimit: 200_000n,
      });
      await land();
      await expectSolvent();
      const [row] = await readBalances(stack.db.knex, { account: 'unattributed' });
      expect(row?.balanceUnits).to.be.greaterThan(6n);
      const vault = (await readBalances(stack.db.knex, { account: VAULT })).find((one) => one.token === token('USDC'));
      expect(vault?.balanceUnits).to.be.lessThan(0n);
    });

    it('halts for good when the chain drops a scanned block, and publishes nothing more', async () => {
      const before = (await chain.provider.send('evm_snapshot', [])) as string;
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 1_000n }]);
      await land();
      await chain.provider.send('evm_revert', [before]);
      await chain.provider.send('evm_increaseTime', [5]);
      await chain.mine();
      await stack.watcher.scan();
      expect(stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
      expect(await stack.poster.round()).to.equal(null);

      await stack.stop();
      stack = await startKeepers(stack.db, chain);
      await stack.watcher.scan();
      expect(stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
      expect((await readHalt(stack.db.knex))?.code).to.equal('canonical_mismatch');
    });

    it('waits, and does not halt, while the node answers an older head', async () => {
      const before = (await chain.provider.send('evm_snapshot', [])) as string;
      await land();
      await chain.provider.send('evm_revert', [before]);
      await stack.watcher.scan();
      expect(stack.watcher.status().halt).to.equal(null);
      expect(await readHalt(stack.db.knex)).to.equal(null);
    });

    it('halts on a curve that its database never prepared', async () => {
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 1_000n }]);
      await stack.poster.round();
      await land();
      await stack.stop();
      stack = await startKeepers(await open(), chain);
      await stack.watcher.scan();
      expect(stack.watcher.status().halt?.code).to.equal('unexplained_curve');
    });
  });
});
