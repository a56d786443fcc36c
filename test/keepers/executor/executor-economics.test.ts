/** What an order costs the service, what its fee is worth, and who pays when the two part. */
import { expect } from 'chai';
import { parseEther, toBeHex, Transaction, type Wallet } from 'ethers';
import { DEFAULT_GAS, checksGasOf, gasOf, worthWei } from '../../../core/swap/pricing.js';
import { OWN } from '../../../core/swap/source.js';
import type { Address } from '../../../core/types.js';
import { GAS_PRICE_ORACLE_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { listOutbox } from '../../../ledger/transactions/outbox.js';
import { CALL_BYTES, ORDER_BYTES } from '../../../liquidity/data-fee.js';
import { SandboxGasPriceOracle__factory } from '../../../typechain-types/factories/mocks/SandboxGasPriceOracle__factory.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

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
