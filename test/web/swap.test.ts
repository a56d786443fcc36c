/** What the swap page makes of what is typed and of what the server says: exact, and never more than is there. */
import { expect } from 'chai';
import fc from 'fast-check';
import { parseTransaction } from 'viem';
import { formatUnits } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { CurvebookError } from '../../sdk/src/index.js';
import { perform } from '../../web/src/swap/run.js';
import { snippet, SNIPPETS } from '../../web/src/swap/snippets.js';
import { limitText, NO_LIMIT, suggestedFor, withAmount } from '../../web/src/swap/limit.js';
import {
  boundOf,
  entered,
  minBuyOf,
  offerOf,
  percentLeft,
  rate,
  routeShares,
  takenOf,
} from '../../web/src/swap/terms.js';
import { keyProvider } from '../../web/src/wallet/key-provider.js';
import { decoded, revertName } from '../../web/src/wallet/errors.js';
import { signerOf, typedDataJson } from '../../web/src/wallet/signer.js';
import { drawn } from '../support/console/drawn.js';
import { CONTRACT_ABIS } from '../../contracts-package/src/abis.js';

const HASH = `0x${'ab'.repeat(32)}`;
const weth = { symbol: 'WETH', address: `0x42${'0'.repeat(37)}6`, decimals: 18 };
const usdc = { symbol: 'USDC', address: `0x${'43'.repeat(20)}`, decimals: 6 };
const contracts = {
  entrypoint: { address: `0x${'11'.repeat(20)}`, abi_hash: '0x', abi: CONTRACT_ABIS.entrypoint as unknown as never[] },
  custodian: { address: `0x${'22'.repeat(20)}`, abi_hash: '0x', abi: CONTRACT_ABIS.custodian as unknown as never[] },
};
const deployment = { contracts, chain_id: 8453, rpc_url: null } as unknown as Parameters<
  typeof snippet
>[1]['deployment'];

