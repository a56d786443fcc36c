/** Wallets of viem and ethers as the clients take them: what they send, and what they say when it failed. */
import { expect } from 'chai';
import { fromEthers } from '../../sdk/src/ethers.js';
import { fromViem } from '../../sdk/src/viem.js';
import { gasLimit, type Signer } from '../../sdk/src/wallet.js';

const address = `0x${'11'.repeat(20)}`;
const call = { to: `0x${'22'.repeat(20)}`, data: '0x1234' } as const;
const ESTIMATED = 108_279n;

/** Signers over a chain where transactions end in `success` or not; `sent` is what they sent. */
async function wallets(success: boolean): Promise<Record<string, { signer: Signer; sent: object[] }>> {
  const [ofViem, ofEthers]: [object[], object[]] = [[], []];
  const wallet = {
    account: { address },
    signTypedData: () => Promise.resolve('0x'),
    sendTransaction: (transaction: object) => Promise.resolve(`0x${ofViem.push(transaction)}`),
  };
  const client = {
    call: () => Promise.resolve({}),
    estimateGas: () => Promise.resolve(ESTIMATED),
    waitForTransactionReceipt: ({ hash }: { hash: string }) =>
      Promise.resolve({ status: success ? 'success' : 'reverted', transactionHash: hash }),
  };
  const ethers = {
    getAddress: () => Promise.resolve(address),
    signTypedData: () => Promise.resolve('0x'),
    estimateGas: () => Promise.resolve(ESTIMATED),
    sendTransaction: (transaction: object) =>
      Promise.resolve({
        hash: `0x${ofEthers.push(transaction)}`,
        wait: () => Promise.resolve({ status: success ? 1 : 0 }),
      }),
    provider: null,
  };
  return {
    viem: { signer: fromViem(wallet, client).signer, sent: ofViem },
    ethers: { signer: (await fromEthers(ethers)).signer, sent: ofEthers },
  };
}

describe('wallets of viem and ethers', () => {
  it('send with a third more gas than estimated, rounded up', async () => {
    expect([3n, 4n, 5n].map(gasLimit)).to.deep.equal([4n, 6n, 7n]);
    const { viem, ethers } = await wallets(true);
    for (const one of [viem, ethers]) expect(await one?.signer.sendTransaction?.(call)).to.equal('0x1');
    expect(viem?.sent).to.deep.equal([{ account: { address }, ...call, gas: 144_372n }]);
    expect(ethers?.sent).to.deep.equal([{ ...call, gasLimit: 144_372n }]);
  });

  it('say so when a transaction reverted', async () => {
    for (const [name, { signer }] of Object.entries(await wallets(false)))
      expect(await signer.sendTransaction?.(call).catch((error: unknown) => error), name).to.include({
        code: 'REVERTED',
      });
  });
});
