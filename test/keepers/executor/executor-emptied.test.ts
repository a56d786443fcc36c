/** Owners who take funds or approval away as their order is sent, limit orders among them: what that costs them, and what the service. */
import { expect } from 'chai';
import { MaxUint256, Wallet, parseEther, parseUnits, type Contract, type TransactionResponse } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { forEachDatabase } from '../../support/db.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, signApproval, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const FUNDS = { WETH: parseEther('1'), USDC: parseUnits('2500', 6) } as const;
type Sold = keyof typeof FUNDS;
/** What an order over our curve burns at most that is checked. */
const MOST_GAS = 77_000n;
/** An approval and funding. */
const SETUP_GAS = 46_000n + 48_000n;
const FIRST = { gasLimit: 100_000n, gasPrice: parseUnits('40', 'gwei') };
const WEEK_SEC = 7 * 86_400;

describe('wallets that are emptied as their orders are sent', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let aheadMs = 0;

    beforeEach(async function () {
      this.timeout(60_000);
      aheadMs = 0;
      ({ chain, stack } = await begin({}, { monotonicMs: () => Date.now() + aheadMs }));
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    const ownerOf = async (sold: Sold): Promise<Wallet> =>
      (await createOwners(chain, sold, 1, FUNDS[sold]))[0] as Wallet;
    const tokenOf = (sold: Sold, owner: Wallet): Contract => chain.tokenAs(sold, 'taker1').connect(owner) as Contract;
    const empty = (sold: Sold, owner: Wallet): Promise<TransactionResponse> =>
      tokenOf(sold, owner).getFunction('transfer').send(chain.address('taker1'), FUNDS[sold], FIRST);
    const revoke = (sold: Sold, owner: Wallet): Promise<TransactionResponse> =>
      tokenOf(sold, owner).getFunction('approve').send(PERMIT2_ADDRESS, 0n, FIRST);

    const quoteOf = (sold: Sold, owner: Wallet, units: bigint = FUNDS[sold]): Promise<QuoteAnswer> =>
      stack.quote(owner.address, {
        sellToken: stack.token(sold),
        buyToken: stack.token(sold === 'WETH' ? 'USDC' : 'WETH'),
        sellAmountBeforeFee: `${units}`,
        routingPreference: 'onlyService',
      });
    /** Sells on our curve, for 2,500 USDC a WETH at least. */
    const limitOf = (owner: Wallet, units: bigint): Promise<QuoteAnswer> =>
      stack.quote(owner.address, {
        orderClass: 'limit',
        sellAmountBeforeFee: `${units}`,
        minBuyAmount: `${(units * FUNDS.USDC) / FUNDS.WETH}`,
        validTo: Math.floor(Date.now() / 1_000) + 2 * WEEK_SEC,
        routingPreference: 'onlyService',
      });

    async function submitted(quote: QuoteAnswer, owner: Wallet, extra: object = {}): Promise<string> {
      const { status, body } = await stack.submit(quote, owner, extra);
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.orderId;
    }
    const sends = async (orderId: string): Promise<number> =>
      (await stack.order(orderId)).attempts.filter(({ result }) => result === 'sent').length;

    /** Mines what spoils orders ahead of what the executor sent. */
    async function spoilt(spoil: TransactionResponse): Promise<{ spentGas: bigint; burntGas: bigint }> {
      await chain.mine();
      await stack.keepers.watcher.scan();
      const { transactions } = (await chain.provider.getBlock('latest'))!;
      const receipts = await Promise.all(
        transactions.map(async (hash) => (await chain.provider.getTransactionReceipt(hash))!),
      );
      const reverted = receipts.filter(({ status }) => status === 0);
      expect(reverted.map(({ from }) => from.toLowerCase())).to.deep.equal([chain.address('executor')]);
      const { gasUsed } = receipts.find(({ hash }) => hash === spoil.hash)!;
      return { spentGas: gasUsed, burntGas: reverted[0]!.gasUsed };
    }

    for (const sold of ['WETH', 'USDC'] as const) {
      for (const [how, spoil] of [
        ['the funds', empty],
        ['the approval', revoke],
      ] as const) {
        it(`cost less than setting up the account takes when ${how} goes, selling ${sold}`, async () => {
          const owner = await ownerOf(sold);
          const orderId = await submitted(await quoteOf(sold, owner), owner);
          await stack.executor.round();
          expect(await sends(orderId)).to.equal(1);
          const { spentGas, burntGas } = await spoilt(await spoil(sold, owner));
          const what = `${burntGas} against ${spentGas}`;
          expect(burntGas <= MOST_GAS && burntGas < SETUP_GAS + spentGas, what).to.equal(true);
        });
      }
    }

    it('cost less after a fill, twice, than its fee and what takes the approval away', async () => {
      for (const sold of ['WETH', 'USDC'] as const) {
        const owner = await ownerOf(sold);
        const part = (): Promise<QuoteAnswer> => quoteOf(sold, owner, FUNDS[sold] / 5n);
        const filled = await submitted(await part(), owner);
        await stack.land();
        expect((await stack.order(filled)).status).to.equal('filled');
        // What the fee of a fill pays for.
        let [spent, burnt] = [160_000n, 0n];
        const orderId = await submitted(await part(), owner);
        for (const sendsSoFar of [1, 2]) {
          await stack.executor.round();
          expect(await sends(orderId)).to.equal(sendsSoFar);
          const { spentGas, burntGas } = await spoilt(await revoke(sold, owner));
          [spent, burnt] = [spent + spentGas, burnt + burntGas];
          await tokenOf(sold, owner).getFunction('approve').send(PERMIT2_ADDRESS, MaxUint256, FIRST);
          await chain.mine();
          await stack.keepers.watcher.scan();
        }
        expect(burnt < spent, `${burnt} against ${spent}`).to.equal(true);
      }
    });

    it('cost a new account that brings its approval more than the service', async () => {
      const owner = new Wallet(Wallet.createRandom().privateKey, chain.provider);
      await chain.tokenAs('USDC', 'taker1').getFunction('transfer').send(owner.address, FUNDS.USDC, FIRST);
      await chain.wallet('taker1').sendTransaction({ to: owner.address, value: parseEther('1'), ...FIRST });
      await chain.mine();
      await stack.keepers.watcher.scan();
      const quote = await quoteOf('USDC', owner);
      await submitted(quote, owner, { approvalSignature: await signApproval(quote, owner) });
      await stack.executor.round();
      const { spentGas, burntGas } = await spoilt(await empty('USDC', owner));
      // Funding with the token, 61,000 of USDC, and with ether.
      const allGas = spentGas + 48_000n + 21_000n;
      expect(burntGas <= MOST_GAS && burntGas < allGas, `${burntGas} against ${allGas}`).to.equal(true);
    });

    it('have a limit order sent once, however long it waits and whatever comes back', async () => {
      const owner = await ownerOf('WETH');
      const orderId = await submitted(await limitOf(owner, FUNDS.WETH), owner);
      let spentGas = SETUP_GAS;
      for (let look = 0; look < 3; look++) {
        await stack.keepers.order(chain.address('maker1'), [{ side: 'bid', priceTicks: 250_009n, sizeLots: 100_000n }]);
        await stack.keepers.poster.round();
        await chain.mine();
        await stack.keepers.watcher.scan();
        await stack.executor.round();
        expect(await sends(orderId), `look ${look}`).to.equal(1);
        if (look === 0) {
          const first = await spoilt(await empty('WETH', owner));
          spentGas += first.spentGas;
          expect(first.burntGas < spentGas, `${first.burntGas} against ${spentGas}`).to.equal(true);
          await stack.land();
          await tokenOf('WETH', chain.wallet('taker1')).getFunction('transfer').send(owner.address, FUNDS.WETH, FIRST);
          await chain.mine();
        }
        stack.advance(WEEK_SEC * 300);
        aheadMs += WEEK_SEC * 300;
        await chain.provider.send('evm_increaseTime', [(WEEK_SEC * 3) / 10]);
        await stack.makeMarket();
      }
      const { status, reason } = await stack.order(orderId);
      expect([status, reason?.code]).to.deep.equal(['pending', 'TOO_MANY_REVERTS']);
    });

    it('count limit orders and orders for now together', async () => {
      const owner = await ownerOf('WETH');
      const refused = async (quote: QuoteAnswer): Promise<string> => {
        const { status, body } = await stack.submit(quote, owner);
        return `${status} ${JSON.stringify(body)}`;
      };
      await submitted(await limitOf(owner, (FUNDS.WETH * 6n) / 10n), owner);
      expect(await refused(await quoteOf('WETH', owner))).to.match(
        /^400 .*Insufficient balance.* pending orders take 6/,
      );
      expect(await refused(await limitOf(owner, FUNDS.WETH / 2n))).to.match(/^400 .*Insufficient balance/);
      await submitted(await limitOf(owner, (FUNDS.WETH * 4n) / 10n), owner);
    });
  }, forEachDatabase);
});
