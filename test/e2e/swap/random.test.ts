import { expect } from 'chai';
import { Contract, MaxUint256, toQuantity, type Wallet } from 'ethers';
import { maxSellUnits } from '../../../core/swap/pricing.js';
import { sumBalances } from '../../../ledger/chain/balances.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readSwapProfits } from '../../../ledger/swaps/swap-costs.js';
import { forOneDatabase } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { seededRandom, type Random } from '../../support/random.js';
import { sellToPool } from '../../support/contracts/pool-router.js';
import { startSwapStack, type OrderAnswer, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const ERC20 = [
  'function approve(address, uint256) returns (bool)',
  'function transfer(address, uint256) returns (bool)',
];
const GAS = { gasLimit: 1_000_000n, maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 0n };
const GWEI = 10n ** 9n;

const GAS_PRICES = ['steady', 'spiking'] as const;

for (const gas of GAS_PRICES)
  forOneDatabase((name, open) =>
    describe(`quotes against executions while gas is ${gas} on ${name}`, function () {
      const { numRuns, seed } = fcOptions(50);
      this.timeout(60_000 + 3_000 * numRuns);
      let chain: ManualChain;
      let stack: SwapStack;
      let taker: Wallet;

      before(async () => {
        chain = await startManualChain(1, { pools: true });
        taker = chain.wallet('taker3');
        stack = await startSwapStack(await open(), chain);
        const router = chain.manifest.contracts['uniswapV3Router']!;
        for (const symbol of ['WETH', 'USDC']) {
          await new Contract(stack.token(symbol), ERC20, chain.wallet('taker1'))
            .getFunction('approve')
            .send(router, MaxUint256);
          await mineAndScan();
        }
      });

      after(async () => {
        await stack?.stop();
        await chain?.close();
      });

      async function mineAndScan(wei = GWEI): Promise<void> {
        await baseFee(wei);
        await chain.mine();
        await stack.keepers.watcher.scan();
      }

      let resting: number[] = [];

      /** Both makers quote anew around a price near the pool's, three levels a side. */
      async function requote(random: Random): Promise<void> {
        const centre = random.big(247_500n, 252_500n);
        const orders = Array.from({ length: 3 }, (_, i) => {
          const distance = random.big(1n, 60n) + 60n * BigInt(i);
          const sizeLots = (): bigint => random.big(1_000n, 60_000n);
          return [
            { side: 'ask' as const, priceTicks: centre + distance, sizeLots: sizeLots() },
            { side: 'bid' as const, priceTicks: centre - distance, sizeLots: sizeLots() },
          ];
        }).flat();
        const maker = chain.address('maker1');
        resting = await stack.keepers.order(maker, orders, resting);
        await post();
      }

      async function post(): Promise<void> {
        await stack.keepers.poster.round();
        await mineAndScan();
      }

      /** Somebody trades on the curve or on the pool. */
      async function disturb(random: Random): Promise<void> {
        if (random.int(0, 2) === 0) return requote(random);
        const sells = random.int(0, 1) === 0;
        const [from, to] = sells ? ['WETH', 'USDC'] : ['USDC', 'WETH'];
        const amountIn = sells ? random.big(1n, 3n * 10n ** 18n) : random.big(1_000_000n, 7_500_000_000n);
        const [tokenIn, tokenOut] = [stack.token(from), stack.token(to)];
        const { address } = chain.wallet('taker1');
        if (random.int(0, 1) === 0) {
          const swap = chain.entrypointAs('taker1').swap(tokenIn, tokenOut, amountIn, 0n, address, MaxUint256, GAS);
          await swap.catch(() => undefined);
        } else {
          await sellToPool(chain, 'taker1', { tokenIn, tokenOut, amountIn }, GAS);
        }
        await mineAndScan();
      }

      /** What went to another receiver comes back before the taker runs out. */
      async function refill(): Promise<void> {
        for (const symbol of ['WETH', 'USDC']) {
          const from = chain.wallet('taker2');
          const units = (await stack.balanceOf(symbol, from.address)) / 2n;
          const token = new Contract(stack.token(symbol), ERC20, from);
          await token.getFunction('transfer').send(taker.address, units, GAS);
        }
        await mineAndScan();
      }

      async function randomQuote(random: Random): Promise<{ quote: QuoteAnswer; slippageBps: number } | null> {
        const weth = await stack.balanceOf('WETH', taker.address);
        const usdc = await stack.balanceOf('USDC', taker.address);
        const worth = (weth * 2_500n) / 10n ** 12n;
        const sells = worth > usdc ? random.int(0, 3) > 0 : random.int(0, 3) === 0;
        const kind = random.pick(['sell', 'buy'] as const);
        const wethUnits = random.big(10n ** 16n, 8n * 10n ** random.pick([16n, 17n, 18n]) + 10n ** 16n);
        const usdcUnits = (wethUnits * 2_500n) / 10n ** 12n;
        const [sellToken, buyToken] = sells ? ['WETH', 'USDC'] : ['USDC', 'WETH'];
        const isWeth = (kind === 'sell') === sells;
        const amount = String(isWeth ? wethUnits : usdcUnits);
        const slippageBps = random.pick([0, 1, 20, 50, 500]);
        try {
          const quote = await stack.quote(taker.address, {
            sellToken: stack.token(sellToken),
            buyToken: stack.token(buyToken),
            kind,
            ...(kind === 'sell' ? { sellAmountBeforeFee: amount } : { buyAmountAfterFee: amount }),
            slippageBps,
            routingPreference: random.pick(['auto', 'auto', 'preferService', 'onlyService']),
            receiver: random.int(0, 7) === 0 ? chain.address('taker2') : taker.address,
          });
          return { quote, slippageBps };
        } catch (error) {
          expect((error as Error).message).to.match(/INSUFFICIENT_LIQUIDITY/);
          return null;
        }
      }

      function expectKept({ quote }: QuoteAnswer, order: OrderAnswer): void {
        expect(BigInt(order.executedBuyAmount) >= BigInt(quote.minBuyAmount), 'at least the minimum').to.equal(true);
        expect(BigInt(order.executedSellAmount) <= BigInt(quote.sellAmount), 'at most the maximum').to.equal(true);
      }

      /** The base fee of the next block. */
      async function baseFee(wei: bigint): Promise<void> {
        await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [toQuantity(wei)]);
      }

      it(`keeps every promise of ${numRuns} random swaps in moving markets, and loses nothing`, async () => {
        const random = seededRandom(seed + GAS_PRICES.indexOf(gas));
        const waiting = new Map<string, QuoteAnswer>();
        const counts = { filled: 0, exact: 0, moved: 0, late: 0, refused: 0 };
        for (let i = 0; i < numRuns; i++) {
          if (i % 64 === 32) await refill();
          if (i % 8 === 0) await requote(random);
          else if (i % 4 === 2) await post();
          const drawn = await randomQuote(random);
          if (drawn === null) {
            counts.refused += 1;
            continue;
          }
          const { quote, slippageBps } = drawn;
          const { status, body } = await stack.submit(quote, taker);
          expect(status, JSON.stringify(body)).to.equal(200);
          const isSpike = gas === 'spiking' && random.int(0, 2) === 0;
          const moves = random.int(0, 2) === 0;
          if (moves) await disturb(random);
          if (isSpike) {
            await mineAndScan((GWEI * random.big(8n, random.pick([20n, 200n]))) / 10n);
          }
          const { baseFeePerGas } = (await chain.provider.getBlock('latest'))!;
          // The block of the order may be dearer than the one at which it was judged.
          await baseFee(isSpike ? (baseFeePerGas! * random.big(8n, 15n)) / 10n : GWEI);
          await stack.land();
          const atOnce = await stack.order(body.orderId);
          if (isSpike) {
            // What waited for cheaper gas, sent or not, has it now.
            await mineAndScan();
            await stack.land();
            await mineAndScan();
          }
          const order = await stack.order(body.orderId);
          let others = 0;
          for (const id of [...waiting.keys()]) {
            const earlier = await stack.order(id);
            if (earlier.status === 'pending') continue;
            if (earlier.status === 'filled') expectKept(waiting.get(id)!, earlier);
            waiting.delete(id);
            others += 1;
          }
          if (order.status === 'pending') waiting.set(body.orderId, quote);
          if (order.status === 'filled') {
            expectKept(quote, order);
            counts.filled += 1;
            counts.moved += moves ? 1 : 0;
            counts.late += atOnce.status === 'filled' ? 0 : 1;
          }
          if (moves || others > 0) continue;
          // The market did not move, so that the order is filled at the latest when gas costs what it did, and the quote is what was executed, to the unit.
          expect(order, `swap ${i}`).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
          const { kind, sellAmount } = quote.quote;
          const spent = BigInt(order.executedSellAmount);
          expect(kind === 'sell' ? spent : maxSellUnits(spent, slippageBps), `swap ${i}`).to.equal(BigInt(sellAmount));
          counts.exact += 1;
        }
        console.log(`      ${JSON.stringify(counts)}`);
        const late = [...waiting.values()].reduce((latest, { quote }) => Math.max(latest, quote.validTo), 0);
        if (late > 0) {
          const { timestamp } = (await chain.provider.getBlock('latest'))!;
          await chain.provider.send('evm_setNextBlockTimestamp', [Math.max(late, timestamp) + 1]);
          await mineAndScan();
          await stack.executor.round();
        }
        for (const [id, quote] of waiting) {
          const order = await stack.order(id);
          expect(order.status).to.be.oneOf(['filled', 'expired']);
          if (order.status === 'filled') expectKept(quote, order);
        }
        await stack.executor.round();
        const since = await readSwapProfits(stack.db.knex, 0);
        const profits = since.map(
          ({ feesWei, filledCostWei, revertedCostWei }) => feesWei - filledCostWei - revertedCostWei,
        );
        expect(
          since.reduce((sum, { filled }) => sum + filled, 0),
          'every fill has its cost',
        ).to.be.at.least(counts.filled);
        expect(profits.reduce((sum, wei) => sum + wei) >= 0n, profits.join()).to.equal(true);
        expect(counts.filled).to.be.above(numRuns / 2);
        expect(counts.exact).to.be.above(numRuns / 4);
        // Gas that costs more than an order pays for holds it up, and nothing else does.
        expect(counts.late > 0).to.equal(gas === 'spiking');
        expect(await readHalt(stack.db.knex)).to.equal(null);
        const sums = await sumBalances(stack.db.knex);
        for (const symbol of ['WETH', 'USDC']) {
          const held = await stack.balanceOf(symbol, chain.manifest.contracts.custodian);
          expect(sums.get(stack.token(symbol)), symbol).to.equal(held);
        }
      });
    }),
  );
