/** What an order costs the service, what its fee is worth, and who pays when the two part. */
import { expect } from 'chai';
import { parseEther, parseUnits, toBeHex, toQuantity, Transaction, type Wallet } from 'ethers';
import { pino } from 'pino';
import { DEFAULT_GAS, checksGasOf, gasOf, worthWei } from '../../../core/swap/pricing.js';
import { OWN } from '../../../core/swap/source.js';
import type { Address, Hex } from '../../../core/types.js';
import { GAS_PRICE_ORACLE_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { chooseFees, freshBidWei } from '../../../keepers/chain/fees.js';
import { createRpc } from '../../../keepers/chain/rpc.js';
import { gasLimitOf } from '../../../core/swap/trust.js';
import { createEconomics, termsWithin } from '../../../keepers/executor/economics.js';
import type { ExecutorDeps } from '../../../keepers/executor/deps.js';
import { readPending } from '../../../ledger/swaps/swap-log.js';
import { listOutbox } from '../../../ledger/transactions/outbox.js';
import { IOrderSettler__factory } from '../../../typechain-types/factories/interfaces/IOrderSettler__factory.js';
import { CALL_BYTES, ORDER_BYTES, createDataFees } from '../../../liquidity/data-fee.js';
import type { Head } from '../../../liquidity/eth.js';
import { decodeRoute, planRoute } from '../../../liquidity/planner.js';
import { SandboxGasPriceOracle__factory } from '../../../typechain-types/factories/mocks/SandboxGasPriceOracle__factory.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { drawer } from '../../support/random.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, startSwapStack, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';
import { forEachDatabase } from '../../support/db.js';

/** Hashes 128 kB, for about 70,000 gas, before it answers that the signature is valid. */
const WASTEFUL = '0x620200005f2050631626ba7e60e01b5f5260205ff3';
/** Runs until its gas is used up. */
const ENDLESS = '0x5b5f56';
const ORACLE = GAS_PRICE_ORACLE_ADDRESS.toLowerCase() as Address;
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;

describe('the economics of signed orders', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack, taker } = await begin({}, { newContractGas: 400_000n }));
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    const sell = (from = taker.address, change: object = {}): Promise<QuoteAnswer> =>
      stack.quote(from, { sellAmountBeforeFee: ETHER.toString(), ...change });
    const fee = async (from?: string): Promise<bigint> => BigInt((await sell(from)).quote.feeAmount);

    /** Wei per 1e12 of size for data, wei per gas and per transaction for the chain's operator. */
    async function charge(scaledFee: bigint, perGas = 0n, perOrder = 0n): Promise<void> {
      const oracle = SandboxGasPriceOracle__factory.connect(ORACLE, chain.wallet('taker1'));
      await oracle.set(scaledFee, perGas, perOrder, { gasLimit: 200_000n });
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function baseFee(wei: bigint): Promise<void> {
      await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [toBeHex(wei).replace(/^0x0+/, '0x')]);
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function submitted(quote: QuoteAnswer, signer: Wallet = taker): Promise<string> {
      const { status, body } = await stack.submit(quote, signer);
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.orderId;
    }

    it('has the fee pay for data and for the operator of the chain, each once', async () => {
      // The first order of a new account: with the data of a check.
      await charge(0n);
      const before = await fee();
      const scaledFee = 10n ** 18n;
      const oracle = SandboxGasPriceOracle__factory.connect(ORACLE, chain.provider);
      await charge(scaledFee, 0n, 10n ** 13n);
      const bound = (await oracle.getL1FeeUpperBound(ORDER_BYTES + CALL_BYTES)) + 10n ** 13n;
      const drift = before / 5n;
      expect((await fee()) - (bound * 12n) / 10n).to.be.within(before - drift, before + drift);
      await charge(0n, GWEI);
      const gas = gasOf(DEFAULT_GAS, [OWN]) + checksGasOf(DEFAULT_GAS, [OWN]);
      expect((await fee()) - (gas * GWEI * 125n * 12n) / 1_000n).to.be.within(before - drift, before + drift);
    });

    it('waits while gas costs more than the fee is worth, and executes when it is cheap again', async () => {
      const orderId = await submitted(await sell());
      await baseFee(20n * GWEI);
      await stack.executor.round();
      const { status, reason, attempts } = await stack.order(orderId);
      expect(status).to.equal('pending');
      expect(reason?.code).to.equal('GAS_TOO_DEAR');
      expect(attempts.every(({ result }) => result === 'refused')).to.equal(true);
      await baseFee(1_000n);
      await stack.makeMarket();
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('waits while data is too dear, too, and expires when it stays so', async () => {
      const orderId = await submitted(await sell());
      await charge(10n ** 21n);
      await stack.executor.round();
      expect((await stack.order(orderId)).reason?.code).to.equal('GAS_TOO_DEAR');
      stack.advance(130_000);
      await chain.provider.send('evm_increaseTime', [130]);
      await stack.land();
      await stack.land();
      const order = await stack.order(orderId);
      expect([order.status, order.reason?.code]).to.deep.equal(['expired', 'GAS_TOO_DEAR']);
    });

    it('costs no more than its fee is worth and the loss that is allowed, however often it is replaced', async () => {
      await charge(10n ** 18n, 1_000n, 10n ** 10n);
      await baseFee(GWEI);
      const quote = await sell();
      const orderId = await submitted(quote);
      await baseFee(GWEI);
      await stack.executor.round();
      const head = await stack.marketData.head();
      const price = (await stack.marketData.gasPrice(quote.quote.sellToken, head, head.timestampSec))!;
      const most = (worthWei(BigInt(quote.quote.feeAmount), price) * 10n) / 9n;
      for (const wei of [40n * GWEI, 30n * GWEI, 20n * GWEI]) {
        await baseFee(wei);
        stack.advance(30_000);
        await stack.executor.round();
      }
      const { attempts } = await stack.order(orderId);
      const hashes = attempts.flatMap(({ txHashes }) => txHashes);
      expect(hashes.length).to.be.greaterThan(0);
      const oracle = SandboxGasPriceOracle__factory.connect(ORACLE, chain.provider);
      for (const { raw } of await listOutbox(stack.db.knex, { signer: stack.outbox.signer, limit: 10 })) {
        const { to, gasLimit, maxFeePerGas, unsignedSerialized } = Transaction.from(raw);
        expect(to, 'nothing waits behind it').to.equal(chain.manifest.contracts['orderSettler']);
        const data = (await oracle.getL1Fee(unsignedSerialized)) + (await oracle.getOperatorFee(gasLimit));
        const cost = gasLimit * maxFeePerGas! + data;
        expect(cost <= most, `${cost} of ${most}`).to.equal(true);
        expect(cost * 2n > most, `${cost} of ${most}`).to.equal(true);
      }
      stack.advance(60_000);
      await chain.provider.send('evm_increaseTime', [150]);
      for (let round = 0; round < 3; round++) await stack.land();
      expect((await stack.order(orderId)).status).to.equal('expired');
      expect(stack.outbox.status().unminedCount, 'a transfer took its place').to.equal(0);
    });

    it('quotes nothing while the executor has no ETH, and says why', async () => {
      const executor = chain.address('executor');
      const orderId = await submitted(await sell());
      const balance = (wei: bigint) =>
        chain.provider.send('hardhat_setBalance', [executor, toBeHex(wei).replace(/^0x0+/, '0x')]);
      await balance(10n ** 9n);
      // A new one looks at its balance at once.
      await stack.restartExecutor();
      await stack.executor.round();
      expect((await stack.order(orderId)).reason?.code).to.equal('EXECUTOR_UNFUNDED');
      const request = {
        chainId: 8453,
        from: taker.address,
        sellToken: stack.token('WETH'),
        buyToken: stack.token('USDC'),
        kind: 'sell',
        sellAmountBeforeFee: ETHER.toString(),
        signingScheme: 'eip712',
      };
      const [status, code, message] = await stack.refused('POST', '/quote', request);
      expect([status, code]).to.deep.equal([503, 'EXECUTOR_UNFUNDED']);
      expect(message).to.contain('no ETH');
      await balance(parseEther('100'));
      await stack.restartExecutor();
      await stack.land();
      expect((await sell()).id).to.be.a('string');
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it("has the fee pay for the check of the owner's signature, and fills what it paid for", async () => {
      const [owner] = await createOwners(chain, 'WETH', 1, 3n * ETHER);
      const plain = await fee(owner!.address);
      await chain.provider.send('hardhat_setCode', [owner!.address, WASTEFUL]);
      const quote = await sell(owner!.address);
      const extra = BigInt(quote.quote.feeAmount) - plain;
      // A new account's fee without code has the checks, which those with code go without.
      expect(extra > plain / 4n && extra < plain, `${extra} of ${plain}`).to.equal(true);
      const orderId = await submitted(quote, owner);
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('refuses an owner whose check takes more gas than an order may', async () => {
      const [owner] = await createOwners(chain, 'WETH', 1, 3n * ETHER);
      const quote = await sell(owner!.address);
      await chain.provider.send('hardhat_setCode', [owner!.address, ENDLESS]);
      const failure = await sell(owner!.address).catch((error: Error) => error.message);
      expect(failure).to.match(/takes more than 1000000 gas|Nothing/);
      const { status, body } = await stack.submit(quote, owner!);
      expect([status, JSON.stringify(body)].join()).to.match(/^400,.*Invalid signature/);
    });

    /** Fees that are noted, and how many orders are looked after. */
    async function noted(): Promise<[fees: bigint[], pending: number]> {
      const fees = await stack.db.knex('swap_fees').select('fee_wei');
      return [fees.map(({ fee_wei: wei }) => BigInt(wei)), (await stack.db.knex('swap_pending').select()).length];
    }

    /** An order that is filled so long ago that nothing takes it back, by an executor that was down since. */
    async function filledLongAgo(): Promise<void> {
      await stack.submit(await sell(), taker);
      await stack.land();
      for (let block = 0; block < 80; block++) await chain.mine();
      await stack.keepers.watcher.scan();
    }

    it('counts the fee of a fill that came to be final while nothing ran', async () => {
      await filledLongAgo();
      await stack.restartExecutor();
      await stack.executor.round();
      const [fees, pending] = await noted();
      expect([fees.length, pending]).to.deep.equal([1, 0]);
      expect(fees[0]! > 0n).to.equal(true);
    });

    it('asks for ten minutes for the price of a fee that nothing prices, and lets go of the order only then', async () => {
      await filledLongAgo();
      let fails = true;
      const gasPrice = (): Promise<null> => (fails ? Promise.reject(new Error('not now')) : Promise.resolve(null));
      await stack.restartExecutor({ marketData: (real) => ({ ...real, gasPrice }) });
      await stack.executor.round();
      fails = false;
      stack.advance(599_000);
      await stack.executor.round();
      expect(await noted()).to.deep.equal([[], 1]);
      stack.advance(61_000);
      await stack.executor.round();
      expect(await noted()).to.deep.equal([[0n], 0]);
    });

    it('sends a receiver nothing that it would lose', async () => {
      for (const symbol of ['WETH', 'USDC']) {
        const lost = await sell(taker.address, { receiver: stack.token(symbol) }).catch(
          (error: Error) => error.message,
        );
        expect(lost).to.contain("can't receive tokens");
      }
    });

    it("tells nobody of an order by its owner's name for it, but the owner", async () => {
      const clientOrderId = 'mine-1';
      const first = await sell();
      const { body } = await stack.submit(first, taker, { clientOrderId });
      const another = await sell();
      const stranger = chain.wallet('taker2');
      const guess = await stack.submit(another, stranger, { clientOrderId });
      expect(guess.status).to.equal(400);
      expect(JSON.stringify(guess.body)).to.contain('Invalid signature').and.not.contain(body.orderId);
      const reused = await stack.submit(first, stranger);
      expect(JSON.stringify(reused.body)).not.to.contain(body.orderId);
      const again = await stack.submit(another, taker, { clientOrderId });
      expect([again.status, again.body.orderId]).to.deep.equal([200, body.orderId]);
    });
  });
});

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

forEachDatabase((name, open) =>
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
