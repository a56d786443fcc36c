/** How orders end when the chain, the owner or others get in the way. */
import { expect } from 'chai';
import { MaxUint256, parseUnits, type Wallet } from 'ethers';
import { pino } from 'pino';
import { mined } from '../../../deploy/transactions.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { planReconcile } from '../../../keepers/watcher/reconcile.js';
import { sumBalances } from '../../../ledger/chain/balances.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { appendQuotes, readQuote } from '../../../ledger/swaps/swap-quotes.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import type { MarketData } from '../../../liquidity/market-data.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import { SmartAccount__factory } from '../../../typechain-types/factories/mocks/SmartAccount__factory.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachDatabase } from '../../support/db.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import type { OrderAnswer, QuoteAnswer, SwapStack } from '../../support/swap-stack.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();
const MAX_SENDS = 2;
/** A base fee beyond what the outbox pays, and a common one. */
const DEAR_HEX = toQuantity(parseUnits('100', 'gwei'));
const ONE_GWEI_HEX = toQuantity(parseUnits('1', 'gwei'));
/** Past the last second of an order, by the clock of API and executor. */
const ORDER_MS = 125_000;

describe('ends of orders', function () {
  this.timeout(120_000);

  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let bids: number[];

    beforeEach(async () => {
      bids = [];
      // An owner's credit must not end before the number of an order's transactions does.
      ({ chain, stack, taker } = await begin({}, { maxSends: MAX_SENDS, newAccountGas: 200_000n }));
      await mineAndScan();
      await quoteMarket();
    });

    afterEach(() => stack.stop());

    async function mineAndScan(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    /** 20 WETH of bids, anew. */
    async function quoteMarket(): Promise<void> {
      const order = { side: 'bid' as const, priceTicks: 249_990n, sizeLots: 200_000n };
      bids = await stack.keepers.order(chain.address('maker1'), [order], bids);
      await stack.keepers.poster.round();
      await mineAndScan();
    }

    async function submit(amount: string): Promise<{ orderId: string; quote: QuoteAnswer }> {
      const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei(amount) });
      const { status, body } = await stack.submit(quote, taker);
      expect(status, JSON.stringify(body)).to.equal(200);
      return { orderId: body.orderId, quote };
    }

    const passDeadline = async ({ quote }: { quote: QuoteAnswer }): Promise<void> => {
      await chain.provider.send('evm_setNextBlockTimestamp', [quote.quote.validTo + 1]);
      await mineAndScan();
    };

    async function fillsOnChain(): Promise<number> {
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.provider);
      return (await settler.queryFilter(settler.filters.OrderFilled(taker.address))).length;
    }

    const snapshot = async (): Promise<string> => (await chain.provider.send('evm_snapshot', [])) as string;

    /** Another branch from the snapshot on, longer than the ledger has seen, and the ledger reconciled with it. */
    async function reorganise(
      to: string,
      firstTimestampSec: number | null,
      whileHalted: () => Promise<void> = async () => undefined,
    ): Promise<void> {
      const seen = await chain.provider.getBlockNumber();
      await chain.provider.send('evm_revert', [to]);
      if (firstTimestampSec === null) await chain.provider.send('evm_increaseTime', [1]);
      else await chain.provider.send('evm_setNextBlockTimestamp', [firstTimestampSec]);
      while ((await chain.provider.getBlockNumber()) <= seen) await chain.mine();
      await stack.keepers.watcher.scan();
      expect((await readHalt(stack.db.knex))?.code).to.equal('canonical_mismatch');
      await whileHalted();
      const rpc = createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger: pino({ level: 'silent' }) });
      const plan = await planReconcile(stack.db, rpc, { deploymentBlock: chain.manifest.deploymentBlock });
      expect(plan).not.to.equal(null);
      await requestReconcile(stack.db, { reversal: plan!.reversal, capitalOrigin: false }, 1);
      await stack.keepers.watcher.scan();
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

    it('expires an order whose transaction was sent and never mined, and goes on with the next', async () => {
      const lost = await submit('1');
      await stack.executor.round();
      const hashes = (await stack.order(lost.orderId)).attempts.flatMap(({ txHashes }) => txHashes);
      expect(hashes).to.have.length(1);
      await chain.provider.send('hardhat_dropTransaction', hashes);
      await passDeadline(lost);
      await stack.executor.round();
      const answer = await stack.order(lost.orderId);
      expect([answer.status, answer.reason?.code]).to.deep.equal(['expired', 'EXPIRED']);
      expect(answer).to.include({ executedSellAmount: '0', executedBuyAmount: '0', txHash: null });
      expect(answer.attempts.map(({ result, txHashes }) => [result, txHashes])).to.deep.equal([['sent', hashes]]);
      await mineAndScan();
      stack.advance(ORDER_MS);
      await quoteMarket();
      const next = await submit('1');
      await stack.land();
      expect((await stack.order(next.orderId)).status).to.equal('filled');
      expect((await stack.order(lost.orderId)).status).to.equal('expired');
      expect(await fillsOnChain()).to.equal(1);
    });

    it('gives up after so many transactions that reverted, and names them', async () => {
      const order = await submit('15');
      const rival = chain.address('taker1');
      const hashes: string[] = [];
      for (let i = 1; i <= MAX_SENDS; i++) {
        await stack.executor.round();
        hashes.push(...(await stack.order(order.orderId)).attempts.at(-1)!.txHashes);
        // Somebody else's trade comes first in the same block.
        await chain
          .entrypointAs('taker1')
          .swap(stack.token('WETH'), stack.token('USDC'), wei('10'), 0n, rival, MaxUint256, {
            gasLimit: 1_000_000n,
            gasPrice: parseUnits('40', 'gwei'),
          });
        await mineAndScan();
        expect((await stack.order(order.orderId)).status).to.equal('pending');
        await quoteMarket();
      }
      await stack.executor.round();
      const answer = await stack.order(order.orderId);
      expect([answer.status, answer.reason?.code]).to.deep.equal(['failed', 'TOO_MANY_ATTEMPTS']);
      expect(answer.attempts.map(({ result }) => result)).to.deep.equal(['sent', 'sent']);
      expect(answer.attempts.flatMap(({ txHashes }) => txHashes)).to.deep.equal(hashes);
      await stack.land();
      expect(await fillsOnChain()).to.equal(0);
      expect((await stack.order(order.orderId)).status).to.equal('failed');
    });

    it('keeps an order while gas is dearer than the ceiling, says so, and executes it afterwards', async () => {
      // The fee is made for this price.
      await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [ONE_GWEI_HEX]);
      await mineAndScan();
      const order = await submit('1');
      for (let i = 0; i < MAX_SENDS + 2; i++) {
        await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [DEAR_HEX]);
        await mineAndScan();
        await stack.executor.round();
      }
      const waiting = await stack.order(order.orderId);
      expect([waiting.status, waiting.reason?.code]).to.deep.equal(['pending', 'GAS_TOO_DEAR']);
      expect(waiting.attempts.map(({ code }) => code)).to.deep.equal(['GAS_TOO_DEAR']);
      await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [ONE_GWEI_HEX]);
      await mineAndScan();
      await stack.land();
      expect(await stack.order(order.orderId)).to.include({ status: 'filled', reason: null });
    });

    it('does not send an order while its owner would burn gas that no fee pays for', async () => {
      const order = await submit('1');
      let burnt = toQuantity(20_000_000);
      const burning = (rpc: Rpc): Rpc => ({
        ...rpc,
        batch: async (requests) => {
          const answers = await rpc.batch(requests);
          return answers.map((answer, i) => (requests[i]!.method === 'eth_estimateGas' ? burnt : answer));
        },
      });
      await stack.restartExecutor({ rpc: burning });
      await stack.land();
      const answer = await stack.order(order.orderId);
      expect([answer.status, answer.reason?.code]).to.deep.equal(['pending', 'TOO_MUCH_GAS']);
      // Beyond what the fee was made for, within what it pays for.
      burnt = toQuantity(200_000);
      await mineAndScan();
      await stack.land();
      expect((await stack.order(order.orderId)).status).to.equal('filled');
    });

    it('forgets all old quotes that nobody used, however many there are', async () => {
      const { quote } = await submit('1');
      const used = (await readQuote(stack.db.knex, quote.id))!;
      const drafts = Array.from({ length: 2_500 }, (_, i) => ({ ...used, id: `old-${i}`, createdMs: 0, expiresMs: 1 }));
      const agoOf = (id: string, ms: number) => ({ ...used, id, createdMs: 0, expiresMs: Date.now() - ms });
      // An hour after they expired, however fast others ask for more.
      drafts.push(agoOf('older', 3_660_000), agoOf('young', 3_540_000));
      await appendQuotes(stack.db, drafts, (draft, i) => ({ ...draft, nonce: BigInt(i) }));
      await stack.executor.round();
      expect(await stack.db.knex('swap_quotes').pluck('id')).to.have.members([used.id, 'young']);
    });

    it('counts no transaction that was never signed', async () => {
      const order = await submit('1');
      let isDown = true;
      const unreachable = (rpc: Rpc): Rpc => ({
        ...rpc,
        call: (method, params) =>
          isDown && method === 'eth_getBlockByNumber' ? Promise.reject(new Error('down')) : rpc.call(method, params),
      });
      await stack.restartExecutor({ rpc: unreachable });
      for (let i = 0; i < MAX_SENDS + 2; i++) await stack.land();
      expect((await stack.order(order.orderId)).status).to.equal('pending');
      isDown = false;
      await stack.land();
      const answer = await stack.order(order.orderId);
      expect(answer.status).to.equal('filled');
      expect(answer.attempts.map(({ txHashes }) => txHashes)).to.deep.equal([[answer.txHash]]);
    });

    it('fails an order whose owner no longer accepts the signature', async () => {
      const { orderId } = await submit('1');
      const payer = chain.wallet('taker1');
      await chain.provider.send('evm_setAutomine', [true]);
      const delegate = await new SmartAccount__factory(payer).deploy(`0x${'0'.repeat(40)}`);
      await delegate.waitForDeployment();
      const nonce = await chain.provider.getTransactionCount(taker.address);
      const authorization = await taker.authorize({ address: await delegate.getAddress(), nonce });
      await mined(payer.sendTransaction({ to: payer.address, type: 4, authorizationList: [authorization] }));
      await chain.provider.send('evm_setAutomine', [false]);
      await stack.land();
      const answer = await stack.order(orderId);
      expect([answer.status, answer.reason?.code]).to.deep.equal(['failed', 'INVALID_SIGNATURE']);
      expect(answer.attempts.map(({ result }) => result)).to.deep.equal(['refused']);
    });

    it('waits for the ledger to see its own fill, however old the block is that an endpoint calls its newest', async () => {
      let old: Awaited<ReturnType<MarketData['head']>> | null = null;
      const marketData = (real: MarketData): MarketData => ({
        ...real,
        head: async () => old ?? real.head(),
      });
      await stack.restartExecutor({ marketData });
      const { orderId } = await submit('1');
      await stack.executor.round();
      const hashes = (await stack.order(orderId)).attempts.flatMap(({ txHashes }) => txHashes);
      await chain.provider.send('hardhat_dropTransaction', hashes);
      await mineAndScan();
      const head = await stack.marketData.head();
      // Sends it again.
      await stack.executor.round();
      await chain.mine();
      for (old of [head, null]) {
        await stack.executor.round();
        expect((await stack.order(orderId)).status).to.equal('pending');
      }
      await stack.keepers.watcher.scan();
      await stack.executor.round();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('is pending again when the block of its fill is dropped, and filled once in the end', async () => {
      const before = await snapshot();
      const { orderId, quote } = await submit('1');
      await stack.land();
      const first = await stack.order(orderId);
      expect(first.status).to.equal('filled');
      await reorganise(before, null, async () => {
        const lost = await stack.order(orderId);
        expect(lost, 'before anybody reconciles').to.include({
          ...{ status: 'pending', executedBuyAmount: '0', txHash: null },
        });
        expect(lost.reason?.code).to.equal('FILL_LOST');
        const listed = await stack.request<{ orders: OrderAnswer[] }>('GET', `/orders?owner=${taker.address}`);
        expect(listed.body.orders.map(({ status, reason }) => [status, reason?.code])).to.deep.equal([
          ['pending', 'FILL_LOST'],
        ]);
      });
      expect(await fillsOnChain()).to.equal(0);
      const dropped = await stack.order(orderId);
      expect(dropped).to.include({ status: 'pending', executedBuyAmount: '0', txHash: null, reason: null });
      await stack.land();
      const again = await stack.order(orderId);
      expect(again).to.include({
        status: 'filled',
        executedBuyAmount: quote.quote.buyAmount,
        executedSellAmount: quote.quote.sellAmount,
      });
      expect(again.attempts).to.have.length(1);
      expect(again.attempts[0]!.txHashes).to.include(again.txHash);
      await stack.land();
      expect(await fillsOnChain()).to.equal(1);
      await expectSolvent();
    });

    it('expires when the block of its fill is dropped after its last second', async () => {
      const before = await snapshot();
      const order = await submit('1');
      await stack.land();
      await passDeadline(order);
      stack.advance(ORDER_MS);
      await stack.executor.round();
      expect((await stack.order(order.orderId)).status).to.equal('filled');
      await reorganise(before, order.quote.quote.validTo + 1);
      expect((await stack.order(order.orderId)).status).to.equal('pending');
      await stack.land();
      const answer = await stack.order(order.orderId);
      expect(answer).to.include({ status: 'expired', executedBuyAmount: '0', txHash: null });
      await stack.land();
      expect(await fillsOnChain()).to.equal(0);
      await expectSolvent();
    });
  }, forEachDatabase);
});
