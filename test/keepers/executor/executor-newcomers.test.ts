/** What owners are quoted who have spent little here: what executors send for them, and nothing else. */
import { expect } from 'chai';
import { Contract, MaxUint256, Transaction, parseUnits, type Wallet } from 'ethers';
import type { Hex } from '../../../core/types.js';
import type { ExecutorDeps } from '../../../keepers/executor/deps.js';
import { fillIn } from '../../../keepers/executor/permits.js';
import { toColumn } from '../../../ledger/db/columns.js';
import { listOutbox } from '../../../ledger/transactions/outbox.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { sellToPool } from '../../support/contracts/pool-router.js';
import {
  createOwners,
  startSwapStack,
  type OrderAnswer,
  type QuoteAnswer,
  type SwapStack,
} from '../../support/swap-stack.js';

/** Answers of ERC-1271 that any signature is valid. */
const AGREEABLE = '0x631626ba7e60e01b5f5260205ff3';
/** An approval of Permit2, and tokens sent to the account. */
const SETUP_GAS = 94_000n;
const weth = (amount: string): bigint => parseUnits(amount, 18);

forOneDatabase((name, open) =>
  describe(`owners who have spent little, on ${name}`, () => {
    let chain: ManualChain;
    let stack: SwapStack;
    let owner: Wallet;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(1, { pools: true });
    });

    after(() => chain?.close());

    beforeEach(async function () {
      this.timeout(60_000);
      await begin();
    });

    afterEach(() => stack.stop());

    /** A market of 20 WETH a side on our curve, better than the pool near its price, and an owner of 100 WETH. */
    async function begin(executor: Partial<ExecutorDeps> = {}, isOldSettler = false): Promise<void> {
      await chain.reset();
      stack = await startSwapStack(await open(), chain, {}, executor, isOldSettler);
      [owner] = (await createOwners(chain, 'WETH', 1, weth('100'))) as [Wallet];
      await stack.makeMarket();
    }

    const sale = (amount: string, routingPreference = 'auto'): Promise<QuoteAnswer> =>
      stack.quote(owner.address, { sellAmountBeforeFee: weth(amount).toString(), routingPreference });

    const request = (amount: string) => ({
      chainId: chain.manifest.chainId,
      from: owner.address,
      sellToken: stack.token('WETH'),
      buyToken: stack.token('USDC'),
      kind: 'sell',
      sellAmountBeforeFee: weth(amount).toString(),
      signingScheme: 'eip712',
    });

    /** Has a quote filled, as it was quoted. */
    async function fill(quote: QuoteAnswer): Promise<OrderAnswer> {
      const { status, body } = await stack.submit(quote, owner);
      expect(status, JSON.stringify(body)).to.equal(200);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
      expect(order.attempts.map(({ result }) => result)).to.deep.equal(['sent']);
      return order;
    }

    async function swapByHimself(): Promise<void> {
      const { target } = chain.entrypointAs('taker1');
      await chain.tokenAs('WETH', 'taker1').connect(owner).getFunction('approve').send(target, weth('1'));
      await chain.mine();
      const tokens = [stack.token('WETH'), stack.token('USDC')] as const;
      const entrypoint = chain.entrypointAs('taker1').connect(owner);
      await entrypoint.swap(...tokens, weth('0.01'), 0n, owner.address, MaxUint256, { gasLimit: 500_000n });
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    it('are quoted two venues for a large order, which is checked until their fills have paid for it', async () => {
      const isChecked = async ({ txHash }: OrderAnswer): Promise<boolean> =>
        fillIn((await chain.provider.getTransaction(txHash!))!.data as Hex).isChecked;
      const first = await sale('30');
      expect(first.route).to.have.lengthOf(2);
      expect(await isChecked(await fill(first))).to.equal(true);
      for (let i = 0; i < 2; i++) await fill(await sale('0.2'));
      await stack.makeMarket();
      const later = await sale('30');
      expect(later.route).to.have.lengthOf(2);
      expect(await isChecked(await fill(later)), 'three pay for it').to.equal(false);
    });

    it('are told a price that a quote keeps', async () => {
      const query = new URLSearchParams({
        sellToken: stack.token('WETH'),
        buyToken: stack.token('USDC'),
        kind: 'sell',
        sellAmountBeforeFee: weth('40').toString(),
      });
      const { body } = await stack.request<{ buyAmount: string; route: unknown[] }>(
        'GET',
        `/price?${query.toString()}`,
      );
      const { quote, route } = await sale('40');
      expect([body.buyAmount, body.route]).to.deep.equal([quote.buyAmount, route]);
    });

    it('with code are refused a quote until they have swapped twice by themselves', async () => {
      await chain.provider.send('hardhat_setCode', [owner.address, AGREEABLE]);
      const refusal = async () => (await stack.refused('POST', '/quote', request('1'))).slice(0, 2);
      expect(await refusal()).to.deep.equal([400, 'UNPROVEN_ACCOUNT']);
      for (const isEnough of [false, true]) {
        await chain.provider.send('hardhat_setCode', [owner.address, '0x']);
        await swapByHimself();
        await chain.provider.send('hardhat_setCode', [owner.address, AGREEABLE]);
        if (!isEnough) expect(await refusal()).to.deep.equal([400, 'UNPROVEN_ACCOUNT']);
      }
      await fill(await sale('1'));
    });

    it('hear of too little liquidity, not of their account, where there is none for anybody', async () => {
      const [status, code] = await stack.refused('POST', '/quote', {
        ...request('21'),
        routingPreference: 'onlyService',
      });
      expect([status, code]).to.deep.equal([400, 'INSUFFICIENT_LIQUIDITY']);
    });

    it('cost the service a bounded amount, once, by a trade in a pool that spoils their order', async () => {
      await stack.keepers.order(chain.address('maker1'), [], [1, 2]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
      const router = chain.manifest.contracts['uniswapV3Router']!;
      const tokenIn = stack.token('WETH');
      const approval = await new Contract(tokenIn, ['function approve(address, uint256)'], chain.wallet('taker2'))
        .getFunction('approve')
        .send(router, MaxUint256);
      await chain.mine();
      await approval.wait();
      const quote = await stack.quote(owner.address, { sellAmountBeforeFee: weth('1').toString(), slippageBps: 0 });
      expect(quote.route.map(({ source }) => source)).not.to.include('own');
      const { body } = await stack.submit(quote, owner);
      await stack.executor.round();
      const trade = { tokenIn, tokenOut: stack.token('USDC'), amountIn: 10n ** 15n };
      const spoiling = await sellToPool(chain, 'taker2', trade, {
        gasLimit: 500_000n,
        ...{ gasPrice: parseUnits('40', 'gwei') },
      });
      await chain.mine();
      await stack.keepers.watcher.scan();
      const [hash] = (await stack.order(body.orderId)).attempts.flatMap(({ txHashes }) => txHashes);
      const receipt = (await chain.provider.getTransactionReceipt(hash!))!;
      expect(receipt.status).to.equal(0);
      const spoilt = (await spoiling.wait())!.gasUsed;
      expect(receipt.gasUsed < SETUP_GAS, String(receipt.gasUsed)).to.equal(true);
      expect(spoilt >= 100_000n, String(spoilt)).to.equal(true);
      await stack.executor.round();
      const refused = await stack.refused('POST', '/quote', { ...request('0.1') });
      expect(refused.slice(0, 2)).to.deep.equal([400, 'TOO_MANY_REVERTS']);
    });

    /** Sales over the pool alone, with no slippage allowed, each of a new owner's; the orders' ids. */
    async function saleOfEach(count: number): Promise<string[]> {
      await stack.keepers.order(chain.address('maker1'), [], [1, 2]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
      const weths = chain.tokenAs('WETH', 'taker1');
      await (weths.connect(owner) as Contract).getFunction('transfer').send(chain.address('taker1'), weth('50'));
      await chain.mine();
      const owners = await createOwners(chain, 'WETH', count, weth('2'));
      const orders: string[] = [];
      for (const one of owners) {
        const quote = await stack.quote(one.address, { sellAmountBeforeFee: weth('1').toString(), slippageBps: 0 });
        const { status, body } = await stack.submit(quote, one);
        expect(status, JSON.stringify(body)).to.equal(200);
        orders.push(body.orderId);
      }
      return orders;
    }

    const attemptsOf = async (orders: readonly string[]) =>
      (await Promise.all(orders.map((id) => stack.order(id)))).flatMap(({ attempts }) => attempts);

    it('take turns over pools, all of them together, so that the fill of one burns nothing of the others', async () => {
      const orders = await saleOfEach(4);
      for (let block = 0; block < 3; block++) {
        await stack.executor.round();
        await stack.executor.round();
        expect((await attemptsOf(orders)).filter(({ result }) => result === 'sent')).to.have.lengthOf(1);
        await chain.mine();
        await stack.keepers.watcher.scan();
      }
      const statuses = (await Promise.all(orders.map((id) => stack.order(id)))).map(({ status }) => status);
      expect(statuses.sort()).to.deep.equal(['filled', 'pending', 'pending', 'pending']);
      expect(await stack.db.knex('swap_reverts').select('tx_hash')).to.deep.equal([]);
    });

    it('burn no more in an hour than is set, whoever they are, and hear until when', async () => {
      await stack.stop();
      await begin({ newcomersGasPerHour: 500_000n });
      const orders = await saleOfEach(2);
      // As if another newcomer's had reverted.
      const row = {
        tx_hash: `0x${'1'.repeat(64)}` as const,
        order_id: orders[0]!,
        owner: `0x${'2'.repeat(40)}` as const,
      };
      const time_ms = Date.now();
      await stack.db.knex('swap_reverts').insert({ ...row, block_number: 1, gas_used: toColumn(301_000n), time_ms });
      await stack.executor.round();
      const attempts = await attemptsOf(orders);
      expect(attempts.map(({ result, code }) => [result, code])).to.deep.equal([
        ['refused', 'UNPROVEN_ACCOUNT'],
        ['refused', 'UNPROVEN_ACCOUNT'],
      ]);
      const untilText = new Date(time_ms + 3_600_000).toISOString();
      expect((await stack.order(orders[0]!)).reason!.message).to.include(untilText);
      // Whoever asks now hears it before it signs; who has swapped here, or asks when the hour is over, does not.
      const ask = (from: string) =>
        stack.refused('POST', '/quote', {
          ...{ chainId: chain.manifest.chainId, from, signingScheme: 'eip712', kind: 'sell' },
          ...{
            sellToken: stack.token('WETH'),
            buyToken: stack.token('USDC'),
            sellAmountBeforeFee: '100000000000000000',
          },
        });
      const [status, code, message] = await ask(`0x${'3'.repeat(40)}`);
      expect([status, code]).to.deep.equal([400, 'UNPROVEN_ACCOUNT']);
      expect(message).to.include(untilText);
      stack.advance(3_600_001);
      await stack.quote(`0x${'3'.repeat(40)}`, { sellAmountBeforeFee: '100000000000000000' });
    });

    it('with an older settler get one venue, splits once their fills have paid for it, and nothing that is checked', async () => {
      await stack.stop();
      await begin({}, true);
      const first = await sale('40');
      expect(first.route).to.have.lengthOf(1);
      await fill(first);
      expect((await sale('30')).route, 'one fill does not pay for it').to.have.lengthOf(1);
      await fill(await sale('0.2'));
      const later = await sale('30');
      expect(later.route).to.have.lengthOf(2);
      await fill(later);
      const sent = await listOutbox(stack.db.knex, { signer: stack.outbox.signer, limit: 3 });
      const calls = sent.map(({ raw }) => fillIn(Transaction.from(raw).data as Hex).isChecked);
      expect(calls).to.deep.equal([false, false, false]);
    });

    it('with an older settler get splits with no more gas than their credit covers', async () => {
      const newAccountGas = 404_000n;
      await stack.stop();
      await begin({ newAccountGas }, true);
      const quote = await sale('40');
      expect(quote.route).to.have.lengthOf(2);
      await fill(quote);
      const [sent] = await listOutbox(stack.db.knex, { signer: stack.outbox.signer, limit: 1 });
      const { gasLimit } = Transaction.from(sent!.raw);
      expect(gasLimit).to.equal(newAccountGas);
    });
  }),
);
