import { CurvebookError } from './errors.js';
import { gasLimit, replaced, reverted } from './wallet.js';
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

/** What `wait` rejects with once it knows what became of the transaction. */
interface Ended {
  code?: unknown;
  /** Of TRANSACTION_REPLACED; `repriced` is the same call for another price. */
  reason?: unknown;
  /** Of the transaction that took its place. */
  hash?: string;
  receipt?: { status: number | null } | null;
}

/** The hash under which the call is in the chain. */
async function mined(sent: Awaited<ReturnType<EthersSigner['sendTransaction']>>): Promise<string> {
  try {
    const receipt = await sent.wait();
    if (receipt?.status !== 1) throw reverted(sent.hash);
    return sent.hash;
  } catch (error) {
    const { code, reason, receipt, hash = sent.hash } = Object(error) as Ended;
    if (code === 'CALL_EXCEPTION' && receipt instanceof Object) throw reverted(sent.hash, error);
    if (code !== 'TRANSACTION_REPLACED') throw error;
    if (reason !== 'repriced') throw replaced(sent.hash, hash, error);
    if (receipt?.status !== 1) throw reverted(hash, error);
    return hash;
  }
}

/** Signer and reader of an ethers signer. Reading needs a provider. */
export async function fromEthers(signer: EthersSigner): Promise<{ signer: Signer; reader: Reader }> {
  return {
    signer: {
      address: await signer.getAddress(),
      signTypedData: ({ domain, types, message }) => signer.signTypedData(domain, types, message),
      async sendTransaction(call) {
        return mined(await signer.sendTransaction({ ...call, gasLimit: gasLimit(await signer.estimateGas(call)) }));
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
