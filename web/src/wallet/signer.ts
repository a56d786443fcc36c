/** A wallet of the browser as the SDK's clients take it. */
import { CurvebookError } from '../../../sdk/src/index.js';
import type { Reader, Signer, TypedData } from '../../../sdk/src/taker.js';
import { gasLimit } from '../../../sdk/src/wallet.js';
import type { Deployment } from '../market-context.js';
import { decoded } from './errors.js';
import { createLook, fateOf } from './mined.js';
import type { Time } from './mined.js';
import { isHash, pendings as ofBrowser } from './pending.js';
import type { Pendings } from './pending.js';
import { readsOf, requireChain } from './provider.js';
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

/**
 * Signs and sends for `address`, on the chain of the deployment alone. Throws CurvebookError; nothing that would revert is sent. What was sent is kept
 * in `pendings` from the moment that its hash is known until its fate is.
 */
export function signerOf(
  provider: Provider,
  address: string,
  deployment: Deployment,
  { pendings = ofBrowser, time }: { pendings?: Pendings; time?: Time } = {},
): Signer {
  const { chain_id: chainId, deployment_id: deploymentId } = deployment;
  const reads = readsOf(provider, deployment);

  async function guarded<T>(job: () => Promise<T>): Promise<T> {
    try {
      await requireChain(provider, chainId);
      return await job();
    } catch (error) {
      throw decoded(error, deployment);
    }
  }

  const ask = (method: string, params: readonly unknown[]): Promise<unknown> => provider.request({ method, params });

  async function mined(hash: string): Promise<string> {
    const look = createLook(reads, { hash, account: address, nonce: null });
    const onLook = (): void => {
      const nonce = look.nonce();
      if (nonce !== null) pendings.learn(hash, nonce);
    };
    const fate = await fateOf(look, { forMs: MINED_MS, everyMs: POLL_MS, onLook }, time);
    if (fate === 'mined') {
      pendings.drop(hash);
      return hash;
    }
    if (fate === null) {
      pendings.release(hash);
      throw new CurvebookError('NOT_MINED', `${hash} is not mined yet`, {
        remedy: 'do not send it again: look for it in the wallet, where it can be sped up or cancelled',
      });
    }
    pendings.end(hash, fate);
    if (fate === 'reverted')
      throw new CurvebookError('REVERTED', `${hash} reverted`, { remedy: 'the state changed meanwhile: try again' });
    const text = `another transaction of the account took the place of ${hash}`;
    const remedy = 'look in the wallet whether it was sped up or cancelled, and in the history';
    throw new CurvebookError('REPLACED', text, { remedy });
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
        await requireChain(provider, chainId);
        // A wallet that moves from here on refuses what is meant for another chain.
        const named = { ...transaction, gas, chainId: `0x${chainId.toString(16)}` };
        const hash = await ask('eth_sendTransaction', [named]);
        if (!isHash(hash)) {
          const remedy = 'it may have sent it all the same: look there before trying again';
          throw new CurvebookError('NO_HASH', 'the wallet does not say what it sent', { remedy });
        }
        pendings.add({ hash, account: address, deployment: deploymentId }, call);
        return mined(hash.toLowerCase());
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
