import { CurvebookError } from './errors.js';
import { gasLimit, notMined, replaced, reverted } from './wallet.js';
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
    chainId?: number;
  }): Promise<{ hash: string; wait(confirms?: number, timeoutMs?: number): Promise<{ status: number | null } | null> }>;
  provider: EthersProvider | null;
}
interface EthersProvider {
  call(transaction: { to: string; data: string; from?: string }): Promise<string>;
  getNetwork(): Promise<{ chainId: bigint }>;
  /** Of those over JSON-RPC. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- its parameters are wider than ours
  send?(method: string, params: any): Promise<unknown>;
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

/** What a signer has sent. It may fail after it has sent something, as when the wallet's network changes: then its error has the hash. */
async function sending(job: ReturnType<EthersSigner['sendTransaction']>): ReturnType<EthersSigner['sendTransaction']> {
  try {
    return await job;
  } catch (error) {
    const { info } = Object(error) as { info?: { sendTransactionHash?: unknown } | null };
    if (typeof info?.sendTransactionHash === 'string') throw notMined(info.sendTransactionHash, error);
    throw error;
  }
}

/** As long as viem waits by itself. Without a time ethers waits for ever, as for a transaction that its node has dropped. */
const WAIT_MS = 180_000;

/** The hash under which the call is in the chain. */
async function mined(sent: Awaited<ReturnType<EthersSigner['sendTransaction']>>): Promise<string> {
  let isGood: boolean;
  try {
    isGood = (await sent.wait(1, WAIT_MS))?.status === 1;
  } catch (error) {
    const { code, reason, receipt, hash = sent.hash } = Object(error) as Ended;
    if (code === 'CALL_EXCEPTION' && (receipt ?? null) !== null) throw reverted(sent.hash, error);
    if (code !== 'TRANSACTION_REPLACED') throw notMined(sent.hash, error);
    if (reason !== 'repriced') throw replaced(sent.hash, hash, error);
    if (receipt?.status !== 1) throw reverted(hash, error);
    return hash;
  }
  if (!isGood) throw reverted(sent.hash);
  return sent.hash;
}

/** The chain that the node behind a provider is on, whatever the provider remembers. */
async function chainIdOf(provider: EthersProvider): Promise<bigint> {
  if (provider.send !== undefined) {
    const said = await provider.send('eth_chainId', []);
    if (typeof said === 'string' && /^0x[0-9a-fA-F]{1,64}$/.test(said)) return BigInt(said);
    throw new CurvebookError('WRONG_CHAIN', `the wallet's node names no chain: ${String(said).slice(0, 40)}`);
  }
  try {
    // One that may be on any network answers once with the network of before.
    await provider.getNetwork();
    return (await provider.getNetwork()).chainId;
  } catch (error) {
    const { code, event } = Object(error) as { code?: unknown; event?: unknown };
    if (code !== 'NETWORK_ERROR' || event !== 'changed') throw error;
    throw new CurvebookError('WRONG_CHAIN', (error as Error).message, { cause: error });
  }
}

/** Signer and reader of an ethers signer. Reading needs a provider. */
export async function fromEthers(signer: EthersSigner): Promise<{ signer: Signer; reader: Reader }> {
  return {
    signer: {
      address: await signer.getAddress(),
      signTypedData: ({ domain, types, message }) => signer.signTypedData(domain, types, message),
      chainId: async () => (signer.provider === null ? null : chainIdOf(signer.provider)),
      async sendTransaction(call, chainId) {
        if (signer.provider === null) throw new CurvebookError('CANNOT_SEND', 'the signer has no provider');
        const gas = { gasLimit: gasLimit(await signer.estimateGas(call)) };
        const on = chainId === undefined ? {} : { chainId };
        return mined(await sending(signer.sendTransaction({ ...call, ...gas, ...on })));
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
