/** Orders by way of another token: through our market and a pool, to the unit. */
import { expect } from 'chai';
import { MaxUint256, type Contract, type Wallet } from 'ethers';
import { DEFAULT_GAS, gasOf } from '../../../core/swap/pricing.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { startSwapStack, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const POOL = 'uniswap-v3:500';
const USD = 10n ** 6n;
const ETHER = 10n ** 18n;

forOneDatabase((name, open) =>
  describe(`orders by way of another token on ${name}`, function () {
    this.timeout(240_000);
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    before(async () => {
      chain = await startManualChain(2, { pools: true });
      taker = chain.wallet('taker3');
      // As owners who have traded before are served.
      stack = await startSwapStack(await open(), chain, {}, { newAccountGas: 700_000n });
      await stack.makeMarket();
      const dai = chain.tokenAs('DAI', 'taker1');
      const half = (await stack.balanceOf('DAI', chain.address('taker1'))) / 2n;
      await dai.getFunction('transfer').send(taker.address, half, { gasLimit: 100_000n });
      await chain.provider.send('hardhat_setBalance', [taker.address, '0x8ac7230489e80000']);
      const own = dai.connect(taker) as Contract;
      await own.getFunction('approve').send(chain.manifest.contracts['permit2'], MaxUint256, { gasLimit: 100_000n });
      await chain.mine();
      await stack.keepers.watcher.scan();
    });

    after(async () => {
      await stack?.stop();
      await chain?.close();
    });

    const legsOf = ({ route }: QuoteAnswer): string[][] =>
      route.map(({ source, legs }) => legs?.map((leg) => leg.source) ?? [source]);

    /** Fills a quote while nothing moves, and compares all that changes hands with it. */
    async function fill(quote: QuoteAnswer, sell: string, buy: string): Promise<{ gasUsed: bigint; pairs: string[] }> {
      const before = [await stack.balanceOf(sell, taker.address), await stack.balanceOf(buy, taker.address)];
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order)).to.equal('filled');
      const expected = quote.route.reduce((sum, { sellAmount }) => sum + BigInt(sellAmount), 0n);
      const paid = expected + BigInt(quote.quote.feeAmount);
      expect(order.executedBuyAmount).to.equal(quote.quote.buyAmount);
      expect(order.executedSellAmount).to.equal(String(paid));
      expect(order.route).to.deep.equal(quote.route);
      expect(before[0]! - (await stack.balanceOf(sell, taker.address))).to.equal(paid);
      expect((await stack.balanceOf(buy, taker.address)) - before[1]!).to.equal(BigInt(quote.quote.buyAmount));
      const settler = chain.manifest.contracts['orderSettler']!;
      for (const symbol of ['WETH', 'USDC', 'DAI']) {
        expect(await stack.balanceOf(symbol, settler), `${symbol} of the settler`).to.equal(0n);
      }
      const receipt = await chain.provider.getTransactionReceipt(order.txHash!);
      return { gasUsed: receipt!.gasUsed, pairs: order.makers.map(({ pair }) => pair) };
    }

    it('trade through our market and a pool, both ways and both kinds, to the unit', async () => {
      await sellsForward();
      await sellsBack();
      await buys();
    });

    async function sellsForward(): Promise<void> {
      const quote = await stack.quote(taker.address, {
        sellToken: stack.token('USDC'),
        buyToken: stack.token('DAI'),
        sellAmountBeforeFee: String(2_500n * USD),
      });
      expect(legsOf(quote)).to.deep.equal([['own', POOL]]);
      const [leg, next] = quote.route[0]!.legs!;
      expect([leg!.sellToken, leg!.buyToken, next!.sellToken, next!.buyToken]).to.deep.equal(
        ['USDC', 'WETH', 'WETH', 'DAI'].map((symbol) => stack.token(symbol)),
      );
      expect(leg!.buyAmount).to.equal(next!.sellAmount);
      expect(quote.priceImpactBps).to.be.within(0, 20);
      const { gasUsed, pairs } = await fill(quote, 'USDC', 'DAI');
      expect(pairs).to.deep.equal(['WETH-USDC']);
      const paidFor = gasOf(
        DEFAULT_GAS,
        quote.route.map(({ source }) => source),
      );
      expect(gasUsed <= paidFor, `${gasUsed} of ${paidFor}`).to.equal(true);
    }

    async function sellsBack(): Promise<void> {
      const quote = await stack.quote(taker.address, {
        sellToken: stack.token('DAI'),
        buyToken: stack.token('USDC'),
        sellAmountBeforeFee: String(1_000n * ETHER),
      });
      expect(legsOf(quote)).to.deep.equal([[POOL, 'own']]);
      await fill(quote, 'DAI', 'USDC');
    }

    /** An exact amount, which takes what it costs and leaves nothing on the way. */
    async function buys(): Promise<void> {
      const quote = await stack.quote(taker.address, {
        kind: 'buy',
        sellToken: stack.token('USDC'),
        buyToken: stack.token('DAI'),
        buyAmountAfterFee: String(1_234n * ETHER),
      });
      expect(legsOf(quote)).to.deep.equal([['own', POOL]]);
      const wethBefore = await stack.balanceOf('WETH', taker.address);
      await fill(quote, 'USDC', 'DAI');
      expect(await stack.balanceOf('WETH', taker.address)).to.equal(wethBefore);
    }

    it('is not for new accounts, whose first orders go over one venue', async () => {
      const stranger = '0x00000000000000000000000000000000000000a1';
      const strict = await startSwapStack(await open(), chain);
      try {
        const refused = await strict.refused('POST', '/quote', {
          chainId: chain.manifest.chainId,
          from: stranger,
          kind: 'sell',
          sellToken: stack.token('USDC'),
          buyToken: stack.token('DAI'),
          sellAmountBeforeFee: String(100n * USD),
          signingScheme: 'eip712',
        });
        expect(refused.slice(0, 2)).to.deep.equal([400, 'UNPROVEN_ACCOUNT']);
      } finally {
        await strict.stop();
      }
    });
  }),
);
