import { expect } from 'chai';
import { Contract, Signature, Wallet, concat, parseUnits, toBeHex } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import { PERMIT2_ADDRESS } from '../../deploy/canonical.js';
import { mined } from '../../deploy/transactions.js';
import { WITNESS_TYPE_STRING } from '../../core/swap/typed-data.js';
import { SmartAccount__factory } from '../../typechain-types/factories/mocks/SmartAccount__factory.js';
import { forEachDatabase } from '../support/db.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { signQuote, startSwapStack, type QuoteAnswer, type SwapStack } from '../support/swap-stack.js';

const wei = (amount: string): string => parseUnits(amount, 18).toString();
const ERC20 = [
  'function approve(address, uint256) returns (bool)',
  'function transfer(address, uint256) returns (bool)',
];
const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
const ETHER_IN_HEX = '0xde0b6b3a7640000';

interface ErrorAnswer {
  error: { code: string; message: string };
}

forEachDatabase((name, open) =>
  describe(`swap API on ${name}`, () => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
      taker = chain.wallet('taker3');
    });

    after(() => chain?.close());

    beforeEach(async function () {
      this.timeout(60_000);
      await chain.reset();
      await start();
    });

    afterEach(() => stack.stop());

    async function start(change = {}): Promise<void> {
      stack = await startSwapStack(await open(), chain, change);
      await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.keepers.order(chain.address('maker1'), [
        { side: 'ask', priceTicks: 250_010n, sizeLots: 200_000n },
        { side: 'bid', priceTicks: 249_990n, sizeLots: 200_000n },
      ]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    const body = (change: object = {}): Record<string, unknown> => ({
      chainId: 8453,
      from: taker.address,
      sellToken: stack.token('WETH'),
      buyToken: stack.token('USDC'),
      kind: 'sell',
      sellAmountBeforeFee: wei('1'),
      signingScheme: 'eip712',
      ...change,
    });

    async function refused(method: string, path: string, sent: unknown): Promise<[number, string, string]> {
      const { status, body: answer } = await stack.request<ErrorAnswer>(method, path, sent);
      expect(answer, JSON.stringify(answer)).to.have.keys('error');
      return [status, answer.error.code, answer.error.message];
    }

    const sell = (change: object = {}): Promise<QuoteAnswer> =>
      stack.quote(taker.address, { sellAmountBeforeFee: wei('1'), ...change });

    /** Runs a transaction of an account that has no ETH. */
    async function asOwner(account: string, run: (signer: Wallet) => Promise<unknown>, key = taker.privateKey) {
      await chain.provider.send('hardhat_setBalance', [account, ETHER_IN_HEX]);
      const sent = (await run(new Wallet(key, chain.provider))) as { wait(): Promise<unknown> };
      await chain.mine();
      await sent.wait();
    }

    describe('tokens', () => {
      it('lists what may be quoted', async () => {
        const { status, body: tokens } = await stack.request<object[]>('GET', '/tokens?chainId=8453');
        expect(status).to.equal(200);
        expect(tokens).to.deep.equal([
          {
            chainId: 8453,
            address: stack.token('WETH'),
            symbol: 'WETH',
            name: 'WETH',
            decimals: 18,
            logoURI: 'https://example.org/WETH.svg',
          },
          {
            chainId: 8453,
            address: stack.token('USDC'),
            symbol: 'USDC',
            name: 'USDC',
            decimals: 6,
            logoURI: 'https://example.org/USDC.svg',
          },
        ]);
        expect((await refused('GET', '/tokens?chainId=1', undefined)).slice(0, 2)).to.deep.equal([400, 'BAD_REQUEST']);
      });
    });

    describe('a token list of many chains', () => {
      it('serves the tokens of ours only', async () => {
        await stack.stop();
        await chain.reset();
        const ours = { chainId: 8453, symbol: 'WETH', name: 'WETH', decimals: 18, logoURI: '' };
        const tokens = [1, 8453, 10].map((chainId) => ({ ...ours, chainId, address: stack.token('WETH') }));
        await start({ tokens });
        for (const path of ['/tokens', '/tokens?chainId=8453']) {
          expect((await stack.request('GET', path)).body).to.deep.equal([tokens[1]]);
        }
      });
    });

    describe('quotes', () => {
      it('answers with every field, and with what a wallet signs', async () => {
        const before = Math.floor(Date.now() / 1_000);
        const quote = await sell();
        expect(quote).to.have.all.keys('id', 'from', 'expiration', 'quote', 'permit2');
        expect(quote.from).to.equal(taker.address.toLowerCase());
        expect(Date.parse(quote.expiration) / 1_000 - before).to.be.within(30, 40);
        const { sellAmount, buyAmount, minBuyAmount, feeAmount, validTo, ...rest } = quote.quote;
        expect(rest).to.deep.equal({
          sellToken: stack.token('WETH'),
          buyToken: stack.token('USDC'),
          receiver: taker.address.toLowerCase(),
          kind: 'sell',
          partiallyFillable: false,
          signingScheme: 'eip712',
        });
        for (const amount of [sellAmount, buyAmount, minBuyAmount, feeAmount]) expect(amount).to.match(/^[1-9]\d*$/);
        expect(validTo - before).to.be.within(120, 130);
        expect(quote.permit2.allowanceTarget).to.equal(PERMIT2_ADDRESS.toLowerCase());
        expect(quote.permit2.spender).to.equal(chain.manifest.contracts['orderSettler']!.toLowerCase());
        expect(quote.permit2.witnessTypeString).to.equal(WITNESS_TYPE_STRING);
        const { domain, primaryType, types, message } = quote.permit2.typedData;
        expect(domain).to.deep.equal({
          name: 'Permit2',
          chainId: 8453,
          verifyingContract: PERMIT2_ADDRESS.toLowerCase(),
        });
        expect(primaryType).to.equal('PermitWitnessTransferFrom');
        expect(Object.keys(types)).to.have.members([
          'EIP712Domain',
          'PermitWitnessTransferFrom',
          'OrderWitness',
          'TokenPermissions',
        ]);
        expect(message).to.deep.include({
          permitted: { token: stack.token('WETH'), amount: sellAmount },
          spender: quote.permit2.spender,
          deadline: `${validTo}`,
          witness: {
            recipient: taker.address.toLowerCase(),
            tokenOut: stack.token('USDC'),
            minAmountOut: minBuyAmount,
          },
        });
      });

      it('gives every quote of an owner a nonce of its own, in one word as long as it can', async () => {
        const nonces = (await Promise.all([sell(), sell(), sell()])).map(({ permit2 }) =>
          BigInt(permit2.typedData.message.nonce),
        );
        expect(new Set(nonces).size).to.equal(3);
        expect(new Set(nonces.map((nonce) => nonce >> 8n)).size).to.equal(1);
      });

      it('names every problem of a request at once', async () => {
        const cases: [object, RegExp][] = [
          [{ chainId: 1 }, /chainId/],
          [{ chainId: '8453' }, /chainId/],
          [{ from: '0x12' }, /from/],
          [{ from: `0x${'0'.repeat(40)}` }, /from/],
          [{ receiver: `0x${'0'.repeat(40)}` }, /receiver/],
          [{ receiver: chain.manifest.contracts.custodian }, /receiver/],
          [{ receiver: chain.manifest.contracts['orderSettler'] }, /receiver/],
          [{ sellToken: `0x${'77'.repeat(20)}` }, /sellToken.*not supported/],
          [{ buyToken: stack.token('WETH') }, /buyToken/],
          [{ kind: 'swap' }, /kind/],
          [{ kind: 'buy' }, /buyAmountAfterFee: required.*sellAmountBeforeFee: must be left out/],
          [{ sellAmountBeforeFee: undefined }, /sellAmountBeforeFee: required/],
          [{ sellAmountBeforeFee: '0' }, /sellAmountBeforeFee/],
          [{ sellAmountBeforeFee: '1.5' }, /sellAmountBeforeFee/],
          [{ sellAmountBeforeFee: 1_000 }, /sellAmountBeforeFee/],
          [{ sellAmountBeforeFee: '9'.repeat(40) }, /sellAmountBeforeFee/],
          [{ slippageBps: 2_001 }, /slippageBps/],
          [{ slippageBps: -1 }, /slippageBps/],
          [{ slippageBps: 0.5 }, /slippageBps/],
          [{ routingPreference: 'best' }, /routingPreference/],
          [{ signingScheme: 'ethsign' }, /signingScheme/],
          [{ signingScheme: undefined, kind: 1 }, /kind.*signingScheme/],
          [{ sellAmountBeforeFee: '1000' }, /fee alone is \d+/],
        ];
        for (const [change, expected] of cases) {
          const [status, code, message] = await refused('POST', '/quote', body(change));
          expect([status, code], message).to.deep.equal([400, 'BAD_REQUEST']);
          expect(message).to.match(expected);
        }
        const response = await fetch(`${stack.url}/api/v1/quote`, { method: 'POST', body: '{' });
        expect(response.status).to.equal(400);
        expect(((await response.json()) as ErrorAnswer).error.code).to.equal('BAD_REQUEST');
      });

      it('refuses native ETH and says what to do instead', async () => {
        for (const native of [`0x${'Ee'.repeat(20)}`, `0x${'00'.repeat(20)}`]) {
          for (const side of ['sellToken', 'buyToken']) {
            const [status, code, message] = await refused('POST', '/quote', body({ [side]: native }));
            expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
            expect(message).to.match(/native ETH.*0x4200000000000000000000000000000000000006.*wrap/);
          }
        }
      });

      it('puts slippage into the minimum of a sale, and takes up to 2000 bps', async () => {
        for (const slippageBps of [0, 1, 2_000]) {
          const { buyAmount, minBuyAmount } = (await sell({ slippageBps })).quote;
          const least = BigInt(buyAmount) * BigInt(10_000 - slippageBps);
          expect(BigInt(minBuyAmount) * 10_000n >= least).to.equal(true);
          expect((BigInt(minBuyAmount) - 1n) * 10_000n < least).to.equal(true);
        }
      });

      it('fails with INSUFFICIENT_LIQUIDITY beyond the depth', async () => {
        for (const routingPreference of ['auto', 'preferService', 'onlyService']) {
          const large = body({ sellAmountBeforeFee: wei('500'), routingPreference });
          expect((await refused('POST', '/quote', large)).slice(0, 2)).to.deep.equal([400, 'INSUFFICIENT_LIQUIDITY']);
        }
      });

      it('answers 503 NOT_READY while the ledger is not ready, and takes orders all the same', async () => {
        const quote = await sell();
        stack.setReady(false);
        const [status, code, message] = await refused('POST', '/quote', body());
        expect([status, code]).to.deep.equal([503, 'NOT_READY']);
        expect(message).to.contain('stale_ledger');
        expect((await stack.submit(quote, taker)).status).to.equal(200);
      });

      it('prices like the contract, to the unit, at the newest block', async () => {
        const entrypoint = chain.entrypointAs('taker1');
        for (const amount of ['0.01', '0.123456789123456789', '3.7', '19.9']) {
          const { quote } = await sell({ sellAmountBeforeFee: wei(amount) });
          const sold = BigInt(quote.sellAmount) - BigInt(quote.feeAmount);
          expect(quote.buyAmount).to.equal(String(await entrypoint.quote(quote.sellToken, quote.buyToken, sold)));
        }
      });
    });

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
          sellAmount: quote.quote.sellAmount,
          buyAmount: quote.quote.buyAmount,
          executedSellAmount: '0',
          executedBuyAmount: '0',
          txHash: null,
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

    describe('limits', () => {
      it('counts each route by itself, says so in every answer, and asks to wait beyond', async () => {
        await stack.stop();
        await chain.reset();
        const limit = (route: string) => ({ name: route, requests: 2, windowSec: 60 });
        await start({
          limits: {
            tokens: limit('tokens'),
            quotes: limit('quotes'),
            submissions: limit('submissions'),
            orders: limit('orders'),
          },
        });
        for (const [method, path, sent] of [
          ['GET', '/tokens', undefined],
          ['POST', '/quote', {}],
          ['POST', '/orders', {}],
          ['GET', '/orders/x', undefined],
        ] as const) {
          for (const remaining of [1, 0]) {
            const { headers, status } = await stack.request(method, path, sent);
            expect(status).not.to.equal(429);
            expect(headers.get('x-ratelimit-limit')).to.equal('2');
            expect(headers.get('x-ratelimit-remaining')).to.equal(String(remaining));
            expect(headers.get('retry-after')).to.equal(null);
          }
          const { status, headers, body: answer } = await stack.request<ErrorAnswer>(method, path, sent);
          expect([status, answer.error.code]).to.deep.equal([429, 'RATE_LIMITED']);
          expect(Number(headers.get('retry-after'))).to.be.within(1, 60);
          expect(Number(headers.get('x-ratelimit-reset')) - Date.now()).to.be.within(0, 61_000);
        }
      });
    });
  }),
);
