/** Signed orders filled by external targets, alone and beside the curve. */
import { expect } from 'chai';
import { ZeroAddress, type Contract, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { mined } from '../../deploy/transactions.js';
import type { Entrypoint, MockExchange, OrderSettler } from '../../typechain-types/index.js';
import type { ManualChain } from '../support/keeper-stack.js';
import type { OrderDomain } from '../support/api/orders.js';
import { ETHER, USD, orderSettlerSuite } from '../support/contracts/order-settler-suite.js';

describe('signed orders', function () {
  this.timeout(120_000);
  const suite = orderSettlerSuite();
  const { signed, buys, route, trade, changesOf, eventsOf, refusal } = suite;
  let settler: OrderSettler;
  let entrypoint: Entrypoint;
  let exchange: MockExchange;
  let weth: Contract;
  let usdc: Contract;
  let owner: Wallet;
  let recipient: string;
  let domain: OrderDomain;
  let chain: ManualChain;

  before(() => {
    ({ settler, entrypoint, exchange, weth, usdc, owner, recipient, domain, chain } = suite.world());
  });

  describe('by external targets', () => {
    it('swaps there, sends the fee to the vault, and all that was bought to the recipient', async () => {
      const fee = ETHER / 50n;
      const order = await signed();
      const calls = [await trade(weth, ETHER - fee, usdc, 2_995n * USD)];
      const { receipt, changes } = await changesOf(() => settler.fillRoute(order, route({ feeAmount: fee, calls })));
      expect(changes).to.deep.equal({
        'owner.weth': -ETHER,
        'custodian.weth': fee,
        'exchange.weth': ETHER - fee,
        'exchange.usdc': -2_995n * USD,
        'recipient.usdc': 2_995n * USD,
      });
      const { filled, swaps } = eventsOf(receipt);
      expect(swaps).to.deep.equal([]);
      expect(filled[0]).to.include({ amountIn: ETHER, amountOut: 2_995n * USD, feeAmount: fee, feeInSwap: false });
    });

    it('splits between the curve and a target', async () => {
      const order = await signed();
      const [fee, own] = [ETHER / 100n, (ETHER * 6n) / 10n];
      const external = ETHER - fee - own;
      const ownOut = await entrypoint.quote(await weth.getAddress(), await usdc.getAddress(), own);
      const calls = [await trade(weth, external, usdc, 1_200n * USD)];
      const { receipt, changes } = await changesOf(() =>
        settler.fillRoute(order, route({ feeAmount: fee, ownAmount: own, calls })),
      );
      expect(changes).to.deep.equal({
        'owner.weth': -ETHER,
        'custodian.weth': own + fee,
        'custodian.usdc': -ownOut,
        'exchange.weth': external,
        'exchange.usdc': -1_200n * USD,
        'recipient.usdc': ownOut + 1_200n * USD,
      });
      const { filled, swaps } = eventsOf(receipt);
      expect(filled[0]).to.include({ amountOut: ownOut + 1_200n * USD, feeAmount: fee, feeInSwap: true });
      expect(swaps[0]).to.include({ taker: owner.address, recipient, baseAmount: own, inputFee: fee });
    });

    it('buys by a split and gives back what it did not need', async () => {
      const order = await buys();
      const half = ETHER / 2n;
      const cost = await entrypoint.quoteExactOutput(await usdc.getAddress(), await weth.getAddress(), half);
      const calls = [await trade(usdc, 1_501n * USD, weth, half, 1_510n * USD)];
      const split = route({ amountIn: 3_040n * USD, feeAmount: USD, ownAmount: half, ownExactOut: true, calls });
      const { receipt, changes } = await changesOf(() => settler.fillRoute(order, split));
      const spent = cost + 1_502n * USD;
      expect(changes).to.deep.equal({
        'owner.usdc': -spent,
        'custodian.usdc': cost + USD,
        'custodian.weth': -half,
        'exchange.usdc': 1_501n * USD,
        'exchange.weth': -half,
        'recipient.weth': ETHER,
      });
      expect(eventsOf(receipt).filled[0]).to.include({ amountIn: spent, amountOut: ETHER, feeAmount: USD });
    });

    it('leaves no allowance behind, even when the target took less than it might', async () => {
      const order = await signed();
      const calls = [await trade(weth, ETHER / 2n, usdc, 2_999n * USD, 2n * ETHER)];
      const { changes } = await changesOf(() => settler.fillRoute(order, route({ calls })));
      expect(changes['owner.weth']).to.equal(-ETHER / 2n);
      const allowance = weth.getFunction('allowance');
      expect(await allowance.staticCall(domain.spender, await exchange.getAddress())).to.equal(0n);
    });

    it('reverts whole when the recipient would get less than was signed', async () => {
      const order = await signed();
      const calls = [await trade(weth, ETHER, usdc, 2_990n * USD - 1n)];
      const call = settler.fillRoute.staticCall(order, route({ calls }));
      expect(await refusal(call)).to.deep.equal(['InsufficientOutput', 2_990n * USD - 1n, 2_990n * USD]);
      expect(await refusal(settler.fillRoute.staticCall(order, route()))).to.deep.equal([
        'InsufficientOutput',
        0n,
        2_990n * USD,
      ]);
    });

    it('calls only what the owner listed, and never the tokens of the order', async () => {
      const order = await signed({ minAmountOut: 0n });
      const owns = settler.connect(chain.wallet('owner'));
      const targets = [
        PERMIT2_ADDRESS,
        domain.spender,
        chain.manifest.contracts.custodian,
        chain.manifest.contracts.entrypoint,
        chain.manifest.contracts.curveBook,
        await weth.getAddress(),
        await usdc.getAddress(),
        chain.wallet('taker1').address,
        ZeroAddress,
      ];
      for (const target of targets) {
        expect(await refusal(owns.setTarget.staticCall(target, true))).to.deep.equal(['ForbiddenTarget', target]);
        const calls = [{ target, token: await weth.getAddress(), amountIn: 0n, amountAt: 0n, data: '0x' }];
        expect(await refusal(settler.fillRoute.staticCall(order, route({ calls })))).to.deep.equal([
          'ForbiddenTarget',
          target,
        ]);
      }
      await mined(owns.setTarget(await exchange.getAddress(), false));
      const calls = [await trade(weth, ETHER, usdc, 1n)];
      expect((await refusal(settler.fillRoute.staticCall(order, route({ calls }))))[0]).to.equal('ForbiddenTarget');
    });

    it('can not be entered again from a target', async () => {
      const [order, inner] = [await signed({ minAmountOut: 0n }), await signed()];
      await mined(settler.connect(chain.wallet('owner')).setExecutor(await exchange.getAddress(), true));
      const target = await exchange.getAddress();
      const attempts = [
        [settler.interface.encodeFunctionData('fillOnCurve', [0n, inner]), 'ReentrancyGuardReentrantCall'],
        [settler.interface.encodeFunctionData('fillRoute', [inner, route()]), 'ReentrancyGuardReentrantCall'],
        [settler.interface.encodeFunctionData('deliver', [{ amount: 1n, order: inner }]), 'NotEntrypoint'],
      ] as const;
      for (const [data, expected] of attempts) {
        const callBack = exchange.interface.encodeFunctionData('callBack', [domain.spender, data]);
        const calls = [{ target, token: await weth.getAddress(), amountIn: 0n, amountAt: 0n, data: callBack }];
        const [name, at, reason] = await refusal(settler.fillRoute.staticCall(order, route({ calls })));
        expect([name, at]).to.deep.equal(['CallFailed', target]);
        expect(settler.interface.parseError(reason as string)?.name).to.equal(expected);
      }
    });
  });
});
