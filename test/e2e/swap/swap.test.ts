import { expect } from 'chai';
import { parseUnits, type Wallet } from 'ethers';
import type { Address } from '../../../core/types.js';
import { readBalances, sumBalances } from '../../../ledger/chain/balances.js';
import { verifyLedger } from '../../../keepers/verify/verify.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readOrphans } from '../../../ledger/chain/orphans.js';
import { fillSeqs, fillWithLegs } from '../../../ledger/views/reads.js';
import { readReversals } from '../../../ledger/chain/reversals.js';
import { forOneDatabase } from '../../support/db.js';
import { forksOf } from '../../support/nodes/fork.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { startSwapStack, type SwapStack } from '../../support/swap-stack.js';
import { verifyDeps, verifyRpc } from '../../support/verify.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();
const micros = (amount: string): string => parseUnits(amount, 6).toString();

forOneDatabase((name, open) =>
  describe(`gasless swaps end to end on ${name}`, () => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let maker: Address;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(1, { pools: true });
      taker = chain.wallet('taker3');
      maker = chain.address('maker1');
    });

    after(() => chain?.close());

    beforeEach(async function () {
      this.timeout(60_000);
      await chain.reset();
      stack = await startSwapStack(await open(), chain);
      await chain.mine();
      await stack.keepers.watcher.scan();
    });

    afterEach(async () => {
      await stack.stop();
    });

    /** Two levels a side of 10 WETH each around 2,500, better than the pool by more than its fee, and posted. */
    async function quoteMarket(bestBid = 249_990n, bestAsk = 250_010n): Promise<number[]> {
      const oids = await stack.keepers.order(maker, [
        { side: 'ask', priceTicks: bestAsk, sizeLots: 100_000n },
        { side: 'ask', priceTicks: bestAsk + 500n, sizeLots: 100_000n },
        { side: 'bid', priceTicks: bestBid, sizeLots: 100_000n },
        { side: 'bid', priceTicks: bestBid - 500n, sizeLots: 100_000n },
      ]);
      resting = oids;
      await post();
      return oids;
    }

    let resting: number[] = [];

    async function post(): Promise<void> {
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function expectSolvent(): Promise<void> {
      expect(await readHalt(stack.db.knex)).to.equal(null);
      const sums = await sumBalances(stack.db.knex);
      for (const symbol of ['WETH', 'USDC']) {
        const held = await stack.balanceOf(symbol, chain.manifest.contracts.custodian);
        expect(sums.get(stack.token(symbol)), symbol).to.equal(held);
      }
    }

    /** Two small orders of the taker, after which its orders may go over several venues. */
    async function proveTaker(): Promise<void> {
      for (let i = 0; i < 2; i++) {
        const { body } = await stack.submit(
          await stack.quote(taker.address, { sellAmountBeforeFee: wei('0.1') }),
          taker,
        );
        await stack.land();
        expect((await stack.order(body.orderId)).status).to.equal('filled');
      }
    }

    const operatorBalance = async (symbol: string): Promise<bigint> => {
      const rows = await readBalances(stack.db.knex, { account: chain.address('owner') });
      return rows.find((row) => row.token === stack.token(symbol))?.balanceUnits ?? 0n;
    };

    it('sells to the unit of the quote, from a wallet that can pay no gas, and attributes the fill to it', async () => {
      await quoteMarket();
      expect(await chain.provider.getBalance(taker.address)).to.equal(0n);
      const receiver = chain.address('taker2');
      const before = await stack.balanceOf('USDC', receiver);
      const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei('2'), receiver });
      const { buyAmount, minBuyAmount, sellAmount, feeAmount } = quote.quote;
      expect(sellAmount).to.equal(wei('2'));
      expect(BigInt(minBuyAmount)).to.equal((BigInt(buyAmount) * 9_950n + 9_999n) / 10_000n);
      const { status, body } = await stack.submit(quote, taker);
      expect([status, body.status]).to.deep.equal([200, 'pending']);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order).to.include({
        status: 'filled',
        executedSellAmount: sellAmount,
        executedBuyAmount: buyAmount,
        reason: null,
      });
      expect(order.attempts.map(({ result }) => result)).to.deep.equal(['sent']);
      expect(order.attempts[0]!.txHashes).to.deep.equal([order.txHash]);
      expect((await stack.balanceOf('USDC', receiver)) - before).to.equal(BigInt(buyAmount));
      const fill = await fillWithLegs(stack.db.knex, 0, 1);
      expect(fill?.fill).to.include({ taker: taker.address.toLowerCase(), inputFeeUnits: BigInt(feeAmount) });
      expect(BigInt(feeAmount) > 0n).to.equal(true);
      expect(await operatorBalance('WETH')).to.equal(BigInt(feeAmount));
      await expectSolvent();
    });

    it('buys exactly what was asked for, for no more than it costs', async () => {
      await quoteMarket();
      const before = await stack.balanceOf('USDC', taker.address);
      const quote = await stack.quote(taker.address, {
        kind: 'buy',
        sellToken: stack.token('USDC'),
        buyToken: stack.token('WETH'),
        buyAmountAfterFee: wei('1.5'),
      });
      const { minBuyAmount, buyAmount, sellAmount, feeAmount } = quote.quote;
      expect([minBuyAmount, buyAmount]).to.deep.equal([wei('1.5'), wei('1.5')]);
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order).to.include({ status: 'filled', executedBuyAmount: wei('1.5') });
      const cost = BigInt(micros('3750.15')) + BigInt(feeAmount);
      expect(order.executedSellAmount).to.equal(cost.toString());
      expect(BigInt(sellAmount)).to.equal((cost * 10_050n) / 10_000n);
      expect(before - (await stack.balanceOf('USDC', taker.address))).to.equal(cost);
      expect(await operatorBalance('USDC')).to.equal(BigInt(feeAmount));
      await expectSolvent();
    });

    it('takes a fill back with its block, says whom it was told to, and fills the order once in the end', async () => {
      await quoteMarket();
      const forks = forksOf(chain, stack.keepers);
      const mark = await forks.mark();
      const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei('2') });
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      expect((await stack.order(body.orderId)).status).to.equal('filled');

      await forks.fork(mark);
      const { orphans } = await forks.reconcile();
      const { sellAmount, buyAmount, feeAmount } = quote.quote;
      const [lost, ...others] = orphans.orders;
      expect(others).to.deep.equal([]);
      expect(lost).to.include({
        orderId: body.orderId,
        owner: taker.address.toLowerCase(),
        amountInUnits: BigInt(sellAmount),
        amountOutUnits: BigInt(buyAmount),
      });
      const [reversal] = await readReversals(stack.db.knex);
      expect((await readOrphans(stack.db.knex, reversal!.generation)).orders).to.deep.equal(orphans.orders);
      expect(await stack.order(body.orderId)).to.include({ status: 'pending', executedBuyAmount: '0', txHash: null });
      expect(await operatorBalance('WETH'), 'its fee is gone, too').to.equal(0n);
      await expectSolvent();

      for (let round = 0; round < 3; round++) await stack.land();
      expect(await stack.order(body.orderId)).to.include({ status: 'filled', executedBuyAmount: buyAmount });
      expect(await operatorBalance('WETH'), 'booked once').to.equal(BigInt(feeAmount));
      await expectSolvent();
      const report = await verifyLedger({ ...verifyDeps(stack.db, chain), rpc: verifyRpc(chain) });
      expect(report).to.include({ fills: 1, reversals: 1 });
    });

    for (const kind of ['sell', 'buy'] as const) {
      it(`routes to the pool when the curve has nothing, and books the fee (${kind})`, async () => {
        const amounts =
          kind === 'sell' ? { sellAmountBeforeFee: wei('3') } : { kind, buyAmountAfterFee: micros('7000') };
        const quote = await stack.quote(taker.address, amounts);
        const { body } = await stack.submit(quote, taker);
        await stack.land();
        const order = await stack.order(body.orderId);
        expect(order).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
        expect(await fillWithLegs(stack.db.knex, 0, 1)).to.equal(null);
        expect(await operatorBalance('WETH')).to.equal(BigInt(quote.quote.feeAmount));
        expect(BigInt(order.executedSellAmount) <= BigInt(quote.quote.sellAmount)).to.equal(true);
        await expectSolvent();
      });

      it(`splits what is too much for the curve (${kind})`, async () => {
        await quoteMarket();
        const amounts =
          kind === 'sell' ? { sellAmountBeforeFee: wei('40') } : { kind, buyAmountAfterFee: micros('90000') };
        const own = await stack.request('POST', '/quote', {
          chainId: 8453,
          from: taker.address,
          sellToken: stack.token('WETH'),
          buyToken: stack.token('USDC'),
          kind,
          signingScheme: 'eip712',
          routingPreference: 'onlyService',
          ...amounts,
        });
        expect(own).to.deep.include({ status: 400 });
        expect(own.body).to.have.nested.property('error.code', 'INSUFFICIENT_LIQUIDITY');
        await proveTaker();
        const earned = await operatorBalance('WETH');
        const quote = await stack.quote(taker.address, amounts);
        expect(quote.route).to.have.length.above(1);
        const { body } = await stack.submit(quote, taker);
        await stack.land();
        const order = await stack.order(body.orderId);
        expect(order).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
        const fill = await fillWithLegs(stack.db.knex, 0, 3);
        expect(fill?.fill.taker).to.equal(taker.address.toLowerCase());
        expect(fill?.fill.inputFeeUnits).to.equal(BigInt(quote.quote.feeAmount));
        expect((await operatorBalance('WETH')) - earned).to.equal(BigInt(quote.quote.feeAmount));
        await expectSolvent();
      });
    }

    for (const route of ['pool', 'split']) {
      it(`buys for an owner who has what it costs, and not what slippage adds (${route})`, async () => {
        if (route === 'split') {
          await quoteMarket();
          await proveTaker();
        }
        const buyAmountAfterFee = micros(route === 'split' ? '90000' : '7000');
        const quote = await stack.quote(taker.address, { kind: 'buy', buyAmountAfterFee, slippageBps: 500 });
        expect(quote.route).to.have.lengthOf(route === 'split' ? 2 : 1);
        const most = BigInt(quote.quote.sellAmount);
        const spare = (await stack.balanceOf('WETH', taker.address)) - (most * 97n) / 100n;
        await chain.provider.send('hardhat_setBalance', [taker.address, '0xde0b6b3a7640000']);
        await chain.tokenAs('WETH', 'taker3').getFunction('transfer').send(chain.address('taker2'), spare);
        await chain.mine();
        const { status, body } = await stack.submit(quote, taker);
        expect(status, JSON.stringify(body)).to.equal(200);
        await stack.land();
        expect(await stack.order(body.orderId)).to.include({ status: 'filled', executedBuyAmount: buyAmountAfterFee });
        await expectSolvent();
      });
    }

    it('takes our own curve while it is as good as the tolerance asks, if that is preferred', async () => {
      /** Whether an order of that preference goes through our curve, and what it was quoted. */
      async function trade(routingPreference: string): Promise<{ isOwn: boolean; bought: bigint }> {
        const before = await fillCount();
        const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei('1'), routingPreference });
        const { body } = await stack.submit(quote, taker);
        await stack.land();
        expect(await stack.order(body.orderId)).to.include({
          status: 'filled',
          executedBuyAmount: quote.quote.buyAmount,
        });
        return { isOwn: (await fillCount()) > before, bought: BigInt(quote.quote.buyAmount) };
      }
      const fillCount = async (): Promise<number> => (await fillSeqs(stack.db.knex)).get(0) ?? 0;

      // The pool brings about 2,498.6 after its fee; the tolerance is 10 bps, or 2.5 of it.
      await quoteMarket(249_750n);
      const [close, best, only] = [await trade('preferService'), await trade('auto'), await trade('onlyService')];
      expect([close.isOwn, best.isOwn, only.isOwn]).to.deep.equal([true, false, true]);
      expect(close.bought < best.bought && close.bought * 10_000n >= best.bought * 9_980n).to.equal(true);
      await stack.keepers.order(maker, [{ side: 'bid', priceTicks: 249_300n, sizeLots: 400_000n }], resting);
      await post();
      const [far, still] = [await trade('preferService'), await trade('onlyService')];
      expect([far.isOwn, still.isOwn]).to.deep.equal([false, true]);
      await expectSolvent();
    });
  }),
);
