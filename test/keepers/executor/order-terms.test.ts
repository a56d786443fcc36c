/** What an order may cost at most, what an executor must hold for it, and the data that it takes by route. */
import { expect } from 'chai';
import { parseUnits, toQuantity } from 'ethers';
import { pino } from 'pino';
import { DEFAULT_GAS } from '../../../core/swap/pricing.js';
import { OWN } from '../../../core/swap/source.js';
import type { Address, Hex } from '../../../core/types.js';
import { GAS_PRICE_ORACLE_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { chooseFees, freshBidWei } from '../../../keepers/chain/fees.js';
import { createRpc } from '../../../keepers/chain/rpc.js';
import { gasLimitOf } from '../../../core/swap/trust.js';
import { createEconomics, termsWithin } from '../../../keepers/executor/economics.js';
import type { ExecutorDeps } from '../../../keepers/executor/deps.js';
import { readPending } from '../../../ledger/swaps/swap-log.js';
import { IOrderSettler__factory } from '../../../typechain-types/factories/interfaces/IOrderSettler__factory.js';
import { createDataFees } from '../../../liquidity/data-fee.js';
import type { Head } from '../../../liquidity/eth.js';
import { decodeRoute, planRoute } from '../../../liquidity/planner.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { drawer } from '../../support/random.js';
import { startSwapStack, type SwapStack } from '../../support/swap-stack.js';
import { forOneDatabase } from '../../support/db.js';

const ORACLE = GAS_PRICE_ORACLE_ADDRESS.toLowerCase() as Address;
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;

describe('the terms of an order', () => {
  it('never let it cost more than its bound, leave it a tenth more gas, and pay after a full block', () => {
    const draw = drawer(1_907);
    const below = (most: number): bigint => BigInt(draw(most));
    let refused = 0;
    for (let run = 0; run < 20_000; run++) {
      const [gas, baseFeeWei] = [50_000n + below(900_000), below(10) ** 10n + below(1e9)];
      const boundWei = (gas * (baseFeeWei + 1n) * below(400)) / 100n;
      const hasCode = draw(10) < 3;
      const terms = termsWithin(boundWei, gas, gasLimitOf(gas, hasCode), baseFeeWei);
      if (terms === null) {
        refused += 1;
        continue;
      }
      const { gasLimit, maxFeeWei } = terms;
      expect(gasLimit * maxFeeWei! <= boundWei).to.equal(true);
      expect(gasLimit <= gasLimitOf(gas, hasCode)).to.equal(true);
      expect(gasLimit * 10n >= gas * 11n || gasLimit === gasLimitOf(gas, hasCode)).to.equal(true);
      expect(maxFeeWei! * 8n >= baseFeeWei * 9n).to.equal(true);
    }
    expect(refused).to.be.within(2_000, 18_000);
    expect(termsWithin(0n, 100_000n, 160_000n, 0n)).to.equal(null);
  });
});

describe('what an executor must hold', () => {
  /** Most gas that an order of every kind may be limited to. */
  const { route, routeOwn, routeCall, permit, partner, checks, checksPlace } = DEFAULT_GAS;
  const MOST = route + routeOwn + 2n * routeCall + permit + partner + checks + 3n * checksPlace;
  const LIMIT = (MOST * 13n) / 10n + 30_000n;
  const TIP = 1_000_000n;
  const CEILING_WEI = 50n * GWEI;
  const DATA_WEI = 10n ** 12n;
  const head = (baseFeeWei: bigint): Head => ({ number: 1, hash: '0x', timestampSec: 0, baseFeeWei });

  async function isFunded(balanceWei: bigint, baseFeeWei: bigint, dataWei: bigint): Promise<boolean> {
    const economics = createEconomics({
      writer: { tx: async () => undefined },
      outbox: { signer: '0x', status: () => ({ balanceWei }), bidWei: (wei: bigint) => freshBidWei(wei, CEILING_WEI) },
      marketData: { dataWei: async () => dataWei },
      maxGas: 1_000_000n,
      gasModel: DEFAULT_GAS,
      feeMarginBps: 0,
      nowMs: () => 0,
      logger: pino({ level: 'silent' }),
    } as unknown as ExecutorDeps);
    await economics.noteFunds(head(baseFeeWei));
    return economics.isFunded();
  }

  it('is what a node asks for: limit of gas at twice the base fee and the tip, up to the ceiling, and data', async () => {
    for (const [baseFeeWei, bidWei, dataWei] of [
      [GWEI, 2n * GWEI + TIP, DATA_WEI],
      [GWEI, 2n * GWEI + TIP, 0n],
      [40n * GWEI, CEILING_WEI, DATA_WEI],
      [0n, TIP, 0n],
    ] as const) {
      expect(chooseFees(baseFeeWei, CEILING_WEI, null).maxFeeWei, 'as it is signed').to.equal(bidWei);
      const needed = LIMIT * bidWei + dataWei;
      expect(await isFunded(needed, baseFeeWei, dataWei)).to.equal(true);
      expect(await isFunded(needed - 1n, baseFeeWei, dataWei)).to.equal(false);
    }
    expect(await isFunded(0n, 0n, 0n)).to.equal(false);
  });
});

forOneDatabase((name, open) =>
  describe(`data of orders by route on ${name}`, function () {
    this.timeout(120_000);
    let chain: ManualChain;
    let stack: SwapStack;

    before(async () => {
      chain = await startManualChain(1, { pools: true });
    });
    beforeEach(async () => {
      await chain.reset();
      stack = await startSwapStack(await open(), chain);
    });
    afterEach(() => stack?.stop());
    after(() => chain?.close());

    it('costs no more than the quote reckons with, by our curve, a pool, or both', async () => {
      await stack.makeMarket();
      const taker = chain.wallet('taker3');
      const fees = createDataFees(createRpc(chain.rpcUrl), ORACLE);
      const seen = new Set<number>();
      for (const sold of ['1', '40']) {
        const amount = parseUnits(sold, 18).toString();
        const { orderId } = (
          await stack.submit(await stack.quote(taker.address, { sellAmountBeforeFee: amount }), taker)
        ).body;
        await stack.executor.round();
        const { attempts, route } = await stack.order(orderId);
        const hash = attempts.at(-1)!.txHashes[0]!;
        const { data, gasLimit } = (await chain.provider.getTransaction(hash))!;
        const head = await stack.marketData.head();
        const calls = route.filter(({ source }) => source !== OWN).length;
        seen.add(calls);
        const { data: model } = await fees.expected(head);
        const checks = data.startsWith(SELECTOR_CHECKED) ? route.length : 0;
        const expected = model.orderWei + BigInt(calls + checks) * model.callWei;
        const actual = await fees.of({ to: taker.address as Address, data: data as Hex, gasLimit }, head);
        expect(actual <= expected, `${sold}: ${actual} of ${expected}`).to.equal(true);
        expect(actual * 2n > expected, `${sold}: ${actual} of ${expected}`).to.equal(true);
        await stack.land();
        await stack.makeMarket();
      }
      expect(seen.size).to.equal(2);
    });

    // Swaps of a stranger: after the first one a split gains less than its gas, after the second one more, but the fee does not pay for it.
    for (const swapped of ['0.005', '0.2']) {
      it(`fills by the quoted route after a swap of ${swapped}, though a route that is too dear would bring more`, async () => {
        const [weth, usdc] = [stack.token('WETH'), stack.token('USDC')];
        const stranger = chain.entrypointAs('taker1');
        await chain.tokenAs('WETH', 'taker1').getFunction('approve').send(stranger.target, ETHER);
        await chain.mine();
        await stack.keepers.watcher.scan();
        // 2 WETH above the pool's price, the rest below it.
        await stack.keepers.order(chain.address('maker1'), [
          { side: 'bid', priceTicks: 249_990n, sizeLots: 20_000n },
          { side: 'bid', priceTicks: 249_000n, sizeLots: 180_000n },
        ]);
        await stack.keepers.poster.round();
        await chain.mine();
        await mineAtGwei();
        const taker = chain.wallet('taker3');
        const quote = await stack.quote(taker.address, { sellAmountBeforeFee: parseUnits('2', 18).toString() });
        const { orderId } = (await stack.submit(quote, taker)).body;
        const sold = parseUnits(swapped, 18);
        await stranger.swap(weth, usdc, sold, 0n, chain.address('taker1'), 2n ** 40n, { gasLimit: 500_000n });
        await mineAtGwei();
        const [pending] = await readPending(stack.db.knex, [orderId]);
        const { route, feeUnits } = pending!.quote;
        expect(decodeRoute(route).map(({ id }) => id)).to.deep.equal(['own']);
        const question = { kind: 'sell' as const, sellToken: weth, buyToken: usdc, preference: 'auto' as const };
        const amounts = { amountUnits: 2n * ETHER, toleranceBps: 10, feeOf: () => feeUnits };
        const head = await stack.marketData.head();
        const best = await planRoute(stack.marketData, { ...question, ...amounts }, head, head.timestampSec);
        expect('parts' in best && best.parts.length, 'a split brings more').to.equal(2);
        await stack.land();
        const { status, reason } = await stack.order(orderId);
        expect([status, reason]).to.deep.equal(['filled', null]);
      });
    }

    async function mineAtGwei(): Promise<void> {
      await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [toQuantity(GWEI)]);
      await chain.mine();
      await stack.keepers.watcher.scan();
    }
  }),
);

const SELECTOR_CHECKED = IOrderSettler__factory.createInterface().getFunction('fillChecked').selector;
