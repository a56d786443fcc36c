import { expect } from 'chai';
import { Contract, Interface, parseUnits, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import type { Rpc } from '../../../keepers/chain/rpc.js';
import { refusalOf } from '../../../keepers/executor/refusals.js';
import type { Writer } from '../../../ledger/types.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();
const ERC20 = ['function approve(address, uint256) returns (bool)'];
const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];

describe('reasons of refusals', () => {
  const settler = OrderSettler__factory.createInterface();

  it('are read from the errors of contracts, tokens and venues, also within a call of the settler', () => {
    const inner = new Interface(['error Error(string)', 'error InvalidNonce()', 'error InvalidSigner()']);
    const text = (reason: string) => inner.encodeErrorResult('Error', [reason]);
    const cases = [
      [settler.encodeErrorResult('InsufficientOutput', [1n, 2n]), 'PRICE_MOVED', false],
      [inner.encodeErrorResult('InvalidNonce'), 'NONCE_USED', false],
      [inner.encodeErrorResult('InvalidSigner'), 'INVALID_SIGNATURE', true],
      [text('TRANSFER_FROM_FAILED'), 'INSUFFICIENT_FUNDS', false],
      [settler.encodeErrorResult('CallFailed', [PERMIT2_ADDRESS, text('Too much requested')]), 'PRICE_MOVED', false],
      [text('something else'), 'REVERTED', false],
      ['0x12345678', 'REVERTED', false],
      ['0x', 'REVERTED', false],
    ] as const;
    for (const [data, code, isFinal] of cases) expect(refusalOf(data)).to.include({ code, isFinal });
  });
});

