/** Prices for whoever has no wallet yet, and the orders of an owner. */
import { expect } from 'chai';
import { parseUnits, type Wallet } from 'ethers';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import type { OrderAnswer, SwapStack } from '../../support/swap-stack.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();

interface Price {
  blockNumber: number;
  sellAmount: string;
  buyAmount: string;
  minBuyAmount: string;
  feeAmount: string;
  priceImpactBps: number | null;
  route: { source: string; sellAmount: string; buyAmount: string }[];
}

interface Listed {
  orders: OrderAnswer[];
  next: string | null;
}

describe('prices and lists of orders', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack, taker } = await begin());
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    const path = (change: Record<string, string> = {}): string => {
      const query = { sellToken: stack.token('WETH'), buyToken: stack.token('USDC'), kind: 'sell', ...change };
      return `/price?${new URLSearchParams(query).toString()}`;
    };
    const rows = async (table: string): Promise<number> =>
      Number(((await stack.db.knex(table).count({ n: '*' }).first()) as { n: number | string }).n);

    it('is what a quote says at the same block, without an owner, a nonce or a row', async () => {
      const changes: Record<string, string>[] = [
        { sellAmountBeforeFee: wei('1') },
        { kind: 'buy', buyAmountAfterFee: '1000000000', slippageBps: '100' },
      ];
      for (const change of changes) {
        const { status, body, headers } = await stack.request<Price>('GET', path(change));
        expect(status).to.equal(200);
        expect(headers.get('cache-control')).to.equal('public, max-age=1');
        expect([await rows('swap_quotes'), await rows('swap_nonces')]).to.deep.equal([0, 0]);
        const { slippageBps, ...rest } = change;
        const wanted = { ...rest, ...(slippageBps === undefined ? {} : { slippageBps: Number(slippageBps) }) };
        const { quote } = await stack.quote(taker.address, wanted);
        const { sellAmount, buyAmount, minBuyAmount, feeAmount } = quote;
        expect(body).to.include({ sellAmount, buyAmount, minBuyAmount, feeAmount });
        expect(body.blockNumber).to.equal(await chain.provider.getBlockNumber());
        expect(body.route).to.have.length(1);
        expect(body.route[0]!.source).to.equal('own');
        for (const table of ['swap_quotes', 'swap_nonces']) await stack.db.knex(table).delete();
      }
    });

    it('has the fee of what is signed beside the order', async () => {
      const appData = `0x${'ab'.repeat(32)}`;
      const feeOf = async (change: Record<string, string>): Promise<string> =>
        (await stack.request<Price>('GET', path({ sellAmountBeforeFee: wei('1'), ...change }))).body.feeAmount;
      const { quote } = await stack.quote(taker.address, { sellAmountBeforeFee: wei('1'), appData });
      expect(await feeOf({ appData })).to.equal(quote.feeAmount);
      expect(await feeOf({ appData: `0x${'0'.repeat(64)}` }), 'the zero hash is none').to.equal(await feeOf({}));
      expect(BigInt(await feeOf({})) < BigInt(quote.feeAmount)).to.equal(true);
    });

    it('says how far from the middle of the market the route is', async () => {
      // Bids at 2,499.90 and asks at 2,500.10: less than half a basis point either way.
      const near = (await stack.request<Price>('GET', path({ sellAmountBeforeFee: wei('1') }))).body;
      expect(near.priceImpactBps).to.equal(0);
      await stack.keepers.order(chain.address('maker2'), [{ side: 'bid', priceTicks: 240_000n, sizeLots: 200_000n }]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
      const far = (await stack.request<Price>('GET', path({ sellAmountBeforeFee: wei('40') }))).body;
      expect(far.priceImpactBps).to.be.within(190, 210);
    });

    it('names what is wrong, and stops where quotes stop', async () => {
      const refused = (change: Record<string, string>) => stack.refused('GET', path(change), undefined);
      expect((await refused({}))[2]).to.contain('sellAmountBeforeFee');
      expect((await refused({ sellAmountBeforeFee: '1', slippageBps: '1e3' }))[2]).to.contain('slippageBps');
      expect((await refused({ sellAmountBeforeFee: wei('1'), chainId: '1' }))[2]).to.contain('chainId');
      expect((await refused({ sellAmountBeforeFee: wei('1'), buyToken: stack.token('WETH') }))[2]).to.contain('differ');
      expect((await refused({ sellAmountBeforeFee: wei('100000') })).slice(0, 2)).to.deep.equal([
        400,
        'INSUFFICIENT_LIQUIDITY',
      ]);
      stack.setReady(false);
      expect((await refused({ sellAmountBeforeFee: wei('1') })).slice(0, 2)).to.deep.equal([503, 'NOT_READY']);
    });

    it('and orders say their route, its impact, and once filled their makers and where to look', async () => {
      await stack.stop();
      ({ chain, stack, taker } = await begin({ explorerUrl: 'https://basescan.org/' }));
      await stack.makeMarket();
      const amount = { sellAmountBeforeFee: wei('3') };
      const { body: price } = await stack.request<Price>('GET', path(amount));
      const quote = await stack.quote(taker.address, amount);
      expect([quote.route, quote.priceImpactBps]).to.deep.equal([price.route, price.priceImpactBps]);
      const { orderId } = (await stack.submit(quote, taker)).body;
      const pending = await stack.order(orderId);
      expect(pending).to.deep.include({ makers: [], explorerUrl: null, route: quote.route });
      await stack.land();
      const order = await stack.order(orderId);
      expect(order.priceImpactBps).to.equal(quote.priceImpactBps);
      expect(order.explorerUrl).to.equal(`https://basescan.org/tx/${order.txHash}`);
      expect(order.makers).to.have.length(1);
      const [{ pair, fillSeq, decomposition, legs }] = order.makers as [OrderAnswer['makers'][0]];
      expect([pair, decomposition]).to.deep.equal(['WETH-USDC', `/v0/fills/${fillSeq}/decomposition?pair=WETH-USDC`]);
      expect(legs.map(({ maker }) => maker)).to.deep.equal([chain.address('maker1').toLowerCase()]);
      const sold = BigInt(order.executedSellAmount) - BigInt(quote.quote.feeAmount);
      expect(BigInt(legs[0]!.baseAmount), 'all of it is from this maker').to.equal(sold);
    });

    it("lists an owner's orders page by page, newest first, each once", async () => {
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) {
        const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei('0.1') });
        ids.unshift((await stack.submit(quote, taker)).body.orderId);
        stack.advance(1);
      }
      const seen: string[] = [];
      let next: string | null = '';
      for (let pages = 0; next !== null; pages++) {
        expect(pages).to.be.below(4);
        const query: string = next === '' ? '' : `&cursor=${next}`;
        const { status, body } = await stack.request<Listed>('GET', `/orders?owner=${taker.address}&limit=2${query}`);
        expect(status).to.equal(200);
        seen.push(...body.orders.map(({ orderId }) => orderId));
        next = body.next;
      }
      expect(seen).to.deep.equal(ids);
      const { body } = await stack.request<Listed>('GET', `/orders?owner=${taker.address}`);
      expect(body.orders[0]).to.deep.equal(await stack.order(ids[0]!));
      const none = await stack.request<Listed>('GET', `/orders?owner=${chain.address('taker1')}`);
      expect(none.body).to.deep.equal({ orders: [], next: null });
      for (const wrong of [
        '',
        '?owner=0x12',
        `?owner=${taker.address}&limit=51`,
        `?owner=${taker.address}&cursor=1'--`,
      ]) {
        expect((await stack.refused('GET', `/orders${wrong}`, undefined)).slice(0, 2)).to.deep.equal([
          400,
          'BAD_REQUEST',
        ]);
      }
    });

    it('lists many orders with as many statements as two', async () => {
      const submitted = async (): Promise<string> => {
        const quote = await stack.quote(taker.address, { sellAmountBeforeFee: wei('0.1') });
        stack.advance(1);
        return (await stack.submit(quote, taker)).body.orderId;
      };
      const ids: string[] = [];
      const filled = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i++) {
          ids.unshift(await submitted());
          await stack.land();
        }
      };
      const statements = async (limit: number): Promise<number> => {
        let count = 0;
        const note = (): void => void (count += 1);
        stack.db.knex.on('query', note);
        const { body } = await stack.request<Listed>('GET', `/orders?owner=${taker.address}&limit=${limit}`);
        stack.db.knex.off('query', note);
        expect(body.orders.map(({ orderId }) => orderId)).to.deep.equal(ids.slice(0, limit));
        for (const order of body.orders) expect(order).to.deep.equal(await stack.order(order.orderId));
        return count;
      };
      await filled(2);
      const ofFilled = await statements(2);
      await filled(3);
      expect(await statements(5), 'filled').to.equal(ofFilled);
      for (let i = 0; i < 2; i++) ids.unshift(await submitted());
      const ofPending = await statements(2);
      for (let i = 0; i < 6; i++) ids.unshift(await submitted());
      expect(await statements(8), 'pending').to.equal(ofPending);
      expect(await statements(13), 'both').to.be.at.most(ofFilled + ofPending);
    });
  });
});
