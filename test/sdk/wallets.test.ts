/** Wallets of viem and ethers as the clients take them: what they send, and what they say when it failed. */
import { expect } from 'chai';
import { BrowserProvider } from 'ethers';
import { createPublicClient, createWalletClient, custom } from 'viem';
import { base } from 'viem/chains';
import { fromEthers } from '../../sdk/src/ethers.js';
import { fromViem } from '../../sdk/src/viem.js';
import { gasLimit, type Signer } from '../../sdk/src/wallet.js';
import { ACCOUNT, oneAccountChain, type Fate } from './one-account-chain.js';

const call = { to: `0x${'22'.repeat(20)}`, data: '0x1234' } as const;
const POLL_MS = 10;

type Chain = ReturnType<typeof oneAccountChain>;

/** The libraries themselves, over a wallet that the test makes. */
const WALLETS: Readonly<Record<string, (chain: Chain) => Promise<Signer>>> = {
  async ethers({ provider }) {
    const options = { pollingInterval: POLL_MS, cacheTimeout: -1 };
    return (await fromEthers(await new BrowserProvider(provider, undefined, options).getSigner())).signer;
  },
  async viem({ provider }) {
    const shared = { transport: custom(provider), pollingInterval: POLL_MS };
    return Promise.resolve(
      fromViem(createWalletClient({ account: ACCOUNT, chain: base, ...shared }), createPublicClient(shared)).signer,
    );
  },
};

/** What came of one transaction: its hash, or the error. */
async function outcome(name: string, fate: Fate): Promise<unknown> {
  const signer = await WALLETS[name]!(oneAccountChain({ fate }));
  return signer.sendTransaction?.(call).catch((error: unknown) => error);
}

describe('wallets of viem and ethers', () => {
  it('send with a third more gas than estimated, rounded up', async () => {
    expect([3n, 4n, 5n].map(gasLimit)).to.deep.equal([4n, 6n, 7n]);
    for (const [name, walletOn] of Object.entries(WALLETS)) {
      const chain = oneAccountChain();
      await (await walletOn(chain)).sendTransaction?.(call);
      const { to, data, gas } = chain.sent[0]!;
      expect([to, data, BigInt(gas!)], name).to.deep.equal([call.to, call.data, 144_372n]);
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
  }
});
