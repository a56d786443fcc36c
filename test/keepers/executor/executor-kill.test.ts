/** The executor as a process of its own, killed with SIGKILL between every two steps that leave it. */
import { expect } from 'chai';
import { parseUnits, type Wallet } from 'ethers';
import type { Address, Hex } from '../../../core/types.js';
import { WETH_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import { startChild, type Child } from '../../support/child.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import type { ExecutorTask } from '../../support/children/executor-child.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { startSwapStack, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();
const CHILD = 'test/support/children/executor-child.ts';
const TIMEOUT_MS = 60_000;
/** Far beyond what an order takes. */
const MOST_STEPS = 60;
/** A deep run kills at every step on each database; otherwise SQLite takes the odd ones and PostgreSQL the even ones. */
const deep = process.env.RUNS !== undefined && process.env.RUNS !== '1';

forEachDatabase((name, open) =>
  describe(`executor killed on ${name}`, function () {
    this.timeout(600_000);
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let aheadMs: number;
    let ready: Child | null;
    /** All that were started; none may outlive its test. */
    const children: Child[] = [];

    before(async () => {
      chain = await startManualChain();
      taker = chain.wallet('taker3');
    });

    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      aheadMs = 0;
      stack = await startSwapStack(await open(), chain);
      await stack.stopExecutor();
      await mineAndScan();
      ready = load();
    });

    afterEach(async () => {
      for (const child of children.splice(0)) await child.end('SIGKILL');
      await stack.stop();
    });

    /** A process with everything loaded; that takes a second, so the next one is always on its way. */
    function load(): Child {
      const child = startChild(CHILD, []);
      children.push(child);
      return child;
    }

    /** Makes the loaded process an executor; on PostgreSQL it waits for its log as long as another one lives. */
    async function start(): Promise<Child> {
      const child = ready ?? load();
      ready = load();
      await child.line((line) => line === 'loaded', TIMEOUT_MS);
      const at = (contract: string) => chain.manifest.contracts[contract]!.toLowerCase() as Address;
      const task: ExecutorTask = {
        database: locationOf(stack.db),
        rpcUrl: chain.rpcUrl,
        chainId: chain.manifest.chainId,
        privateKey: chain.wallet('executor').privateKey as Hex,
        contracts: {
          settler: at('orderSettler'),
          curveBook: at('curveBook'),
          custodian: at('custodian'),
          entrypoint: at('entrypoint'),
          wrappedNative: WETH_ADDRESS.toLowerCase() as Address,
        },
      };
      child.send(JSON.stringify(task));
      return child;
    }

    /** False when the process died of it. */
    async function tell(child: Child, command: string): Promise<boolean> {
      const answers = () => child.lines().filter((line) => line === 'done').length;
      const seen = answers();
      child.send(command);
      try {
        await child.line(() => answers() > seen, TIMEOUT_MS);
        return true;
      } catch (error) {
        if (child.process.signalCode === 'SIGKILL') return false;
        throw error;
      }
    }

    /** One round of the process, a block, a scan. False when the process died. */
    async function land(child: Child): Promise<boolean> {
      const lived = await tell(child, 'round');
      await mineAndScan();
      return lived;
    }

    async function mineAndScan(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    /** Sets the clock of the API, and of executors from then on, to the chain's. */
    async function followChain(): Promise<void> {
      const head = (await chain.provider.getBlock('latest'))!;
      const nextMs = head.timestamp * 1_000 - Date.now();
      stack.advance(nextMs - aheadMs);
      aheadMs = nextMs;
    }

    let bids: number[] = [];

    async function quoteMarket(priceTicks: bigint): Promise<void> {
      // A process may have taken its time, and nothing is posted by a ledger that is behind.
      await mineAndScan();
      const order = { side: 'bid' as const, priceTicks, sizeLots: 200_000n };
      bids = await stack.keepers.order(chain.address('maker1'), [order], bids);
      await stack.keepers.poster.round();
      await mineAndScan();
    }

    async function submit(slippageBps: number): Promise<{ orderId: string; quote: QuoteAnswer }> {
      const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei('0.1'), slippageBps });
      const { status, body } = await stack.submit(quote, taker);
      expect(status, JSON.stringify(body)).to.equal(200);
      return { orderId: body.orderId, quote };
    }

    async function fillsOnChain(): Promise<number> {
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.provider);
      return (await settler.queryFilter(settler.filters.OrderFilled(taker.address))).length;
    }

    it('executes an order once and lets another expire, whichever step was the last before SIGKILL', async () => {
      const setClock = (child: Child) => tell(child, `ahead ${aheadMs}`);
      let executor = await start();
      let filled = 0;
      for (let k = deep || name === 'SQLite' ? 1 : 2, killed = true; killed; k += deep ? 1 : 2) {
        expect(k).to.be.below(MOST_STEPS);
        const what = `killed before step ${k}`;
        await setClock(executor);
        // On PostgreSQL the next one waits for the log all the while.
        let next = name === 'PostgreSQL' ? await start() : null;
        // Quoted at a better price than there will be, without slippage.
        await quoteMarket(250_500n);
        const late = await submit(0);
        await quoteMarket(249_990n);
        const order = await submit(50);
        killed = false;
        await tell(executor, `die ${k}`);
        const landTwice = async (): Promise<void> => {
          for (let i = 0; i < 2; i++) {
            if (await land(executor)) continue;
            expect(killed, 'dies once').to.equal(false);
            killed = true;
            executor = next ?? (await start());
            next = null;
            await setClock(executor);
            await land(executor);
            await land(executor);
          }
        };
        await landTwice();
        filled += 1;
        const done = await stack.order(order.orderId);
        expect(done, what).to.include({
          status: 'filled',
          executedBuyAmount: order.quote.quote.buyAmount,
          executedSellAmount: order.quote.quote.sellAmount,
        });
        expect(
          done.attempts.flatMap(({ txHashes }) => txHashes),
          what,
        ).to.deep.equal([done.txHash]);
        expect((await stack.order(late.orderId)).status, what).to.equal('pending');
        await chain.provider.send('evm_setNextBlockTimestamp', [order.quote.quote.validTo + 1]);
        await mineAndScan();
        await landTwice();
        const ended = await stack.order(late.orderId);
        expect([ended.status, ended.reason?.code, ended.txHash], what).to.deep.equal(['expired', 'PRICE_MOVED', null]);
        expect((await stack.order(order.orderId)).status, what).to.equal('filled');
        expect(await fillsOnChain(), what).to.equal(filled);
        await next?.end('SIGKILL');
        await followChain();
      }
      await executor.end('SIGKILL');
      // Each but the last was killed.
      expect(filled).to.be.above(deep ? 20 : 10);
    });
  }),
);
