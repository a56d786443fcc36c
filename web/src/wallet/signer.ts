/** A wallet of the browser as the SDK's clients take it. */
import { CurvebookError } from '../../../sdk/src/index.js';
import type { Reader, Signer, TypedData } from '../../../sdk/src/taker.js';
import type { Deployment } from '../market-context.js';
import { decoded } from './errors.js';
import type { Provider } from './provider.js';

const POLL_MS = 500;
/** A transaction that is not mined by then is given up on here, not on the chain. */
const MINED_MS = 300_000;

const DOMAIN_TYPES: Readonly<Record<string, string>> = {
  name: 'string',
  version: 'string',
  chainId: 'uint256',
  verifyingContract: 'address',
  salt: 'bytes32',
};

/** Typed data as wallets want it: with the type of its domain, and integers as text. */
export function typedDataJson({ domain, types, primaryType, message }: TypedData): string {
  const EIP712Domain = Object.entries(DOMAIN_TYPES).flatMap(([name, type]) =>
    domain[name] === undefined ? [] : [{ name, type }],
  );
  return JSON.stringify({ domain, types: { EIP712Domain, ...types }, primaryType, message }, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

export function readerOf(provider: Provider): Reader {
  return {
    async call(call) {
      return (await provider.request({ method: 'eth_call', params: [call, 'latest'] })) as string;
    },
  };
}

/** Signs and sends for `address`, on the chain of the deployment alone. Throws CurvebookError; nothing that would revert is sent. */
export function signerOf(provider: Provider, address: string, deployment: Deployment): Signer {
  async function guarded<T>(job: () => Promise<T>): Promise<T> {
    try {
      const chainId = BigInt((await provider.request({ method: 'eth_chainId' })) as string);
      if (chainId !== BigInt(deployment.chain_id)) {
        const text = `the wallet is on chain ${chainId}, this deployment on ${deployment.chain_id}`;
        throw new CurvebookError('WRONG_CHAIN', text, { remedy: 'switch the chain in the wallet' });
      }
      return await job();
    } catch (error) {
      throw decoded(error, deployment);
    }
  }

  async function mined(hash: string): Promise<string> {
    for (const endMs = Date.now() + MINED_MS; Date.now() < endMs;) {
      const receipt = (await provider.request({ method: 'eth_getTransactionReceipt', params: [hash] })) as {
        status?: string;
      } | null;
      if (receipt !== null) {
        if (receipt.status === '0x1') return hash;
        throw new CurvebookError('REVERTED', `${hash} reverted`, { remedy: 'the state changed meanwhile: try again' });
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    throw new CurvebookError('NOT_MINED', `${hash} is not mined yet`, { remedy: 'look for it in the wallet' });
  }

  return {
    address,
    signTypedData: (data) =>
      guarded(
        async () =>
          (await provider.request({
            method: 'eth_signTypedData_v4',
            params: [address, typedDataJson(data)],
          })) as string,
      ),
    sendTransaction: (call) =>
      guarded(async () => {
        const transaction = { from: address, ...call };
        // Says why it would revert, which many wallets don't.
        await provider.request({ method: 'eth_call', params: [transaction, 'latest'] });
        return mined((await provider.request({ method: 'eth_sendTransaction', params: [transaction] })) as string);
      }),
  };
}

/** Asks a wallet for the chain of the deployment; one that it does not know is offered to it with the server's endpoint. */
export async function switchChain(provider: Provider, deployment: Deployment): Promise<void> {
  const chainId = `0x${deployment.chain_id.toString(16)}`;
  try {
    await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] });
  } catch (error) {
    if ((error as { code?: unknown }).code !== 4902 || deployment.rpc_url === null) throw decoded(error, deployment);
    const chain = {
      chainId,
      chainName: `Chain ${deployment.chain_id}`,
      rpcUrls: [deployment.rpc_url],
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    };
    try {
      await provider.request({ method: 'wallet_addEthereumChain', params: [chain] });
    } catch (failure) {
      throw decoded(failure, deployment);
    }
  }
}
