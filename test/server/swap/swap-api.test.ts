/** What the swap API quotes, for whom, and how often; orders are in swap-orders.test.ts. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { Wallet, parseUnits } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { NO_PARTNER } from '../../../core/swap/partner.js';
import { witnessTypeString } from '../../../core/swap/typed-data.js';
import { createRpc, RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import type { Head } from '../../../liquidity/eth.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { ownerQuotes } from '../../../server/swap/owner-quotes.js';
import { forEachSwapStack, type SwapChanges } from '../../support/manual-suite.js';
import { signQuote, type ErrorAnswer, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

/** Says that any signature is valid. */
const TRUSTING = '0x631626ba7e60e01b5f5260205ff3';
const wei = (amount: string): string => parseUnits(amount, 18).toString();

describe('swap API', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    async function start(...changes: SwapChanges): Promise<void> {
      ({ chain, stack, taker } = await begin(...changes));
      await stack.makeMarket();
    }

    beforeEach(() => start());

    afterEach(() => stack.stop());

    const refused: SwapStack['refused'] = (...sent) => stack.refused(...sent);
    const sell = (change: object = {}): Promise<QuoteAnswer> =>
      stack.quote(taker.address, { sellAmountBeforeFee: wei('1'), ...change });

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

    it('answers 413 to a body beyond every limit, whole, and the connection goes on', async () => {
      const { hostname, port } = new URL(stack.url);
      for (const path of ['/api/v1/quote', '/api/v1/orders']) {
        const socket = connect({ host: hostname, port: Number.parseInt(port, 10) });
        let text = '';
        socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
        const head = (length: number): string =>
          `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
        const length = 5 * 1024 * 1024;
        socket.write(head(length));
        // As clients do that read nothing before they have sent everything.
        await new Promise((resolve) => socket.write(Buffer.alloc(length, ' '), resolve));
        socket.write(`${head(2)}{}`);
        while (!/ 400 /.test(text)) await once(socket, 'data');
        expect(text).to.match(/^HTTP\/1\.1 413 [^]*"code":"BAD_REQUEST"/);
        socket.destroy();
      }
    });

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
        const ours = { chainId: 8453, symbol: 'WETH', name: 'WETH', decimals: 18, logoURI: '' };
        const tokens = [1, 8453, 10].map((chainId) => ({ ...ours, chainId, address: stack.token('WETH') }));
        await start({ tokens });
        for (const path of ['/tokens', '/tokens?chainId=8453']) {
          const { body } = await stack.request<[{ logoURI: string }]>('GET', path);
          const [{ logoURI }] = body;
          expect(body).to.deep.equal([{ ...tokens[1], logoURI }]);
          // A list without pictures gets some: the field is a URL.
          expect(new URL(logoURI).protocol).to.equal('data:');
          expect(decodeURIComponent(logoURI)).to.match(/^data:image\/svg\+xml,<svg [^]*fill="#[0-9a-f]{6}"/);
        }
      });

      it('says so while nothing may be quoted, instead of an empty list', async () => {
        await stack.stop();
        await start({ tokens: [] });
        const answer = await refused('GET', '/tokens', undefined);
        expect(answer).to.deep.equal([503, 'NOT_READY', 'No token is listed yet']);
      });
    });

    describe('quotes', () => {
      it('answers with every field, and with what a wallet signs', async () => {
        const before = Math.floor(Date.now() / 1_000);
        const quote = await sell();
        expect(quote).to.have.all.keys(
          'id',
          'from',
          'expiration',
          'quote',
          'permit2',
          'approval',
          'route',
          'priceImpactBps',
        );
        expect(quote.from).to.equal(taker.address.toLowerCase());
        expect(Date.parse(quote.expiration) / 1_000 - before).to.be.within(30, 40);
        const { sellAmount, buyAmount, minBuyAmount, feeAmount, validTo, ...rest } = quote.quote;
        expect(rest).to.deep.equal({
          sellToken: stack.token('WETH'),
          buyToken: stack.token('USDC'),
          receiver: taker.address.toLowerCase(),
          kind: 'sell',
          orderClass: 'market',
          partiallyFillable: false,
          signingScheme: 'eip712',
        });
        for (const amount of [sellAmount, buyAmount, minBuyAmount, feeAmount]) expect(amount).to.match(/^[1-9]\d*$/);
        expect(validTo - before).to.be.within(120, 130);
        expect(quote.permit2.allowanceTarget).to.equal(PERMIT2_ADDRESS.toLowerCase());
        expect(quote.permit2.spender).to.equal(chain.manifest.contracts['orderSettler']!.toLowerCase());
        expect(quote.permit2.witnessTypeString).to.equal(witnessTypeString(NO_PARTNER));
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

      it('answers 503 TOKEN_QUARANTINED for a token that can not be trusted, and takes orders all the same', async () => {
        const quote = await sell();
        for (const symbol of ['WETH', 'USDC']) {
          stack.quarantine(stack.token(symbol));
          const [status, code, message] = await refused('POST', '/quote', body());
          expect([status, code]).to.deep.equal([503, 'TOKEN_QUARANTINED']);
          expect(message).to.contain(stack.token(symbol));
        }
        expect((await stack.submit(quote, taker)).status).to.equal(200);
        stack.quarantine();
        expect((await sell()).id).to.be.a('string');
      });

      it('answers 503 CHAIN_UNAVAILABLE while no node answers, or all of them refuse, and goes on when one does', async () => {
        await stack.stop();
        const rpc = createRpc(chain.rpcUrl);
        let fault: Error | null = null;
        const failing = <T>(ask: () => Promise<T>): Promise<T> => (fault === null ? ask() : Promise.reject(fault));
        const call: Rpc['call'] = (...asked) => failing(() => rpc.call(...asked));
        const batch: Rpc['batch'] = (...asked) => failing(() => rpc.batch(...asked));
        const head = (): Promise<Head> => failing(() => market.marketData.head());
        const market = stack;
        await start({ eth: { call, batch }, marketData: { ...market.marketData, head } });
        const quote = await sell();
        const { orderId } = (await stack.submit(quote, taker)).body;
        const price = `/price?sellToken=${stack.token('WETH')}&buyToken=${stack.token('USDC')}&kind=sell&sellAmountBeforeFee=${wei('1')}`;
        const another = await sell();
        const submission = { quoteId: another.id, signature: await signQuote(another, taker) };
        for (const one of [
          new RpcUnavailableError('no answer from node.example'),
          new RpcResponseError('eth_call', -32_005, 'limit exceeded', undefined),
        ]) {
          fault = one;
          for (const [method, path, sent] of [
            ['POST', '/quote', body()],
            ['GET', price],
            ['POST', '/orders', submission],
            ['DELETE', `/orders/${orderId}`, { signature: `0x${'11'.repeat(65)}` }],
          ] as const) {
            const [status, code, message] = await refused(method, path, sent);
            expect([status, code], `${method} ${path}`).to.deep.equal([503, 'CHAIN_UNAVAILABLE']);
            expect(message).not.to.contain('node.example');
          }
          expect((await stack.order(orderId)).status, 'what is stored is still told').to.equal('pending');
        }
        fault = null;
        expect((await stack.request('GET', price)).status).to.equal(200);
        expect((await stack.request('POST', '/orders', submission)).status).to.equal(200);
      });

      it('shares the round trips to the chain of quotes that are asked for at the same time', async () => {
        await stack.stop();
        const rpc = createRpc(chain.rpcUrl);
        const trips: string[][] = [];
        let tripMs = 0;
        const batch: Rpc['batch'] = async (requests) => {
          trips.push(requests.map(({ method }) => method));
          await delay(tripMs);
          return rpc.batch(requests);
        };
        const single: string[] = [];
        const call: Rpc['call'] = (method, params) => {
          single.push(method);
          return rpc.call(method, params);
        };
        await start({ eth: { ...rpc, batch, call } });
        await sell();
        // By the end of a round trip all others have been asked for.
        [trips.length, single.length, tripMs] = [0, 0, 500];
        const owners = Array.from({ length: 20 }, () => Wallet.createRandom().address);
        const answers = await Promise.all(owners.map((from) => sell({ from })));
        expect(answers.map(({ from }) => from)).to.deep.equal(owners.map((one) => one.toLowerCase()));
        // Code and allowance of each: wrapped ether takes no approval by signature.
        expect(trips.flat().filter((method) => method === 'eth_getCode')).to.have.length(20);
        expect(trips.flat().filter((method) => method === 'eth_call')).to.have.length(20);
        expect(single).to.not.include('eth_getCode');
        expect(trips.length, JSON.stringify(trips)).to.be.at.most(5);
      });

      it("runs an owner's code once in a while, however many quotes are asked for it", async () => {
        await stack.stop();
        const rpc = createRpc(chain.rpcUrl);
        let runs = 0;
        const call: Rpc['call'] = (method, params) => {
          runs += method === 'eth_estimateGas' ? 1 : 0;
          return rpc.call(method, params);
        };
        await start({ eth: { ...rpc, call }, newContractGas: 250_000n });
        const owner = Wallet.createRandom().address;
        await chain.provider.send('hardhat_setCode', [owner, TRUSTING]);
        const quote = () => stack.quote(owner, { sellAmountBeforeFee: wei('1') });
        await Promise.all(Array.from({ length: 20 }, quote));
        expect(runs).to.equal(1);
        stack.advance(2_000);
        await quote();
        expect(runs).to.equal(2);
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

    describe('limits', () => {
      it('counts each route by itself, says so in every answer, and asks to wait beyond', async () => {
        await stack.stop();
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

      it('bounds the quotes of one owner over all clients, and leaves each client a few', async () => {
        await stack.stop();
        await start({ ownerQuotesPerMinute: 20 });
        const ask = (from: string) =>
          stack.request<ErrorAnswer>('POST', '/quote', {
            ...{ chainId: 8453, from, sellToken: stack.token('WETH'), buyToken: stack.token('USDC') },
            ...{ kind: 'sell', sellAmountBeforeFee: wei('1'), signingScheme: 'eip712' },
          });
        const owner = Wallet.createRandom().address;
        // The limit, and a client's twentieth of it beyond.
        for (let i = 0; i < 20 + 1; i++) expect((await ask(owner)).status).to.equal(200);
        const { status, headers, body } = await ask(owner);
        expect([status, body.error.code]).to.deep.equal([429, 'RATE_LIMITED']);
        expect(Number(headers.get('retry-after'))).to.be.within(1, 60);
        expect((await ask(Wallet.createRandom().address)).status, 'of another owner').to.equal(200);

        const waits = new Map<string, string>();
        const quotes = ownerQuotes(40);
        const count = (ip: string): Promise<string> =>
          quotes.count({ ip, set: (name: string, value: string) => waits.set(name, value) } as never, '0x1').then(
            () => 'served',
            ({ code }: { code: string }) => code,
          );
        // The owner's own server is among those that spend the limit, and has its share beyond.
        for (let i = 0; i < 40; i++) expect(await count(`198.51.100.${1 + (i % 2)}`)).to.equal('served');
        for (const ip of ['198.51.100.1', '198.51.100.1']) expect(await count(ip)).to.equal('served');
        expect(await count('198.51.100.1')).to.equal('RATE_LIMITED');
        expect(Number(waits.get('retry-after'))).to.be.within(1, 60);
        const others = [await count('198.51.100.2'), await count('198.51.100.2'), await count('198.51.100.2')];
        expect(others, 'a twentieth of 40').to.deep.equal(['served', 'served', 'RATE_LIMITED']);
      });
    });
  });
});
