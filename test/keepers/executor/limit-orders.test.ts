/** Orders that wait for their price. */
import { expect } from 'chai';
import type { Wallet } from 'ethers';
import { parseEther, parseUnits, toBeHex, type Contract } from 'ethers';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { cancellationTypedData } from '../../../core/swap/typed-data.js';
import type { Address } from '../../../core/types.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import type { Rpc } from '../../../keepers/chain/rpc.js';
import { createTurns } from '../../../keepers/executor/turns.js';
import { listOutbox } from '../../../ledger/transactions/outbox.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import { forEachDatabase } from '../../support/db.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { forksOf } from '../../support/nodes/fork.js';
import { createOwners, type ErrorAnswer, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const ONE = parseEther('1');
/** Above the best bid of 2,499.90. */
const LIMIT = parseUnits('2500', 6);
const DAY_SEC = 86_400;
const BALANCE_OF = '0x70a08231';

describe('limit orders', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    /** How far the executor's clock for intervals is ahead. */
    let monotonicAheadMs = 0;

    beforeEach(async function () {
      this.timeout(60_000);
      monotonicAheadMs = 0;
      ({ chain, stack, taker } = await begin({}, { monotonicMs: () => Date.now() + monotonicAheadMs }));
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    function advance(ms: number): void {
      stack.advance(ms);
      monotonicAheadMs += ms;
    }

    const nowSec = (): number => Math.floor(Date.now() / 1_000);

    /** Sells a WETH on our curve for 2,500 USDC at least, unless told otherwise. */
    const sale = (change: object = {}, from = taker.address): Promise<QuoteAnswer> =>
      stack.quote(from, {
        orderClass: 'limit',
        sellAmountBeforeFee: ONE.toString(),
        minBuyAmount: LIMIT.toString(),
        routingPreference: 'onlyService',
        ...change,
      });

    async function submitted(quote: QuoteAnswer, signer = taker): Promise<string> {
      const { status, body } = await stack.submit(quote, signer);
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.orderId;
    }

    /** A bid above the limit, or an ask below what a purchase would pay. */
    async function improve(side: 'bid' | 'ask', priceTicks: bigint): Promise<void> {
      await stack.keepers.order(chain.address('maker1'), [{ side, priceTicks, sizeLots: 100_000n }]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function transfer(from: Wallet, to: string, units: bigint): Promise<void> {
      const token = chain.tokenAs('WETH', 'taker1').connect(from) as Contract;
      await token.getFunction('transfer').send(to, units, { gasLimit: 100_000n });
      await chain.mine();
    }

    const told = async (orderId: string) => {
      const { status, reason, attempts } = await stack.order(orderId);
      return [status, reason?.code, attempts.length];
    };

    it('wait until the market brings what was signed, and take the fee of then', async () => {
      const quote = await sale();
      const { orderClass, minBuyAmount, buyAmount, sellAmount, validTo } = quote.quote;
      expect([orderClass, minBuyAmount, buyAmount, sellAmount]).to.deep.equal([
        'limit',
        `${LIMIT}`,
        `${LIMIT}`,
        `${ONE}`,
      ]);
      expect(validTo).to.be.closeTo(nowSec() + DAY_SEC, 60);
      const orderId = await submitted(quote);
      for (let i = 0; i < 3; i++) await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'LIMIT_NOT_REACHED', 1]);

      const dearer = (await chain.provider.getBlock('latest'))!.baseFeePerGas! * 2n;
      await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [toBeHex(dearer).replace(/^0x0+/, '0x')]);
      await improve('bid', 250_009n);
      const before = await stack.balanceOf('USDC', taker.address);
      await stack.land();
      const filled = await stack.order(orderId);
      expect([filled.status, filled.reason, filled.orderClass]).to.deep.equal(['filled', null, 'limit']);
      const got = (await stack.balanceOf('USDC', taker.address)) - before;
      expect(got).to.equal(BigInt(filled.executedBuyAmount));
      // The whole better price, less the fee.
      expect(got > LIMIT && got <= parseUnits('2500.09', 6), String(got)).to.equal(true);
      const settled = (await stack.db.knex('settled_orders').first())!;
      expect(BigInt(settled.fee_units) > BigInt(quote.quote.feeAmount)).to.equal(true);
    });

    it('buy an exact amount once it costs no more than was signed', async () => {
      const most = parseEther('1');
      const quote = await stack.quote(taker.address, {
        orderClass: 'limit',
        kind: 'buy',
        buyAmountAfterFee: LIMIT.toString(),
        maxSellAmount: most.toString(),
        routingPreference: 'onlyService',
      });
      expect([quote.quote.sellAmount, quote.quote.buyAmount]).to.deep.equal([`${most}`, `${LIMIT}`]);
      const orderId = await submitted(quote);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'LIMIT_NOT_REACHED', 1]);
      await improve('bid', 250_005n);
      const before = await stack.balanceOf('WETH', taker.address);
      await stack.land();
      const { status, executedBuyAmount, executedSellAmount } = await stack.order(orderId);
      expect([status, executedBuyAmount]).to.deep.equal(['filled', `${LIMIT}`]);
      const paid = before - (await stack.balanceOf('WETH', taker.address));
      expect(paid).to.equal(BigInt(executedSellAmount));
      expect(paid < most).to.equal(true);
    });

    it('are not executed for a wei less: the fee counts', async () => {
      const price = parseUnits('2500.05', 6);
      const orderId = await submitted(await sale({ minBuyAmount: price.toString() }));
      await improve('bid', 250_005n);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'LIMIT_NOT_REACHED', 1]);
    });

    it('that lack funds say so, go on when those are back, and end after an hour', async () => {
      const [owner, friend] = (await createOwners(chain, 'WETH', 2, ONE)) as [Wallet, Wallet];
      const orderId = await submitted(await sale({}, owner.address), owner);
      await transfer(owner, friend.address, ONE);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'INSUFFICIENT_FUNDS', 1]);
      await transfer(friend, owner.address, ONE);
      advance(61_000);
      await stack.land();
      expect(await told(orderId), 'one row, however often it changes').to.deep.equal([
        'pending',
        'LIMIT_NOT_REACHED',
        1,
      ]);
      await transfer(owner, friend.address, ONE);
      advance(61_000);
      await stack.land();
      advance(3_540_000);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'INSUFFICIENT_FUNDS', 1]);
      advance(61_000);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['failed', 'INSUFFICIENT_FUNDS', 1]);
    });

    /** The executor asks three endpoints from now on, the first of which says that nobody has anything of any token. */
    async function withLiar(): Promise<void> {
      const nothing = toBeHex(0, 32);
      const isBalance = ({ params }: { params?: unknown[] }): boolean =>
        String((params?.[0] as { data?: string } | undefined)?.data).startsWith(BALANCE_OF);
      const lying = (rpc: Rpc): Rpc => ({
        ...rpc,
        call: async (method, params) => (isBalance({ params }) ? nothing : rpc.call(method, params)),
        batch: async (requests) =>
          (await rpc.batch(requests)).map((answer, i) => (isBalance(requests[i]!) ? nothing : answer)),
      });
      const logger = pino({ level: 'silent' });
      await stack.restartExecutor({
        rpc: (rpc) =>
          createRpcPool(['liar', 'b', 'c'], {
            nowMs: () => Date.now(),
            logger,
            connect: (name) => ({ ...(name === 'liar' ? lying(rpc) : rpc), name }),
          }),
      });
    }

    it('are neither ended nor held up by one endpoint that says that their owners have no funds', async () => {
      const orderId = await submitted(await sale());
      const dearId = await submitted(await sale({ minBuyAmount: parseUnits('2600', 6).toString() }));
      await withLiar();
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'LIMIT_NOT_REACHED', 1]);
      await improve('bid', 250_005n);
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
      for (const ms of [61_000, 3_540_000, 61_000]) {
        advance(ms);
        await stack.land();
      }
      expect(await told(dearId)).to.deep.equal(['pending', 'LIMIT_NOT_REACHED', 1]);
    });

    it('are sent for two minutes at a time', async () => {
      const orderId = await submitted(await sale());
      await improve('bid', 250_005n);
      await stack.executor.round();
      const [row] = await listOutbox(stack.db.knex, { signer: stack.outbox.signer, limit: 10 });
      expect(row?.validUntilSec).to.be.closeTo(nowSec() + 120, 30);
      await chain.mine();
      await stack.keepers.watcher.scan();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('end at their own time, with the reason', async () => {
      const orderId = await submitted(await sale({ validTo: nowSec() + 90 }));
      await stack.land();
      await chain.provider.send('evm_increaseTime', [600]);
      stack.advance(600_000);
      await stack.land();
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['expired', 'LIMIT_NOT_REACHED', 1]);
    });

    it('wait beside orders for now, which are executed as ever', async () => {
      const waiting = await submitted(await sale());
      const quote = await stack.quote(taker.address, { sellAmountBeforeFee: ONE.toString() });
      const orderId = await submitted(quote);
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
      expect((await stack.order(waiting)).status).to.equal('pending');
    });

    it('are refused where they make no sense, each problem named', async () => {
      const base = { chainId: chain.manifest.chainId, from: taker.address, signingScheme: 'eip712' };
      const pair = { sellToken: stack.token('WETH'), buyToken: stack.token('USDC') };
      const asked = { ...base, ...pair, kind: 'sell', sellAmountBeforeFee: `${ONE}` };
      const limit = { ...asked, orderClass: 'limit', minBuyAmount: `${LIMIT}` };
      const cases: [object, RegExp][] = [
        [{ ...asked, orderClass: 'limit' }, /minBuyAmount: required/],
        [{ ...limit, maxSellAmount: '1' }, /maxSellAmount: is for limit orders of kind 'buy'/],
        [{ ...asked, minBuyAmount: '1' }, /minBuyAmount: is for limit orders/],
        [{ ...asked, validTo: nowSec() + 600 }, /validTo: is for limit orders/],
        [{ ...limit, validTo: nowSec() + 10 }, /validTo: must be 60 seconds to 30 days/],
        [{ ...limit, validTo: nowSec() + 31 * DAY_SEC }, /validTo: must be 60 seconds to 30 days/],
        [{ ...limit, sellAmountBeforeFee: '1000000000000' }, /too little for a limit order/],
      ];
      for (const [body, message] of cases) {
        const [status, code, text] = await stack.refused('POST', '/quote', body);
        expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
        expect(text).to.match(message);
      }
      expect((await sale({ validTo: nowSec() + 30 * DAY_SEC - 5 })).quote.validTo).to.be.greaterThan(nowSec());
    });

    it('are two of an owner that has not traded, ten of others, and 500 and 2,000 in all', async () => {
      const small = { sellAmountBeforeFee: `${ONE / 100n}`, minBuyAmount: `${LIMIT / 100n}` };
      const refused = async (owner: Wallet): Promise<[number, string]> => {
        const { status, body } = await stack.submit(await sale(small, owner.address), owner);
        return [status, JSON.stringify(body)];
      };
      for (let i = 0; i < 2; i++) await submitted(await sale(small));
      expect(await refused(taker)).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && text.includes('may have 2 at a time'),
      );
      await submitted(await stack.quote(taker.address, { sellAmountBeforeFee: ONE.toString() }));
      await stack.land();
      for (let i = 2; i < 9; i++) await submitted(await sale(small));

      const { knex } = stack.db;
      const [quote] = await knex('swap_quotes').limit(1);
      const [order] = await knex('swap_orders').limit(1);
      const [pending] = await knex('swap_pending').where({ is_limit: 1 }).limit(1);
      const add = async (count: number): Promise<void> => {
        const rows = Array.from({ length: count }, () => ({
          id: randomUUID(),
          owner: `0x${randomUUID().replaceAll('-', '').padEnd(40, '0')}`,
        }));
        const of = (make: (row: (typeof rows)[number]) => object): object[] => rows.map(make);
        await knex.batchInsert(
          'swap_quotes',
          of(({ id, owner }) => ({ ...quote!, id, owner })),
          50,
        );
        await knex.batchInsert(
          'swap_orders',
          of(({ id, owner }) => ({ ...order!, id, owner, quote_id: id, client_order_id: null })),
          50,
        );
        await knex.batchInsert(
          'swap_pending',
          of(({ id, owner }) => ({ ...pending!, order_id: id, owner })),
          50,
        );
      };
      await add(500);
      const [other] = (await createOwners(chain, 'WETH', 1, ONE)) as [Wallet];
      expect(await refused(other)).to.satisfy(
        ([status, text]: [number, string]) => status === 503 && text.includes('have not traded here'),
      );
      await submitted(await sale(small));
      expect(await refused(taker)).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && text.includes('has 10 pending ones'),
      );
      await add(1_490);
      expect(await refused(taker)).to.satisfy(
        ([status, text]: [number, string]) => status === 503 && text.includes('TOO_MANY_LIMIT_ORDERS'),
      );
    }).timeout(120_000);

    it('go after orders for now, however long they have waited', async () => {
      const [other] = (await createOwners(chain, 'WETH', 1, ONE)) as [Wallet];
      const waiting = await submitted(await sale());
      await improve('bid', 250_005n);
      const quoted = await submitted(await stack.quote(other.address, { sellAmountBeforeFee: `${ONE}` }), other);
      await stack.executor.round();
      const rows = await listOutbox(stack.db.knex, { signer: stack.outbox.signer, limit: 10 });
      const keys = [...rows].sort((a, b) => a.nonce - b.nonce).map(({ txKey }) => txKey);
      expect(keys).to.deep.equal([`order:${quoted}:1`, `order:${waiting}:1`]);
    });

    it('rest for a minute when the contracts refuse what the market reaches', async () => {
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.wallet('owner'));
      const allow = async (isAllowed: boolean): Promise<void> => {
        await settler.setExecutor(chain.address('executor'), isAllowed, { gasLimit: 100_000n });
        await chain.mine();
        await stack.keepers.watcher.scan();
      };
      const orderId = await submitted(await sale());
      await improve('bid', 250_005n);
      await allow(false);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'NOT_EXECUTOR', 1]);
      await allow(true);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'NOT_EXECUTOR', 1]);
      monotonicAheadMs = 61_000;
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('are sent so often in a day, and again a day later', async () => {
      const orderId = await submitted(await sale());
      await improve('bid', 250_005n);
      const rows = Array.from({ length: 5 }, (_, i) => ({
        ...{ order_id: orderId, attempt_no: i + 1, time_ms: Date.now(), result: 'sent' as const },
        ...{ tx_key: `order:${orderId}:${i + 1}`, code: null, message: null, on_curve: 1 },
      }));
      await stack.db.knex('swap_attempts').insert(rows);
      await stack.land();
      expect(await told(orderId)).to.deep.equal(['pending', 'TOO_MANY_ATTEMPTS', 6]);
      await stack.db
        .knex('swap_attempts')
        .where({ order_id: orderId })
        .update({ time_ms: Date.now() - 86_400_001 });
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('are cancelled while nothing of them can fill, after a transaction that reverted too', async () => {
      const [owner] = (await createOwners(chain, 'WETH', 1, ONE)) as [Wallet];
      const orderId = await submitted(await sale({}, owner.address), owner);
      const settler = chain.manifest.contracts['orderSettler']!.toLowerCase() as Address;
      const { domain, types, message } = cancellationTypedData(orderId, { chainId: chain.manifest.chainId, settler });
      const { EIP712Domain: _, ...rest } = types;
      const signature = await owner.signTypedData(domain, rest, message);
      const cancel = async (): Promise<[number, string]> => {
        const { status, body } = await stack.request<{ status: string } & ErrorAnswer>('DELETE', `/orders/${orderId}`, {
          signature,
        });
        return [status, body.status ?? body.error.code];
      };
      await improve('bid', 250_005n);
      const forks = forksOf(chain, stack.keepers);
      const mark = await forks.mark();
      await stack.executor.round();
      expect(await cancel()).to.deep.equal([409, 'ORDER_SENT']);
      // In the same block, ahead of what was sent.
      const token = chain.tokenAs('WETH', 'taker1').connect(owner) as Contract;
      const first = { gasLimit: 100_000n, gasPrice: parseUnits('40', 'gwei') };
      await token.getFunction('transfer').send(chain.address('taker1'), ONE, first);
      await chain.mine();
      await stack.keepers.watcher.scan();
      expect(await cancel(), 'how it ended is not known yet').to.deep.equal([409, 'ORDER_SENT']);
      await stack.land();
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('pending');
      expect(await cancel()).to.deep.equal([200, 'failed']);
      expect((await stack.order(orderId)).reason?.code).to.equal('CANCELLED');

      // The block in which it reverted is lost, and what the owner sold there with it: the same transaction would fill the order now.
      await forks.fork(mark);
      await stack.executor.round();
      await chain.mine();
      const contract = OrderSettler__factory.connect(settler, chain.provider);
      const filled = await contract.queryFilter(contract.filters.OrderFilled(owner.address), 0);
      expect(filled.length, 'fills of an order that was cancelled').to.equal(0);
      const executor = chain.address('executor');
      const [last] = await listOutbox(stack.db.knex, { signer: executor, limit: 1 });
      const used = await chain.provider.getTransactionCount(executor);
      expect([used, last?.to.toLowerCase()], 'its nonce blocks no other order').to.deep.equal([
        last!.nonce + 1,
        executor,
      ]);
    });
  }, forEachDatabase);

  it('take turns beside others: new ones first, then the longest waiting, eight of an owner', () => {
    const turns = createTurns();
    const listed = Array.from({ length: 12 }, (_, i): { orderId: string; owner: Address } => ({
      orderId: String(i),
      owner: `0x${(i < 10 ? '1' : '2').repeat(40)}`,
    }));
    const round = (most: number): string[] => {
      turns.begin();
      return turns.select(listed, most);
    };
    const first = round(9);
    expect(first).to.deep.equal(['0', '1', '2', '3', '4', '5', '6', '7', '10']);
    expect(round(9), 'none of them was looked at').to.deep.equal(first);
    first.forEach((id) => turns.note(id));
    expect(round(9)).to.deep.equal(['8', '9', '11', '0', '1', '2', '3', '4', '5']);
    turns.keep(new Set(['11']));
    expect(round(2)).to.deep.equal(['0', '1']);
  });
});
