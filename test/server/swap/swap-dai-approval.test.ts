/** Owners of a token with the permits of DAI, by which a spender gets all or nothing: from the quote to the fill. */
import { expect } from 'chai';
import { Contract, MaxUint256, Wallet, parseUnits } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { DaiPermitToken__factory } from '../../../typechain-types/factories/mocks/DaiPermitToken__factory.js';
import { forEachDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import {
  signApproval,
  startSwapStack,
  type ErrorAnswer,
  type QuoteAnswer,
  type SwapStack,
} from '../../support/swap-stack.js';

const ABI = [
  'function allowance(address, address) view returns (uint256)',
  'function nonces(address) view returns (uint256)',
];
const dai = (amount: string): string => parseUnits(amount, 18).toString();

describe('approvals in the form of DAI', () => {
  let chain: ManualChain;

  before(async function () {
    this.timeout(120_000);
    chain = await startManualChain(2);
  });

  after(() => chain?.close());

  forEachDatabase((_name, open) => {
    let stack: SwapStack;
    let owner: Wallet;
    let token: Contract;

    beforeEach(async function () {
      this.timeout(60_000);
      await chain.reset();
      stack = await startSwapStack(await open(), chain);
      await stack.makeMarket();
      // The token of the sandbox takes no permits; this one keeps its balances in the same place.
      const made = await new DaiPermitToken__factory(chain.wallet('taker1')).deploy();
      await chain.mine();
      const code = await chain.provider.getCode(await made.getAddress());
      await chain.provider.send('hardhat_setCode', [stack.token('DAI'), code]);
      token = new Contract(stack.token('DAI'), ABI, chain.provider);
      owner = new Wallet(Wallet.createRandom().privateKey, chain.provider);
      const funded = chain.tokenAs('DAI', 'taker1').getFunction('transfer');
      await funded.send(owner.address, dai('5000'), { gasLimit: 100_000n });
      await stack.keepers.order(chain.address('maker1'), [
        { market: 1, side: 'ask', priceTicks: 250_010n, sizeLots: 100_000n },
        { market: 1, side: 'bid', priceTicks: 249_990n, sizeLots: 100_000n },
      ]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
    });

    afterEach(() => stack.stop());

    const quoteOf = (amount: string): Promise<QuoteAnswer> =>
      stack.quote(owner.address, {
        ...{ sellToken: stack.token('DAI'), buyToken: stack.token('WETH') },
        sellAmountBeforeFee: dai(amount),
      });

    it('fill the first order of an owner without ETH, and leave the next one none to sign', async () => {
      const quote = await quoteOf('500');
      expect(quote.approval).to.deep.include({ required: true, type: 'dai' });
      expect(quote.approval.typedData!.domain).to.deep.equal({
        ...{ name: 'Dai Stablecoin', version: '1', chainId: 8453 },
        verifyingContract: stack.token('DAI'),
      });
      expect(quote.approval.typedData!.message).to.deep.equal({
        ...{ holder: owner.address.toLowerCase(), spender: PERMIT2_ADDRESS.toLowerCase(), nonce: '0' },
        ...{ expiry: quote.quote.validTo.toString(), allowed: true },
      });
      const { body } = await stack.submit(quote, owner, { approvalSignature: await signApproval(quote, owner) });
      await stack.land();
      const order = await stack.order(body.orderId);
      expect([order.status, order.executedSellAmount, order.executedBuyAmount]).to.deep.equal([
        ...['filled', dai('500'), quote.quote.buyAmount],
      ]);
      expect(await stack.balanceOf('WETH', owner.address)).to.equal(BigInt(quote.quote.buyAmount));
      expect(await token.getFunction('allowance')(owner.address, PERMIT2_ADDRESS)).to.equal(MaxUint256);
      expect(await token.getFunction('nonces')(owner.address)).to.equal(1n);
      expect(await chain.provider.getTransactionCount(owner.address)).to.equal(0);

      const next = await quoteOf('100');
      expect(next.approval).to.deep.equal({ required: false, type: 'dai', typedData: null });
      const again = await stack.submit(next, owner);
      await stack.land();
      expect((await stack.order(again.body.orderId)).status).to.equal('filled');
    });

    it('are refused from anybody but the owner, and over anything but what the quote says', async () => {
      const quote = await quoteOf('500');
      const { domain, types, message } = quote.approval.typedData!;
      const { EIP712Domain: _, ...rest } = types;
      const wrong = [
        await signApproval(quote, Wallet.createRandom()),
        await owner.signTypedData(domain, rest, { ...message, allowed: false }),
        await owner.signTypedData(domain, rest, { ...message, nonce: '1' }),
      ];
      for (const approvalSignature of wrong) {
        const { status, body } = await stack.submit(quote, owner, { approvalSignature });
        expect([status, (body as unknown as ErrorAnswer).error.message]).to.satisfy(
          ([code, text]: [number, string]) => code === 400 && text.includes('does not take'),
        );
      }
      const { status } = await stack.submit(quote, owner, { approvalSignature: await signApproval(quote, owner) });
      expect(status).to.equal(200);
    });
  });
});
