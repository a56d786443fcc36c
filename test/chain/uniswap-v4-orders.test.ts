/** Signed orders that go over Uniswap v4. */
import { expect } from 'chai';
import { Contract } from 'ethers';
import { DEFAULT_GAS, gasOf } from '../../core/swap/pricing.js';
import { forOneDatabase } from '../support/db.js';
import { startSwapStack } from '../support/swap-stack.js';
import { uniswapV4Chain, WETH_UNIT } from '../support/contracts/uniswap-v4.js';

const SETTLER = ['function setTarget(address target, bool allowed)'];

describe('liquidity of Uniswap v4', function () {
  this.timeout(240_000);
  const suite = uniswapV4Chain();

  forOneDatabase((name, open) =>
    it(`takes its part of a signed order, sold and bought, beside a pool of v3 on ${name}`, async () => {
      // Nonces of an owner begin anew with each database, and not on the chain.
      await suite.chain.reset();
      await suite.chain.provider.send('evm_setAutomine', [false]);
      const stack = await startSwapStack(await open(), suite.chain, {}, { newAccountGas: 1_000_000n });
      try {
        await stack.keepers.watcher.scan();
        const taker = suite.chain.wallet('taker3');
        for (const [kind, amount] of [
          ['sell', { sellAmountBeforeFee: (20n * WETH_UNIT).toString() }],
          ['buy', { kind: 'buy', buyAmountAfterFee: (40_000n * 10n ** 6n).toString() }],
        ] as const) {
          const before = await stack.balanceOf('USDC', taker.address);
          const quote = await stack.quote(taker.address, amount);
          expect(
            quote.route.map(({ source }) => source),
            kind,
          ).to.have.members(['uniswap-v4:500', 'uniswap-v3:500']);
          const { orderId } = (await stack.submit(quote, taker)).body;
          await stack.land();
          const order = await stack.order(orderId);
          expect(order, kind).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
          expect((await stack.balanceOf('USDC', taker.address)) - before).to.equal(BigInt(quote.quote.buyAmount));
        }
        const settler = suite.chain.manifest.contracts['orderSettler']!;
        for (const token of [suite.weth, suite.usdc]) {
          const allowance = ['function allowance(address, address) view returns (uint256)'];
          const left = new Contract(token, allowance, suite.chain.provider).getFunction('allowance');
          expect(await left(settler, suite.contracts.router), 'nothing is left allowed').to.equal(0n);
        }
        const owned = new Contract(settler, SETTLER, suite.chain.wallet('owner'));
        const allow = async (target: string, isAllowed: boolean): Promise<void> => {
          await owned.getFunction('setTarget').send(target, isAllowed, { gasLimit: 200_000n });
          await suite.chain.mine();
        };
        // Over two pools of v4 alone: what the first brings is what the second sells.
        const v3 = suite.chain.manifest.contracts['uniswapV3Router']!;
        await allow(v3, false);
        const held = await stack.balanceOf('DAI', taker.address);
        const pair = { sellToken: suite.usdc, buyToken: stack.token('DAI') };
        const path = await stack.quote(taker.address, { ...pair, sellAmountBeforeFee: String(2_500n * 10n ** 6n) });
        const ids = path.route.map(({ source }) => source);
        expect(ids).to.deep.equal([`uniswap-v4:500>${suite.weth}>uniswap-v4:500`]);
        const { orderId } = (await stack.submit(path, taker)).body;
        await stack.land();
        const order = await stack.order(orderId);
        expect(order).to.include({ status: 'filled', executedBuyAmount: path.quote.buyAmount });
        expect((await stack.balanceOf('DAI', taker.address)) - held).to.equal(BigInt(path.quote.buyAmount));
        const { gasUsed } = (await suite.chain.provider.getTransactionReceipt(order.txHash!))!;
        expect(gasUsed <= gasOf(DEFAULT_GAS, ids), `${gasUsed} of ${gasOf(DEFAULT_GAS, ids)}`).to.equal(true);
        await allow(v3, true);
        // Orders over a router that the settler may not call would fail.
        await allow(suite.contracts.router, false);
        const without = await stack.quote(taker.address, { sellAmountBeforeFee: (20n * WETH_UNIT).toString() });
        expect(without.route.map(({ source }) => source)).to.deep.equal(['uniswap-v3:500']);
      } finally {
        await stack.stop();
        await suite.chain.provider.send('evm_setAutomine', [true]);
      }
    }),
  );
});