describe('executor', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack, taker } = await begin());
      await mineAndScan();
      await quoteMarket(249_990n);
    });

    afterEach(() => stack.stop());

    async function mineAndScan(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    let bids: number[] = [];

    /** Replaces the maker's 20 WETH of bids, and posts. */
    async function quoteMarket(priceTicks: bigint, sizeLots = 200_000n): Promise<void> {
      const side = 'bid' as const;
      bids = await stack.keepers.order(chain.address('maker1'), [{ side, priceTicks, sizeLots }], bids);
      await stack.keepers.poster.round();
      await mineAndScan();
    }

    async function submit(
      amount: string,
      change: object = {},
      owner = taker,
    ): Promise<{ orderId: string; quote: QuoteAnswer }> {
      const quote = await stack.quote(owner.address, { sellAmountBeforeFee: wei(amount), ...change });
      const { status, body } = await stack.submit(quote, owner);
      expect(status, JSON.stringify(body)).to.equal(200);
      return { orderId: body.orderId, quote };
    }

    const statusOf = async (orderId: string) => (await stack.order(orderId)).status;

    /** A transaction of the taker, who has no ETH. */
    async function asTaker(run: (signer: Wallet) => Promise<unknown>, isScanned = true): Promise<void> {
      await chain.provider.send('hardhat_setBalance', [taker.address, '0xde0b6b3a7640000']);
      await run(taker);
      await chain.mine();
      if (isScanned) await stack.keepers.watcher.scan();
    }

    const approve = (units: bigint) =>
      asTaker((signer) =>
        new Contract(stack.token('WETH'), ERC20, signer).getFunction('approve').send(PERMIT2_ADDRESS, units),
      );

    /** Mines a block after the order's last second. */
    async function passDeadline({ quote }: { quote: QuoteAnswer }): Promise<void> {
      await chain.provider.send('evm_setNextBlockTimestamp', [quote.quote.validTo + 1]);
      await mineAndScan();
    }

    /** How often the settler filled an order, by the chain itself. */
    async function fillsOnChain(): Promise<number> {
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.provider);
      return (await settler.queryFilter(settler.filters.OrderFilled())).length;
    }

    it('executes orders of many owners in one block, each once', async () => {
      const orders = [];
      for (const owner of await createOwners(chain, 'WETH', 20, parseUnits('0.1', 18))) {
        orders.push(await submit('0.1', {}, owner));
      }
      const before = await chain.provider.getBlockNumber();
      await stack.land();
      expect(await chain.provider.getBlockNumber()).to.equal(before + 1);
      for (const { orderId } of orders) expect(await statusOf(orderId)).to.equal('filled');
      expect(await fillsOnChain()).to.equal(20);
      await stack.land();
      expect(await fillsOnChain()).to.equal(20);
    });

    it('sends nothing twice when two executors look at the same order', async () => {
      const { orderId } = await submit('1');
      const old = stack.executor;
      const fresh = await stack.restartExecutor();
      await Promise.allSettled([old.round(), fresh.round(), old.round()]);
      await mineAndScan();
      await Promise.allSettled([old.round(), fresh.round()]);
      await mineAndScan();
      expect(await statusOf(orderId)).to.equal('filled');
      expect((await stack.order(orderId)).attempts).to.have.length(1);
      expect(await fillsOnChain()).to.equal(1);
    });

    it('waits while the market is below the limit, and expires with that reason', async () => {
      const order = await submit('2');
      await quoteMarket(245_000n);
      await stack.land();
      await stack.land();
      let answer = await stack.order(order.orderId);
      expect(answer).to.deep.include({ status: 'pending', executedBuyAmount: '0', txHash: null });
      expect(answer.reason?.code).to.equal('PRICE_MOVED');
      expect(answer.attempts.map(({ code }) => code)).to.deep.equal(['PRICE_MOVED']);
      await passDeadline(order);
      await stack.executor.round();
      answer = await stack.order(order.orderId);
      expect(answer).to.deep.include({ status: 'expired', executedSellAmount: '0' });
      expect(answer.reason?.code).to.equal('PRICE_MOVED');
      expect(await fillsOnChain()).to.equal(0);
    });

    it('waits while a token is in quarantine, executes when that is over, and expires when it is not in time', async () => {
      const { orderId } = await submit('0.1');
      stack.quarantine(stack.token('USDC'));
      await stack.executor.round();
      await mineAndScan();
      await stack.executor.round();
      const waiting = await stack.order(orderId);
      expect([waiting.status, stack.outbox.status().unminedCount]).to.deep.equal(['pending', 0]);
      expect(waiting.attempts.map(({ code }) => code)).to.deep.equal(['TOKEN_QUARANTINED']);
      stack.quarantine();
      await stack.land();
      expect(await statusOf(orderId)).to.equal('filled');
      const late = await submit('0.1');
      stack.quarantine(stack.token('WETH'));
      await stack.executor.round();
      await passDeadline(late);
      await stack.executor.round();
      const { status, reason } = await stack.order(late.orderId);
      expect([status, reason?.code]).to.deep.equal(['expired', 'TOKEN_QUARANTINED']);
      stack.quarantine();
    });

    it('executes when the market comes back', async () => {
      const { orderId, quote } = await submit('2');
      await quoteMarket(245_000n);
      await stack.land();
      await quoteMarket(249_990n);
      await stack.land();
      expect(await stack.order(orderId)).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
    });

    it('tries again after a transaction that others got ahead of', async () => {
      const [other] = await createOwners(chain, 'WETH', 1, parseUnits('15', 18));
      // The revert of a new account's first order would be all that is risked for it.
      await submit('0.1');
      await submit('0.1', {}, other);
      await stack.land();
      expect(await fillsOnChain()).to.equal(2);
      const orders = [await submit('14'), await submit('14', {}, other)];
      await stack.land();
      const first = await Promise.all(orders.map(({ orderId }) => stack.order(orderId)));
      expect(first.map(({ status }) => status)).to.have.members(['filled', 'pending']);
      const late = first.find(({ status }) => status === 'pending')!;
      expect(late.attempts[0]).to.include({ result: 'sent' });
      await stack.land();
      expect((await stack.order(late.orderId)).reason?.code).to.equal('INSUFFICIENT_LIQUIDITY');
      await quoteMarket(249_990n);
      await stack.land();
      const filled = await stack.order(late.orderId);
      expect(filled.status).to.equal('filled');
      expect(filled.attempts.map(({ result }) => result)).to.deep.equal(['sent', 'refused', 'sent']);
      expect(await fillsOnChain()).to.equal(4);
    });

    it('looks at new orders first, then at those it has not looked at for longest', async () => {
      await stack.stop();
      ({ stack } = await begin({}, { ordersPerRound: 2 }));
      await mineAndScan();
      bids = [];
      await quoteMarket(249_990n);
      const waiting = [];
      for (let i = 0; i < 4; i++) waiting.push(await submit('0.1', { slippageBps: 0 }));
      await quoteMarket(249_900n);
      for (let round = 0; round < 2; round++) await stack.land();
      const fresh = await submit('0.1');
      await stack.land();
      expect(await statusOf(fresh.orderId)).to.equal('filled');
      for (const { orderId } of waiting) expect((await stack.order(orderId)).reason?.code).to.equal('PRICE_MOVED');
      await passDeadline(waiting.at(-1)!);
      await stack.executor.round();
      await stack.executor.round();
      for (const { orderId } of waiting) expect(await statusOf(orderId)).to.equal('expired');
    });

    it('says so when the allowance is revoked, and goes on when it is back', async () => {
      const order = await submit('1');
      await approve(0n);
      await stack.land();
      expect((await stack.order(order.orderId)).reason?.code).to.equal('INSUFFICIENT_FUNDS');
      await approve(parseUnits('1', 18));
      await stack.land();
      expect(await statusOf(order.orderId)).to.equal('filled');
    });

    it('fails an order whose nonce its owner has invalidated, once the ledger has seen that block', async () => {
      const { orderId, quote } = await submit('1');
      const nonce = BigInt(quote.permit2.typedData.message.nonce);
      await asTaker(
        (signer) =>
          new Contract(PERMIT2_ADDRESS, PERMIT2, signer)
            .getFunction('invalidateUnorderedNonces')
            .send(nonce >> 8n, 1n << (nonce & 255n)),
        false,
      );
      await stack.executor.round();
      expect(await statusOf(orderId)).to.equal('pending');
      await stack.executor.round();
      expect(await statusOf(orderId), 'the block is not scanned yet').to.equal('pending');
      await mineAndScan();
      await stack.executor.round();
      const answer = await stack.order(orderId);
      expect(answer.status).to.equal('failed');
      expect(answer.reason?.code).to.equal('NONCE_USED');
    });

    it('expires an order that nobody executed', async () => {
      const order = await submit('1');
      stack.setReady(false);
      await stack.land();
      expect((await stack.order(order.orderId)).attempts).to.deep.equal([]);
      await passDeadline(order);
      await stack.executor.round();
      const answer = await stack.order(order.orderId);
      expect([answer.status, answer.reason?.code]).to.deep.equal(['expired', 'EXPIRED']);
    });

    it('never executes twice and ends right wherever it is killed', async function () {
      this.timeout(120_000);
      /** Fails at the k-th step that leaves the process, and at every later one. */
      const dying = (k: number) => {
        let steps = 0;
        const step = <A extends unknown[], R>(run: (...args: A) => Promise<R>) => {
          return (...args: A): Promise<R> => (++steps >= k ? Promise.reject(new Error('killed')) : run(...args));
        };
        return {
          rpc: (rpc: Rpc): Rpc => ({ ...rpc, call: step(rpc.call), batch: step(rpc.batch) }),
          writer: (writer: Writer): Writer => ({ ...writer, tx: step(writer.tx) as Writer['tx'] }),
          wasKilled: () => steps >= k,
        };
      };
      let filled = 0;
      for (let k = 1, killed = true; killed; k++) {
        await quoteMarket(249_990n);
        const { orderId, quote } = await submit('0.5');
        const spoilt = dying(k);
        const executor = await stack.restartExecutor(spoilt);
        for (let round = 0; round < 2; round++) {
          await executor.round().catch(() => undefined);
          await mineAndScan();
        }
        killed = spoilt.wasKilled();
        await stack.restartExecutor();
        for (let round = 0; round < 3 && (await statusOf(orderId)) === 'pending'; round++) await stack.land();
        const answer = await stack.order(orderId);
        expect(answer, `killed before step ${k}`).to.include({
          status: 'filled',
          executedBuyAmount: quote.quote.buyAmount,
        });
        filled += 1;
        expect(await fillsOnChain(), `killed before step ${k}`).to.equal(filled);
        if (k > 60) throw new Error('the executor takes more steps than expected');
      }
      expect(filled).to.be.above(8);
    });
  });
});