describe('the swap page', () => {
  it('reads amounts as they are written, for any token', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 30n), fc.integer({ min: 0, max: 18 }), (units, decimals) => {
        const token = { ...weth, decimals };
        expect(entered(formatUnits(units, decimals), token)).to.deep.equal({ units, problem: null });
      }),
    );
    for (const text of ['.5', '0.50', ' 0.5 ', '00.5'])
      expect(entered(text, weth).units, text).to.equal(500_000_000_000_000_000n);
  });

  it('takes nothing that is not a plain amount of the token', () => {
    for (const text of ['1,5', '-1', '1e3', '0x10', '1.2.3', '１', '.', `0.${'1'.repeat(19)}`]) {
      const { units, problem } = entered(text, weth);
      expect(units, text).to.equal(null);
      expect(problem, text).to.be.a('string');
    }
    for (const text of ['', '0', '0.000']) expect(entered(text, weth)).to.deep.equal({ units: null, problem: null });
  });

  it('takes a bound of zero for what it says, and only an empty field for none', () => {
    for (const text of ['0', '0.000', ' 0 ', '.0'])
      expect(entered(text, weth, 'bound'), text).to.deep.equal({ units: 0n, problem: null });
    for (const text of ['', ' ']) expect(entered(text, weth, 'bound')).to.deep.equal({ units: null, problem: null });
    expect(entered('1,5', weth, 'bound').problem).to.be.a('string');
  });

  it('takes a price for that of the very amount that is typed, and of no other', () => {
    const asked = { pricedUnits: 10n, gasless: 40_000n, direct: 20_000n, slippageBps: 50 };
    const offers = (['gasless', 'direct', 'limit'] as const).map((mode) => offerOf({ mode, units: 10n, ...asked }));
    expect(offers).to.deep.equal([
      { gaslessUnits: 40_000n, buyUnits: 40_000n, least: 39_800n },
      { gaslessUnits: 40_000n, buyUnits: 20_000n, least: 19_900n },
      { gaslessUnits: 40_000n, buyUnits: 40_000n, least: 39_800n },
    ]);
    for (const units of [11n, null])
      expect(offerOf({ mode: 'gasless', units, ...asked })).to.deep.equal({
        ...{ gaslessUnits: null, buyUnits: null, least: null },
      });
    expect(offerOf({ mode: 'direct', units: null, ...asked, pricedUnits: null }).least).to.equal(null);
  });

  it('bounds what is signed and copied by a price or a limit, never by nothing', () => {
    expect(boundOf('gasless', null, 7n)).to.equal(7n);
    expect(boundOf('direct', 9n, 7n)).to.equal(7n);
    expect(boundOf('limit', 9n, 7n)).to.equal(9n);
    for (const [mode, limit, least] of [
      ['gasless', 9n, null],
      ['direct', null, 0n],
      ['limit', null, 7n],
      ['limit', 0n, 7n],
    ] as const)
      expect(boundOf(mode, limit, least), `${mode} ${limit} ${least}`).to.equal(null);
  });

  it('swaps directly for what it shows, and not at all for less', async () => {
    const { buyUnits, least } = offerOf({
      ...{ mode: 'direct', units: 10n, pricedUnits: 10n, gasless: null, direct: 20_000n, slippageBps: 50 },
    });
    const bound = boundOf('direct', null, least) ?? 0n;
    expect(minBuyOf('direct', bound, buyUnits))
      .to.equal(least)
      .and.equal(19_900n);
    expect(minBuyOf('limit', 7n, buyUnits)).to.equal(7n);
    // What is signed of a gasless swap is shown with its quote.
    expect(minBuyOf('gasless', bound, buyUnits)).to.equal(19_800n);
    const taker = { swap: () => Promise.reject(new CurvebookError('BELOW_MINIMUM', '5 base units are quoted')) };
    const wanted = { mode: 'direct', buy: usdc, swap: { sell: 'WETH', buy: 'USDC', amount: '1' } } as const;
    const told = perform(taker as never, wanted, () => undefined, new AbortController().signal);
    const failure = (await told.catch((error: unknown) => error)) as CurvebookError;
    expect(failure).to.include({ code: 'BELOW_MINIMUM' });
    expect(failure.message).to.contain('nothing was sent');
    expect(failure.remedy).to.contain('slippage');
  });

  it('suggests a limit for the tokens and the amount at hand, and keeps what is typed over it', () => {
    const suggested = suggestedFor(NO_LIMIT, 'WETH/USDC/1', '2505.12');
    expect(limitText(suggested, 'WETH/USDC/1')).to.equal('2505.12');
    // The price moves on, and the suggestion does not.
    expect(suggestedFor(suggested, 'WETH/USDC/1', '2505.13')).to.equal(suggested);
    for (const of of ['WETH/USDC/20', 'cbBTC/USDC/1', null]) expect(limitText(suggested, of), `${of}`).to.equal('');
    const anew = suggestedFor(withAmount(suggested), 'WETH/USDC/20', '50102.4');
    expect(limitText(anew, 'WETH/USDC/20')).to.equal('50102.4');
    const typed = { ...anew, typed: '51000' };
    expect(limitText(withAmount(typed), 'WETH/USDC/21')).to.equal('51000');
    expect(limitText(suggestedFor(typed, 'WETH/USDC/21', '52607.5'), 'WETH/USDC/21')).to.equal('51000');
  });

  it('suggests no limit into a field that was emptied, until the amount is another', () => {
    const emptied = { ...suggestedFor(NO_LIMIT, 'WETH/USDC/1', '2505.12'), typed: '' };
    expect(limitText(emptied, 'WETH/USDC/1')).to.equal('');
    expect(limitText(suggestedFor(withAmount(emptied), 'WETH/USDC/2', '5010'), 'WETH/USDC/2')).to.equal('5010');
  });

  it('says the minimum that was signed in the token that was bought, whichever is chosen since', async () => {
    const quote = { minBuyUnits: 2_487_500_000n, validToSec: 9, expiresMs: 9_000, signsApproval: false };
    const run = { mode: 'gasless', stage: 'done', sinceMs: 0, quote, buy: usdc };
    const { text } = await drawn('swap/progress.tsx', 'Progress', { run, onForget: () => undefined });
    expect(text).to.contain('Signed for at least 2,487.5 USDC.');
  });

  it('shows no program before there is a price to bound it by', async () => {
    const said = async (swap: object | null, waits: boolean) =>
      (await drawn('swap/copy-as.tsx', 'CopyAs', { swap, waits })).text;
    expect(await said(null, true)).to.contain('Wait for the price');
    expect(await said(null, false)).to.contain('Enter the amounts first');
    const swap = { url: 'http://x', deployment, sell: weth, buy: usdc, units: 1n, minBuyUnits: 7n, slippageBps: 50 };
    expect(await said({ ...swap, mode: 'direct' }, false)).to.contain("minBuy: '0.000007'");
  });

  it('gives the parts of a route, the largest first, cut off', () => {
    const part = (source: string, sellAmount: string) => ({ source, sellAmount, buyAmount: '1' });
    expect(routeShares([part('pool', '1'), part('own', '2')])).to.deep.equal([
      { source: 'own', percent: '66.6' },
      { source: 'pool', percent: '33.3' },
    ]);
    expect(routeShares([part('own', '0')])).to.deep.equal([]);
  });

  it('gives a rate that never shows more than there is', () => {
    expect(rate(10n ** 18n, 2_500_123_456n, weth, usdc)).to.equal('2500.123456');
    expect(rate(3n * 10n ** 6n, 10n ** 15n, usdc, weth)).to.equal('0.00033333');
    expect(rate(0n, 1n, weth, usdc)).to.equal(null);
  });

  it('closes the ring when the time is over, and not before', () => {
    expect([percentLeft(0, 0, 100), percentLeft(50, 0, 100), percentLeft(101, 0, 100)]).to.deep.equal([100, 50, 0]);
    expect(percentLeft(5, 10, 10)).to.equal(0);
  });

  it('tells a signed order and the fill of a part of it as one', () => {
    const row = (tx_hash: string, kind: 'direct' | 'signed', fill_seq: number | null) =>
      ({ tx_hash, kind, pair: fill_seq === null ? null : 'WETH-USDC', fill_seq }) as unknown as Parameters<
        typeof takenOf
      >[0][number];
    const rows = [
      row('0xa', 'signed', null),
      row('0xa', 'direct', 7),
      row('0xb', 'direct', 6),
      row('0xc', 'signed', null),
    ];
    const taken = takenOf(rows).map(({ whole, fills }) => [whole.tx_hash, whole.kind, fills.map(({ seq }) => seq)]);
    expect(taken).to.deep.equal([
      ['0xa', 'signed', [7]],
      ['0xb', 'direct', [6]],
      ['0xc', 'signed', []],
    ]);
  });

  it('writes programs with the very amounts, and none that a symbol could break out of', () => {
    const evil = { ...usdc, symbol: "U'`\n*/ hack(); //" };
    const swap = {
      url: 'http://x',
      deployment,
      sell: weth,
      buy: evil,
      units: 5n * 10n ** 17n,
      minBuyUnits: 1_234_567n,
      ...{ slippageBps: 50, validForSec: 3_600 },
    };
    for (const [mode, name] of (['gasless', 'direct', 'limit'] as const).flatMap((one) =>
      SNIPPETS.map((language) => [one, language] as const),
    )) {
      const code = snippet(name, { ...swap, mode });
      const what = `${mode} as ${name}`;
      expect(code, what).to.contain(name === 'curl' || name === 'Solidity' ? '500000000000000000' : "'0.5'");
      // As the text of a string, or in a comment of one line.
      for (const line of code.split('\n').filter((one) => one.includes('hack')))
        expect(line.startsWith('///') || line.includes(JSON.stringify(evil.symbol)), `${what}: ${line}`).to.equal(true);
    }
  });

  it('names what a contract reverted with, wherever a wallet puts it', () => {
    const data = '0xd93c0665';
    expect(revertName({ contracts }, '0x00000000')).to.equal(null);
    const text = Buffer.from('no luck').toString('hex').padEnd(64, '0');
    const reason = `0x08c379a0${'20'.padStart(64, '0')}${'7'.padStart(64, '0')}${text}`;
    const failure = decoded({ code: -32603, message: 'x', data: { originalError: { data: reason } } }, { contracts });
    expect(failure.message).to.contain('no luck');
    const short = `0xe450d38c${'0'.repeat(192)}`;
    expect(decoded({ message: 'x', data: short }, { contracts })).to.include({ code: 'ERC20InsufficientBalance' });
    expect(decoded({ message: 'x', data }, { contracts }).remedy).to.be.a('string');
    expect(decoded({ code: 4001, message: 'no' }, { contracts }).code).to.equal('REFUSED');
  });

  /** A wallet on the chain of the deployment that answers as told, and says what it was asked to send. */
  function walletThat(answers: Record<string, unknown>) {
    const sent: unknown[] = [];
    const provider = {
      request: ({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> => {
        if (method === 'eth_sendTransaction') sent.push(params[0]);
        const known = {
          eth_chainId: '0x2105',
          eth_call: '0x',
          eth_estimateGas: '0x1a6f7',
          eth_sendTransaction: HASH,
        };
        return Promise.resolve({ ...known, ...answers }[method]);
      },
    };
    const address = `0x${'44'.repeat(20)}`;
    return { sent, address, signer: signerOf(provider, address, { ...deployment, contracts }) };
  }

  it('sends with a third more gas than estimated, which another curve may need', async () => {
    const transaction = { to: contracts.entrypoint.address as Address, data: '0x1234' as const };
    const { sent, address, signer } = walletThat({
      eth_getTransactionCount: '0x1',
      eth_getTransactionByHash: { nonce: '0x0' },
      eth_getTransactionReceipt: { status: '0x1' },
    });
    expect(await signer.sendTransaction?.(transaction)).to.equal(HASH);
    const gas = `0x${Math.ceil((0x1a6f7 * 4) / 3).toString(16)}`;
    expect(sent).to.deep.equal([{ from: address, ...transaction, gas, chainId: '0x2105' }]);
  });

  it('does not wait for a transaction whose place another one took', async () => {
    const transaction = { to: contracts.entrypoint.address as Address, data: '0x1234' as const };
    const lost = { eth_getTransactionCount: '0x8', eth_getTransactionReceipt: null };
    const { signer } = walletThat({ ...lost, eth_getTransactionByHash: { nonce: '0x7' } });
    const failure = await signer.sendTransaction?.(transaction).catch((error: unknown) => error);
    expect(failure).to.include({ code: 'REPLACED' });
  });

  it('takes the next nonce when a bot of the sandbox was quicker, and sends nothing twice', async () => {
    const nonces: number[] = [];
    const rpc = {
      request: ({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> => {
        if (method === 'eth_getTransactionCount') return Promise.resolve(`0x${nonces.length.toString(16)}`);
        if (method === 'eth_getBlockByNumber') return Promise.resolve({ baseFeePerGas: '0x7' });
        if (method !== 'eth_sendRawTransaction') return Promise.resolve('0x2105');
        nonces.push(parseTransaction(params[0] as Hex).nonce ?? 0);
        if (nonces.length === 1) return Promise.reject(new Error('Nonce too low. Expected nonce to be 1 but got 0.'));
        if (nonces.length === 2) return Promise.reject(new Error('replacement transaction underpriced'));
        return nonces.length === 3 ? Promise.resolve('0xab') : Promise.reject(new Error('execution reverted'));
      },
    };
    const wallet = keyProvider(`0x${'7'.repeat(64)}`, rpc);
    const params = [{ to: `0x${'55'.repeat(20)}`, data: '0x', gas: '0x5208', chainId: '0x2105' }];
    expect(await wallet.request({ method: 'eth_sendTransaction', params })).to.equal('0xab');
    expect(nonces).to.deep.equal([0, 1, 2]);
    const failure = await wallet.request({ method: 'eth_sendTransaction', params }).catch((error: unknown) => error);
    expect(failure).to.be.an('error').with.property('message', 'execution reverted');
    expect(nonces.length).to.equal(4);
    const elsewhere = wallet.request({ method: 'eth_sendTransaction', params: [{ ...params[0], chainId: '0x1' }] });
    expect(await elsewhere.catch(String)).to.contain('on chain 8453');
    expect(nonces.length).to.equal(4);
  });

  it('hands a direct swap what ends it', async () => {
    const { signal } = new AbortController();
    const given: unknown[] = [];
    const taker = { swap: (...all: unknown[]) => (given.push(...all), Promise.resolve('0xab')) };
    const swap = { sell: 'WETH', buy: 'USDC', amount: '1' };
    const told: object[] = [];
    await perform(taker as never, { mode: 'direct', buy: usdc, swap }, (what) => told.push(what), signal);
    expect(given).to.deep.equal([swap, signal]);
    expect(told).to.deep.equal([{ stage: 'done', txHash: '0xab' }]);
  });

  it('begins no further step once the page was left', async () => {
    const swap = { sell: 'WETH', buy: 'USDC', amount: '1' };
    for (const [mode, leftAt, expected] of [
      ['gasless', 'first', ['first']],
      ['gasless', 'allow', ['first', 'allow']],
      ['gasless', 'never', ['first', 'allow', 'again']],
      ['limit', 'first', ['first']],
      ['limit', 'allow', ['first', 'allow']],
      ['limit', 'never', ['first', 'allow', 'again']],
    ] as const) {
      const leaving = new AbortController();
      const asked: string[] = [];
      const ask = (name: string): void => {
        asked.push(name);
        if (name === leftAt) leaving.abort();
      };
      const job = (): Promise<never> => {
        ask(asked.length === 0 ? 'first' : 'again');
        return Promise.reject(new CurvebookError(asked.length === 1 ? 'APPROVAL_NEEDED' : 'REFUSED', ''));
      };
      const taker = { swapGasless: job, placeLimit: job, allowGasless: async () => ask('allow') };
      const wanted = { mode, buy: usdc, swap: { ...swap, minBuy: '1', validForSec: 60 } };
      await perform(taker as never, wanted, () => undefined, leaving.signal).catch(() => undefined);
      expect(asked, `${mode}, left at ${leftAt}`).to.deep.equal(expected);
    }
  });

  it('hands typed data to wallets with the type of its domain, and integers as text', () => {
    const typed = {
      domain: { name: 'X', chainId: 1 },
      types: { A: [{ name: 'n', type: 'uint256' }] },
      primaryType: 'A',
    };
    const json = JSON.parse(typedDataJson({ ...typed, message: { n: 2n ** 200n } })) as {
      types: { EIP712Domain: { name: string }[] };
      message: { n: string };
    };
    expect(json.types.EIP712Domain.map(({ name }) => name)).to.deep.equal(['name', 'chainId']);
    expect(json.message.n).to.equal((2n ** 200n).toString());
  });
});
