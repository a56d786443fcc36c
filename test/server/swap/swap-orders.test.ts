/** What the swap API takes for a signature over a quote, and what it says of orders; quotes are in swap-api.test.ts. */
import { expect } from 'chai';
import { Contract, Signature, Wallet, concat, parseUnits, toBeHex } from 'ethers';
import type { Address, Hex } from '../../../core/types.js';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { mined } from '../../../deploy/transactions.js';
import { SmartAccount__factory } from '../../../typechain-types/factories/mocks/SmartAccount__factory.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { signQuote, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();
const ERC20 = [
  'function approve(address, uint256) returns (bool)',
  'function transfer(address, uint256) returns (bool)',
];
const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
const ETHER_IN_HEX = '0xde0b6b3a7640000';

describe('swap API', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    beforeEach(async () => {
      // An operator who lets accounts with code begin with an order, which costs more than a new account has spent.
      ({ chain, stack, taker } = await begin({}, { newContractGas: 400_000n }));
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    const refused: SwapStack['refused'] = (...sent) => stack.refused(...sent);
    const sell = (change: object = {}): Promise<QuoteAnswer> =>
      stack.quote(taker.address, { sellAmountBeforeFee: wei('1'), ...change });

    /** Runs a transaction of an account that has no ETH. */
    async function asOwner(account: string, run: (signer: Wallet) => Promise<unknown>, key = taker.privateKey) {
      await chain.provider.send('hardhat_setBalance', [account, ETHER_IN_HEX]);
      const sent = (await run(new Wallet(key, chain.provider))) as { wait(): Promise<unknown> };
      await chain.mine();
      await sent.wait();
    }

    describe('orders', () => {
      it('accepts a signature once', async () => {
        const quote = await sell();
        const first = await stack.submit(quote, taker);
        expect(first.status).to.equal(200);
        expect(first.body).to.include({ quoteId: quote.id, status: 'pending' }).and.to.have.property('orderId');
        const signature = await signQuote(quote, taker);
        const [status, code, message] = await refused('POST', '/orders', { quoteId: quote.id, signature });
        expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
        expect(message).to.contain(first.body.orderId);
      });

      it('refuses a signature over anything but the quote, or of anybody but the owner', async () => {
        const quote = await sell();
        const { typedData } = quote.permit2;
        const tampered = [
          { ...typedData, message: { ...typedData.message, nonce: '1' } },
          { ...typedData, message: { ...typedData.message, spender: taker.address as Address } },
          {
            ...typedData,
            message: { ...typedData.message, witness: { ...typedData.message.witness, minAmountOut: '1' } },
          },
          { ...typedData, domain: { ...typedData.domain, chainId: 1 } },
        ];
        const signatures = await Promise.all(
          tampered.map((data) => signQuote({ ...quote, permit2: { ...quote.permit2, typedData: data } }, taker)),
        );
        const good = await signQuote(quote, taker);
        const other = await signQuote(await sell(), taker);
        const stranger = await signQuote(quote, chain.wallet('taker1'));
        for (const signature of [...signatures, other, stranger, `0x${'00'.repeat(65)}`, '0x12', `${good}00`]) {
          const [status, code, message] = await refused('POST', '/orders', { quoteId: quote.id, signature });
          expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
          expect(message).to.match(/Invalid signature/);
        }
        expect((await stack.submit(quote, taker)).status).to.equal(200);
      });

      it('takes the forms in which wallets write a signature, and hands on what Permit2 takes', async () => {
        const parity = (signature: string): string => (signature.endsWith('1b') ? '00' : '01');
        const forms = [
          (signature: string) => signature.slice(0, -2) + parity(signature),
          (signature: string) => Signature.from(signature).compactSerialized,
          (signature: string) => signature.toUpperCase().replace('0X', '0x'),
        ];
        const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
        const flipped = (signature: string): string => {
          const { r, s } = Signature.from(signature);
          return concat([r, toBeHex(order - BigInt(s), 32), parity(signature) === '00' ? '0x1c' : '0x1b']);
        };
        for (const form of forms) {
          const quote = await sell();
          const signature = form(await signQuote(quote, taker));
          const answer = await stack.request<{ orderId: string }>('POST', '/orders', { quoteId: quote.id, signature });
          expect(answer.status, signature).to.equal(200);
          await stack.land();
          expect((await stack.order(answer.body.orderId)).status, signature).to.equal('filled');
        }
        const quote = await sell();
        const signature = flipped(await signQuote(quote, taker));
        expect((await refused('POST', '/orders', { quoteId: quote.id, signature }))[2]).to.match(/Invalid signature/);
      });

      it('takes an order for a quote of before a restart, and knows its client order id', async () => {
        const quote = await sell();
        const signature = await signQuote(quote, taker);
        const sent = { quoteId: quote.id, signature, clientOrderId: 'lost-answer' };
        await stack.restartApi();
        const first = await stack.request<{ orderId: string }>('POST', '/orders', sent);
        expect(first.status).to.equal(200);
        await stack.restartApi();
        const again = await stack.request<{ orderId: string }>('POST', '/orders', sent);
        expect([again.status, again.body.orderId]).to.deep.equal([200, first.body.orderId]);
        const other = { quoteId: quote.id, signature, clientOrderId: 'another' };
        expect((await refused('POST', '/orders', other))[2]).to.match(/used already/);
      });

      it('checks the shape of a submission', async () => {
        const quoteId = (await sell()).id;
        const signature = '0x1234';
        for (const [sent, expected] of [
          [{ signature }, /quoteId/],
          [{ quoteId }, /signature/],
          [{ quoteId, signature: 'hello' }, /signature/],
          [{ quoteId, signature, clientOrderId: '' }, /clientOrderId/],
          [{ quoteId, signature, clientOrderId: 'a b' }, /clientOrderId/],
          [{ quoteId, signature, clientOrderId: 'x'.repeat(129) }, /clientOrderId/],
          [{ quoteId: 'nothing', signature }, /quoteId: unknown/],
          // PostgreSQL stores no such text.
          [{ quoteId: 'a\u0000b', signature }, /quoteId/],
        ] as const) {
          const [status, code, message] = await refused('POST', '/orders', sent);
          expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
          expect(message).to.match(expected);
        }
        const id = `${'x'.repeat(120)}:_-A9`;
        const quote = await sell();
        expect((await stack.submit(quote, taker, { clientOrderId: id })).status).to.equal(200);
      });

      it('refuses an expired quote', async () => {
        const quote = await sell();
        stack.advance(30_001);
        const [status, code, message] = await refused('POST', '/orders', {
          quoteId: quote.id,
          signature: await signQuote(quote, taker),
        });
        expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
        expect(message).to.match(/expired/);
      });

      it('refuses a quote that has expired by the chain, though its own clock is an hour behind', async () => {
        const quote = await sell();
        stack.setHead(Date.parse(quote.expiration));
        stack.advance(-3_600_000);
        const [status, , message] = await refused('POST', '/orders', {
          quoteId: quote.id,
          signature: await signQuote(quote, taker),
        });
        expect(status).to.equal(400);
        expect(message).to.match(/expired/);
      });

      it('makes one order of 50 concurrent submissions with one client order id', async () => {
        const quotes = await Promise.all(Array.from({ length: 5 }, () => sell()));
        const answers = await Promise.all(
          Array.from({ length: 50 }, (_, i) => stack.submit(quotes[i % 5]!, taker, { clientOrderId: 'one' })),
        );
        expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
        expect(new Set(answers.map(({ body: answer }) => answer.orderId)).size).to.equal(1);
        const late = await stack.submit(await sell(), taker, { clientOrderId: 'one' });
        expect(late.body.orderId).to.equal(answers[0]!.body.orderId);
        stack.advance(60_000);
        const stale = await stack.submit(quotes[0]!, taker, { clientOrderId: 'one' });
        expect(stale.body.orderId).to.equal(answers[0]!.body.orderId);
      });

      it('keeps an account that has not traded to two limit orders, however many come at once', async () => {
        const limit = { orderClass: 'limit', sellAmountBeforeFee: wei('0.01'), minBuyAmount: '25000000' };
        const quotes = [];
        for (let i = 0; i < 9; i++) quotes.push(await stack.quote(taker.address, limit));
        const answers = await Promise.all(quotes.map((quote) => stack.submit(quote, taker)));
        expect(answers.filter(({ status }) => status === 200)).to.have.length(2);
        for (const { status, body } of answers)
          if (status !== 200) expect(JSON.stringify(body)).to.contain('may have 2 at a time');
      });

      it('explains a missing balance, a missing allowance, and a nonce that is gone', async () => {
        const refusalOf = async (quote: QuoteAnswer): Promise<string> => {
          const signature = await signQuote(quote, taker);
          const [status, code, message] = await refused('POST', '/orders', { quoteId: quote.id, signature });
          expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
          return message;
        };
        const quote = await sell();
        const { nonce } = quote.permit2.typedData.message;
        await asOwner(taker.address, (signer) =>
          new Contract(PERMIT2_ADDRESS, PERMIT2, signer)
            .getFunction('invalidateUnorderedNonces')
            .send(BigInt(nonce) >> 8n, 1n << (BigInt(nonce) & 255n)),
        );
        expect(await refusalOf(quote)).to.match(/nonce is used up/);
        const weth = (signer: Wallet) => new Contract(stack.token('WETH'), ERC20, signer);
        await asOwner(taker.address, (signer) =>
          weth(signer).getFunction('approve').send(PERMIT2_ADDRESS, parseUnits('0.5', 18)),
        );
        expect(await refusalOf(await sell())).to.match(
          /Insufficient allowance.*500000000000000000.*1000000000000000000/,
        );
        const held = await stack.balanceOf('WETH', taker.address);
        await asOwner(taker.address, (signer) =>
          weth(signer).getFunction('transfer').send(chain.address('taker1'), held),
        );
        expect(await refusalOf(await sell())).to.match(/Insufficient balance.*holds 0 .*takes 1000000000000000000/);
      });

      it('answers 404 for an order that does not exist', async () => {
        expect((await refused('GET', '/orders/nothing', undefined)).slice(0, 2)).to.deep.equal([404, 'NOT_FOUND']);
      });

      it('shows a pending order whole', async () => {
        const quote = await sell();
        const { body: accepted } = await stack.submit(quote, taker, { clientOrderId: 'mine' });
        expect(await stack.order(accepted.orderId)).to.deep.equal({
          orderId: accepted.orderId,
          quoteId: quote.id,
          clientOrderId: 'mine',
          status: 'pending',
          sellToken: quote.quote.sellToken,
          buyToken: quote.quote.buyToken,
          kind: 'sell',
          orderClass: 'market',
          sellAmount: quote.quote.sellAmount,
          buyAmount: quote.quote.buyAmount,
          minBuyAmount: quote.quote.minBuyAmount,
          validTo: quote.quote.validTo,
          executedSellAmount: '0',
          executedBuyAmount: '0',
          txHash: null,
          explorerUrl: null,
          route: quote.route,
          priceImpactBps: quote.priceImpactBps,
          makers: [],
          reason: null,
          attempts: [],
        });
      });
    });

    describe('accounts with code', () => {
      const marked = (signature: string): Hex => concat(['0x01', signature]) as Hex;

      it('takes what a contract account accepts by ERC-1271, and only that', async () => {
        const key = chain.wallet('taker1');
        await chain.provider.send('evm_setAutomine', [true]);
        const account = await new SmartAccount__factory(key).deploy(key.address);
        const at = await account.getAddress();
        const weth = new Contract(stack.token('WETH'), ERC20, key);
        await mined(weth.getFunction('transfer').send(at, parseUnits('2', 18)));
        const approval = weth.interface.encodeFunctionData('approve', [PERMIT2_ADDRESS, parseUnits('2', 18)]);
        await mined(account.execute(stack.token('WETH'), approval));
        await chain.provider.send('evm_setAutomine', [false]);
        const quote = await stack.quote(at, { sellAmountBeforeFee: wei('1'), receiver: key.address });
        const signature = await signQuote(quote, key);
        const plain = await refused('POST', '/orders', { quoteId: quote.id, signature });
        expect(plain[2]).to.match(/Invalid signature/);
        const { status, body: accepted } = await stack.request<{ orderId: string }>('POST', '/orders', {
          quoteId: quote.id,
          signature: marked(signature),
        });
        expect(status).to.equal(200);
        await stack.land();
        expect((await stack.order(accepted.orderId)).status).to.equal('filled');
      });

      it('asks the code of an EIP-7702 account, as Permit2 does', async () => {
        const payer = chain.wallet('taker1');
        await chain.provider.send('evm_setAutomine', [true]);
        const delegate = await new SmartAccount__factory(payer).deploy(`0x${'0'.repeat(40)}`);
        await delegate.waitForDeployment();
        const authorization = await taker.authorize({
          address: await delegate.getAddress(),
          nonce: await chain.provider.getTransactionCount(taker.address),
        });
        await mined(payer.sendTransaction({ to: payer.address, type: 4, authorizationList: [authorization] }));
        await chain.provider.send('evm_setAutomine', [false]);
        expect(await chain.provider.getCode(taker.address)).to.match(/^0xef0100/);
        const quote = await sell();
        const signature = await signQuote(quote, taker);
        expect((await refused('POST', '/orders', { quoteId: quote.id, signature }))[2]).to.match(/Invalid signature/);
        const { status, body: accepted } = await stack.request<{ orderId: string }>('POST', '/orders', {
          quoteId: quote.id,
          signature: marked(signature),
        });
        expect(status).to.equal(200);
        await stack.land();
        expect((await stack.order(accepted.orderId)).status).to.equal('filled');
      });
    });
  });
});
