/**
 * No answer of the swap API is a constant where the service knows better: every field that is the same in all states of this test is listed, with the
 * reason. Every endpoint of it is asked: a new one that is not fails.
 */
import { expect } from 'chai';
import { parseUnits, type Wallet } from 'ethers';
import { cancellationTypedData } from '../../../core/swap/typed-data.js';
import type { Address } from '../../../core/types.js';
import { SWAP_ENDPOINTS } from '../../../server/swap/endpoints.js';
import { CONSTANT_SWAP_ANSWERS } from '../../support/api/constant-answers.js';
import { constantsOf, note, type Seen } from '../../support/api/seen-fields.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import {
  createOwners,
  signApproval,
  signQuote,
  startSwapStack,
  type QuoteAnswer,
  type SwapStack,
} from '../../support/swap-stack.js';

const weth = (amount: string): string => parseUnits(amount, 18).toString();
const usdc = (amount: string): string => parseUnits(amount, 6).toString();

forOneDatabase((_name, open) =>
  describe('answers of the swap API that never change', () => {
    const seen: Seen = new Map();
    let chain: ManualChain;
    let stack: SwapStack;
    let owners: [Wallet, Wallet];

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(1, { pools: true });
    });

    after(() => chain?.close());

    beforeEach(async function () {
      this.timeout(60_000);
      seen.clear();
      await chain.reset();
      stack = await startSwapStack(await open(), chain, { explorerUrl: 'https://basescan.org/' });
      owners = (await createOwners(chain, 'WETH', 2, parseUnits('50', 18))) as [Wallet, Wallet];
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    /** Asks an endpoint by its path in the table, and notes what it answers. */
    async function ask<T>(method: string, path: string, { at = path, body }: { at?: string; body?: object } = {}) {
      const answer = await stack.request<T>(method.toUpperCase(), at, body);
      expect(answer.status, `${method} ${at}: ${JSON.stringify(answer.body)}`).to.equal(200);
      note(seen, `${method} ${path}`, answer.body);
      return answer.body;
    }

    const quoteOf = (from: string, change: object): Promise<QuoteAnswer> =>
      ask('post', '/quote', {
        body: {
          chainId: chain.manifest.chainId,
          from,
          sellToken: stack.token('WETH'),
          buyToken: stack.token('USDC'),
          kind: 'sell',
          signingScheme: 'eip712',
          ...change,
        },
      });

    const buysWeth = () => ({ sellToken: stack.token('USDC'), buyToken: stack.token('WETH') });

    async function submit(quote: QuoteAnswer, owner: Wallet, extra: object = {}): Promise<string> {
      const body = { quoteId: quote.id, signature: await signQuote(quote, owner), ...extra };
      return (await ask<{ orderId: string }>('post', '/orders', { body })).orderId;
    }

    async function cancel(orderId: string, owner: Wallet): Promise<void> {
      const settler = chain.manifest.contracts['orderSettler']!.toLowerCase() as Address;
      const { domain, types, message } = cancellationTypedData(orderId, { chainId: chain.manifest.chainId, settler });
      const { EIP712Domain: _, ...rest } = types;
      const signature = await owner.signTypedData(domain, rest, message);
      await ask('delete', '/orders/{orderId}', { at: `/orders/${orderId}`, body: { signature } });
    }

    const places: Record<'ask' | 'bid', number[]> = { ask: [], bid: [] };
    /** Has a second maker quote so many cents dearer than the first one's bids and asks, in the place of what it quoted. */
    async function quoteMarket(cents: bigint): Promise<void> {
      for (const [side, priceTicks] of [
        ['bid', 249_991n + cents],
        ['ask', 250_008n + cents],
      ] as const)
        places[side] = await stack.keepers.order(
          chain.address('maker2'),
          [{ side, priceTicks, sizeLots: 20_000n }],
          places[side],
        );
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    const orders: string[] = [];
    async function look(): Promise<void> {
      for (const orderId of orders) await ask('get', '/orders/{orderId}', { at: `/orders/${orderId}` });
      for (const owner of [chain.wallet('taker1'), ...owners])
        for (const query of ['', '&limit=1'])
          await ask('get', '/orders', { at: `/orders?owner=${owner.address}${query}` });
    }

    async function price(change: Record<string, string>): Promise<void> {
      const query = { sellToken: stack.token('WETH'), buyToken: stack.token('USDC'), kind: 'sell', ...change };
      await ask('get', '/price', { at: `/price?${new URLSearchParams(query).toString()}` });
    }

    it('are those that are listed, each with its reason', async function () {
      this.timeout(120_000);
      const [one, other] = owners;
      await ask('get', '/tokens');
      await look();
      await price({ sellAmountBeforeFee: weth('1') });
      await price({ ...buysWeth(), kind: 'buy', buyAmountAfterFee: weth('2') });

      // Filled by our curve: sold by one, with a client order id that is sent twice, and bought for both, who never approved USDC.
      const sale = await quoteOf(one.address, { sellAmountBeforeFee: weth('2') });
      orders.push(await submit(sale, one, { clientOrderId: 'mine' }));
      await look();
      for (const [buyer, dearer] of [
        [other, 0n],
        [one, 5n],
      ] as const) {
        await chain.tokenAs('USDC', 'taker1').getFunction('transfer').send(buyer.address, usdc('9000'));
        await quoteMarket(dearer);
        // Two quotes of one second have the same deadline.
        stack.advance(2_000);
        const bought = await quoteOf(buyer.address, {
          ...buysWeth(),
          ...{ kind: 'buy', buyAmountAfterFee: weth('1'), receiver: one.address, slippageBps: 100 },
        });
        orders.push(await submit(bought, buyer, { approvalSignature: await signApproval(bought, buyer) }));
        await stack.land();
        await stack.land();
        await look();
      }

      await submit(sale, one, { clientOrderId: 'mine' });

      // By a pool; then one whose owner has spent its tokens elsewhere, until it expires, and two that are taken back, one of them a limit order.
      orders.push(await submit(await quoteOf(one.address, { sellAmountBeforeFee: weth('30') }), one));
      await price({ sellAmountBeforeFee: weth('30') });
      await stack.land();
      for (const owner of owners) {
        const waits = owner === one ? { orderClass: 'limit', minBuyAmount: usdc('3000') } : {};
        const back = await submit(await quoteOf(owner.address, { sellAmountBeforeFee: weth('0.5'), ...waits }), owner);
        orders.push(back);
        await cancel(back, owner);
      }
      const late = await quoteOf(other.address, { sellAmountBeforeFee: weth('0.5') });
      orders.push(await submit(late, other));
      const spent = await stack.balanceOf('WETH', other.address);
      const token = chain.tokenAs('WETH', 'taker1').connect(other);
      await token.getFunction('transfer').send(chain.address('taker1'), spent, { gasLimit: 100_000n });
      await chain.mine();
      await stack.land();
      await look();
      await chain.provider.send('evm_setNextBlockTimestamp', [late.quote.validTo + 1]);
      await stack.land();
      await stack.land();
      await look();

      const asked = [...new Set([...seen.keys()].map((path) => /^\w+ [^.[]+/.exec(path)![0]))].sort();
      const served = SWAP_ENDPOINTS.map(({ method, path }) => `${method} ${path.replace('/api/v1', '')}`);
      expect(asked, 'every endpoint').to.deep.equal(served.sort());
      const constants = constantsOf(seen);
      expect(Object.keys(constants).sort(), JSON.stringify(constants, null, 1)).to.deep.equal(
        Object.values(CONSTANT_SWAP_ANSWERS).flat().sort(),
      );
    });
  }),
);
