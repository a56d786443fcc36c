/** A wallet of the browser as the SDK's clients take it. */
import { CurvebookError } from '../../../sdk/src/index.js';
import type { Reader, Signer, TypedData } from '../../../sdk/src/taker.js';
import { gasLimit } from '../../../sdk/src/wallet.js';
import type { Deployment } from '../market-context.js';
import { decoded } from './errors.js';
import type { Provider } from './provider.js';

const POLL_MS = 500;
/** A transaction that is not mined by then is given up on here, not on the chain. */
const MINED_MS = 300_000;

/** Behind one endpoint are several nodes, which are not equally far. */
const REPLACED_LOOKS = 3;

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

  const ask = (method: string, params: readonly unknown[]): Promise<unknown> => provider.request({ method, params });

  async function receiptOf(hash: string): Promise<string | null> {
    const receipt = (await ask('eth_getTransactionReceipt', [hash])) as { status?: string } | null;
    if (receipt === null || receipt.status === '0x1') return receipt === null ? null : hash;
    throw new CurvebookError('REVERTED', `${hash} reverted`, { remedy: 'the state changed meanwhile: try again' });
  }

  async function mined(hash: string): Promise<string> {
    let nonce: bigint | null = null;
    let looksReplaced = 0;
    for (const endMs = Date.now() + MINED_MS; Date.now() < endMs;) {
      const sent = (await ask('eth_getTransactionByHash', [hash])) as { nonce?: string } | null;
      if (typeof sent?.nonce === 'string') nonce = BigInt(sent.nonce);
      const count = BigInt((await ask('eth_getTransactionCount', [address, 'latest'])) as string);
      // Asked last: whatever was counted has its receipt by now.
      const found = await receiptOf(hash);
      if (found !== null) return found;
      looksReplaced = nonce !== null && count > nonce ? looksReplaced + 1 : 0;
      if (looksReplaced === REPLACED_LOOKS) {
        const text = `another transaction of the account took the place of ${hash}`;
        const remedy = 'look in the wallet whether it was sped up or cancelled, and in the history';
        throw new CurvebookError('REPLACED', text, { remedy });
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
        await ask('eth_call', [transaction, 'latest']);
        // Wallets differ in how much they add to what they estimate, down to nothing.
        const gas = `0x${gasLimit(BigInt((await ask('eth_estimateGas', [transaction])) as string)).toString(16)}`;
        return mined((await ask('eth_sendTransaction', [{ ...transaction, gas }])) as string);
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
