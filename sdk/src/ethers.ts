import { CurvebookError } from './errors.js';
import { gasLimit } from './wallet.js';
import type { Reader, Signer } from './wallet.js';

/** The parts of an ethers signer that are used; ethers itself is not imported. */
interface EthersSigner {
  getAddress(): Promise<string>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- its parameters are wider than ours
  signTypedData(domain: any, types: any, message: any): Promise<string>;
  estimateGas(transaction: { to: string; data: string }): Promise<bigint>;
  sendTransaction(transaction: {
    to: string;
    data: string;
    gasLimit: bigint;
  }): Promise<{ hash: string; wait(): Promise<{ status: number | null } | null> }>;
  provider: { call(transaction: { to: string; data: string; from?: string }): Promise<string> } | null;
}

/** Signer and reader of an ethers signer. Reading needs a provider. */
export async function fromEthers(signer: EthersSigner): Promise<{ signer: Signer; reader: Reader }> {
  return {
    signer: {
      address: await signer.getAddress(),
      signTypedData: ({ domain, types, message }) => signer.signTypedData(domain, types, message),
      async sendTransaction(call) {
        const sent = await signer.sendTransaction({ ...call, gasLimit: gasLimit(await signer.estimateGas(call)) });
        const receipt = await sent.wait();
        if (receipt?.status !== 1) throw new CurvebookError('REVERTED', `${sent.hash} reverted`);
        return sent.hash;
      },
    },
    reader: {
      call(call) {
        if (signer.provider === null) throw new CurvebookError('CANNOT_READ', 'the signer has no provider');
        return signer.provider.call(call);
      },
    },
  };
}
