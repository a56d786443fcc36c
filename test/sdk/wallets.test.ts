/** Wallets of viem and ethers as the clients take them: what they send, and what they say when it failed. */
import { expect } from 'chai';
import { BrowserProvider, NonceManager, Transaction, Wallet } from 'ethers';
import { createPublicClient, createWalletClient, custom } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { mainnet } from 'viem/chains';
import { fromEthers } from '../../sdk/src/ethers.js';
import { fromViem } from '../../sdk/src/viem.js';
import { gasLimit } from '../../sdk/src/wallet.js';
import { oneAccountChain, WALLETS, type Fate } from './one-account-chain.js';

const call = { to: `0x${'22'.repeat(20)}`, data: '0x1234' } as const;

/** What came of one transaction: its hash, or the error. */
async function outcome(name: string, fate: Fate): Promise<unknown> {
  const signer = await WALLETS[name]!(oneAccountChain({ fate }));
  return signer.sendTransaction?.(call, 8453).catch((error: unknown) => error);
}

describe('wallets of viem and ethers', () => {
  it('send with a third more gas than estimated, rounded up, for one chain only', async () => {
    expect([3n, 4n, 5n].map(gasLimit)).to.deep.equal([4n, 6n, 7n]);
    for (const [name, walletOn] of Object.entries(WALLETS)) {
      const chain = oneAccountChain();
      await (await walletOn(chain)).sendTransaction?.(call, 8453);
      const { to, data, gas } = chain.sent[0]!;
      expect([to, data, BigInt(gas!)], name).to.deep.equal([call.to, call.data, 144_372n]);
      // It may be switched after all checks.
      const other = oneAccountChain({ chainId: 1 });
      const failure = await (await walletOn(other)).sendTransaction?.(call, 8453).catch((error: unknown) => error);
      expect([failure instanceof Error, other.sent], name).to.deep.equal([true, []]);
    }
  });

  for (const name of Object.keys(WALLETS)) {
    it(`${name}: say so when a transaction reverted, sped up or not`, async () => {
      for (const fate of ['reverted', 'repriced, reverted'] as const)
        expect(await outcome(name, fate), fate).to.include({ name: 'CurvebookError', code: 'REVERTED' });
    });

    it(`${name}: take a transaction that was sped up for the one that was asked for, by its new hash`, async () => {
      const [asIs, spedUp] = [await outcome(name, 'mined'), await outcome(name, 'repriced')];
      for (const hash of [asIs, spedUp]) expect(hash).to.match(/^0x[0-9a-f]{64}$/);
      expect(spedUp).not.to.equal(asIs);
    });

    it(`${name}: call nothing done that another transaction took the place of`, async () => {
      for (const fate of ['cancelled', 'replaced'] as const) {
        const failure = await outcome(name, fate);
        expect(failure, fate).to.include({ name: 'CurvebookError', code: 'REPLACED' });
        expect((failure as Error).message).to.match(
          /^another transaction of the account, 0x\w{64}, took the place of 0x\w{64}$/,
        );
      }
    });

    it(`${name}: name what was sent where nobody says what became of it`, async () => {
      for (const fate of ['mined', 'repriced'] as const) {
        const chain = oneAccountChain({ fate });
        const signer = await WALLETS[name]!(chain);
        chain.state.onSent = () => (chain.state.down = 'eth_getTransactionReceipt');
        const failure = await signer.sendTransaction?.(call, 8453).catch((error: unknown) => error);
        expect(failure, fate).to.include({ name: 'CurvebookError', code: 'NOT_MINED' });
        expect((failure as Error).message).to.match(/^0x\w{64} was sent, /);
      }
    });
  }

  it('ethers: name what was sent, and wait no longer, where it is not mined within three minutes', async () => {
    const real = await new BrowserProvider(oneAccountChain({ fate: 'never' }).provider).getSigner();
    const asked: unknown[] = [];
    const { signer } = await fromEthers({
      provider: real.provider,
      getAddress: () => real.getAddress(),
      signTypedData: (...all) => real.signTypedData(...(all as Parameters<typeof real.signTypedData>)),
      estimateGas: (call) => real.estimateGas(call),
      async sendTransaction(call) {
        const sent = await real.sendTransaction(call);
        // The same wait in a shorter time.
        const wait = (confirms?: number, timeoutMs?: number) => {
          asked.push([confirms, timeoutMs]);
          return sent.wait(confirms, timeoutMs && 20);
        };
        return { hash: sent.hash, wait };
      },
    });
    const failure = await signer.sendTransaction?.(call, 8453).catch((error: unknown) => error);
    expect(asked).to.deep.equal([[1, 180_000]]);
    expect(failure).to.include({ name: 'CurvebookError', code: 'NOT_MINED' });
    expect((failure as Error).message).to.match(/^0x\w{64} was sent, /);
  });

  it('ethers: name what was sent where the network changed in that moment', async () => {
    const chain = oneAccountChain();
    const signer = await WALLETS['ethers']!(chain);
    // After which its provider knows the network.
    await signer.sendTransaction?.(call, 8453);
    chain.state.onSent = () => (chain.state.chainId = 1);
    const failure = await signer.sendTransaction?.(call, 8453).catch((error: unknown) => error);
    expect(failure).to.include({ name: 'CurvebookError', code: 'NOT_MINED' });
    expect((failure as Error).message).to.match(/^0x\w{64} was sent, /);
  });

  it('sign with a key for that chain only, whatever the client was made for', async () => {
    const key = `0x${'7'.repeat(64)}` as const;
    const raw: Transaction[] = [];
    const provider = {
      request({ method, params }: { method: string; params?: readonly unknown[] }): Promise<unknown> {
        if (method === 'eth_gasPrice' || method === 'eth_maxPriorityFeePerGas') return Promise.resolve('0x1');
        if (method !== 'eth_sendRawTransaction') return oneAccountChain().provider.request({ method, params });
        raw.push(Transaction.from(params?.[0] as string));
        return Promise.reject(new Error('nothing is sent here'));
      },
    };
    const transport = custom(provider);
    const account = privateKeyToAccount(key);
    const signers = [
      (await fromEthers(new NonceManager(new Wallet(key, new BrowserProvider(provider))))).signer,
      ...[undefined, mainnet].map(
        (chain) =>
          fromViem(createWalletClient({ account, chain, transport }), createPublicClient({ transport })).signer,
      ),
    ];
    for (const signer of signers) await signer.sendTransaction?.(call, 8453).catch(() => undefined);
    expect(raw.map(({ chainId, gasLimit: gas }) => [chainId, gas])).to.deep.equal(
      Array.from({ length: 3 }, () => [8453n, 144_372n]),
    );
  });
});
