/** The operator's own money: what reaches its row, how it is topped up, and how it is paid out. */
import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import type { OperatorFloors } from '../../core/operator-row.js';
import { readOperatorStandings } from '../../ledger/chain/operator-capital.js';
import { readPublication } from '../../ledger/publications/publication-log.js';
import { fillWithLegs } from '../../ledger/views/reads.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { GAS, type Custody } from '../support/custody.js';
import type { KeeperStack, ManualChain } from '../support/keeper-stack.js';
import { forEachKeepers } from '../support/manual-suite.js';

const SWAP_GAS = { gasLimit: 1_000_000n };

describe("the operator's row", function () {
  this.timeout(60_000);

  forEachKeepers((begin) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;

    beforeEach(async () => {
      ({ chain, stack, custody } = await begin());
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
    });

    afterEach(() => stack.stop());

    const balance = async (symbol: string): Promise<string> => (await custody.standing('owner', symbol)).balance;

    async function below(floors: OperatorFloors): Promise<string[]> {
      const of = { operator: chain.address('owner'), markets: stack.markets, floors };
      const standings = await readOperatorStandings(stack.db.knex, of);
      return standings.filter(({ isBelow }) => isBelow).map(({ token }) => token.symbol);
    }

    /** Both makers bid at one price, so that a sale is rounded once per leg. */
    async function quote(): Promise<void> {
      for (const role of ['maker1', 'maker2']) {
        await stack.order(chain.address(role), [{ side: 'bid', priceTicks: 300_001n, sizeLots: 10_000n }]);
      }
      await stack.poster.round();
      await custody.mined();
    }

    async function sell(units: bigint): Promise<bigint> {
      const [weth, usdc] = [custody.token('WETH'), custody.token('USDC')];
      const taker = chain.address('taker1');
      await custody.mined(() => chain.entrypointAs('taker1').swap(weth, usdc, units, 0n, taker, MaxUint256, SWAP_GAS));
      const fill = await fillWithLegs(stack.db.knex, 0, 1);
      return fill!.decomposition.operatorGainUnits;
    }

    /** The operator has no tokens of its own in the sandbox. */
    async function topUp(amount: string): Promise<string[]> {
      const units = custody.units('USDC', amount);
      const token = (role: string) => chain.tokenAs('USDC', role);
      await custody.mined(() => token('maker3').getFunction('transfer')(chain.address('owner'), units, GAS));
      const custodian = chain.manifest.contracts['custodian'];
      await custody.mined(() => token('owner').getFunction('approve')(custodian, units, GAS));
      return custody.mined(() => custody.as('owner').deposit(custody.token('USDC'), units, GAS));
    }

    it('holds the residual, is below its floor when that went the other way, and is topped up by a deposit', async () => {
      await quote();
      expect(await below({})).to.deep.equal([]);
      const gainUnits = await sell(custody.units('WETH', '0.333333333333333333'));
      expect(gainUnits, 'each leg was floored').to.equal(-1n);
      expect(await balance('USDC')).to.equal('-0.000001');
      expect(await below({}), 'a unit is no reason for an alarm').to.deep.equal([]);
      expect(await below({ USDC: '0' })).to.deep.equal(['USDC']);
      expect(await below({ USDC: '-0.000001' })).to.deep.equal([]);
      await custody.expectSound();

      expect(await topUp('25')).to.deep.equal(['Deposited owner USDC 25']);
      expect(await balance('USDC')).to.equal('24.999999');
      expect(await below({})).to.deep.equal([]);
      expect(await below({ USDC: '25' })).to.deep.equal(['USDC']);
      const rows = await readBalances(stack.db.knex, { account: chain.address('owner') });
      const row = rows.find(({ token }) => token === custody.token('USDC'));
      expect(row?.netCapitalUnits, 'capital is what was deposited, not what was earned').to.equal(25_000_000n);
      await custody.expectSound();
    });

    it('stops what is posted of its pairs below the floor, until it is topped up', async () => {
      await stack.stop();
      const floors = { USDC: '25' };
      const operatorFloors = { operator: chain.address('owner'), floors };
      ({ chain, stack, custody } = await begin({ poster: { operatorFloors } }));
      await custody.mined();
      await quote();
      const { pair } = stack.markets[0]!;
      expect(await balance('USDC')).to.equal('0');
      expect([stack.poster.status().stopped, stack.poster.status().skipped]).to.deep.equal([
        [pair],
        { operator_below_floor: 1 },
      ]);
      expect((await stack.poster.round())?.publications ?? []).to.deep.equal([]);
      await topUp('25');
      expect((await stack.poster.round())?.publications).to.deep.equal([{ pair, seq: 1, kind: 'full' }]);
      expect(stack.poster.status().stopped).to.deep.equal([]);

      // A live curve that stood on would keep quotes that nobody can cancel.
      await custody.mined();
      floors.USDC = '100';
      await custody.mined();
      const [emptied] = (await stack.poster.round())?.publications ?? [];
      expect([emptied?.pair, stack.poster.status().stopped]).to.deep.equal([pair, [pair]]);
      await custody.mined();
      const publication = await readPublication(stack.db.knex, 0, emptied!.seq);
      expect([publication?.askWords, publication?.bidWords]).to.deep.equal([[], []]);
      expect((await stack.poster.round())?.publications ?? []).to.deep.equal([]);
      await custody.expectSound();
    });

    it('is paid by the ordinary withdrawal, never more than it has', async () => {
      await quote();
      await sell(custody.units('WETH', '0.333333333333333333'));
      const request = (units: bigint) =>
        custody.mined(() => custody.as('owner').requestWithdraw(custody.token('USDC'), units, GAS));
      const settle = async (): Promise<string[]> => {
        await stack.settler.round();
        const events = await custody.mined();
        await stack.settler.round();
        return events;
      };
      // Two requests pay for a settlement that raises nothing.
      for (let i = 0; i < 2; i++) await request(1n);
      expect(await settle(), 'a debt pays nothing').to.deep.equal(['WithdrawSettled owner USDC 0']);
      expect(await custody.standing('owner', 'USDC')).to.include({ balance: '-0.000001', reserved: '0', claim: '0' });

      await topUp('25');
      await request(custody.units('USDC', '10'));
      expect(await settle()).to.deep.equal(['WithdrawSettled owner USDC 10']);
      const execute = () => custody.mined(() => custody.as('owner').executeWithdraw(custody.token('USDC'), GAS));
      expect(await execute()).to.deep.equal(['WithdrawExecuted owner USDC 10']);
      expect(await custody.standing('owner', 'USDC')).to.include({ balance: '14.999999', reserved: '0', claim: '0' });
      await custody.expectSound();

      await request(MaxUint256);
      expect(await settle(), 'clamped to the row').to.deep.equal(['WithdrawSettled owner USDC 14.999999']);
      expect(await execute()).to.deep.equal(['WithdrawExecuted owner USDC 14.999999']);
      expect(await balance('USDC')).to.equal('0');
      await custody.expectSound();
    });

    it('may owe dust beside a settled claim for all that it had: a rounded sale halts nobody', async () => {
      await quote();
      await topUp('25');
      await custody.mined(() => custody.as('owner').requestWithdraw(custody.token('USDC'), MaxUint256, GAS));
      await stack.settler.round();
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled owner USDC 25']);
      expect(await sell(custody.units('WETH', '0.333333333333333333'))).to.equal(-1n);
      expect(await custody.standing('owner', 'USDC')).to.include({ balance: '24.999999', claim: '25' });
      await custody.expectSound();
      await custody.mined(() => custody.as('owner').executeWithdraw(custody.token('USDC'), GAS));
      expect(await balance('USDC')).to.equal('-0.000001');
      await custody.expectSound();
    });
  });
});
