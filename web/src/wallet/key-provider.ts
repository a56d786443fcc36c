/** A wallet made of a private key: a sandbox's built-in accounts, and agents that this page made. Loaded only when one is used. */
import { privateKeyToAccount } from 'viem/accounts';
import { toSafeInt } from '../../../core/amounts.js';
import type { Hex } from '../../../core/types.js';
import type { Provider } from './provider.js';

/** What nodes say when another transaction of the account was quicker: nothing was sent. */
const NONCE_TAKEN = /nonce|underpriced|already known/i;
const SEND_TRIES = 4;

interface Transaction {
  from: string;
  to: Hex;
  data: Hex;
  gas: Hex;
  /** Of the chain that it is meant for. */
  chainId: Hex;
}

type TypedDataOfWallets = Parameters<ReturnType<typeof privateKeyToAccount>['signTypedData']>[0];

/** Signs with the key; everything else is asked of `rpc`, without which it only signs. */
export function keyProvider(privateKey: string, rpc: Provider | null): Provider & { address: string } {
  const account = privateKeyToAccount(privateKey as Hex);
  const ask = async (method: string, params: readonly unknown[] = []): Promise<string> => {
    if (rpc === null) throw new Error('this key only signs');
    return (await rpc.request({ method, params })) as string;
  };

  /** The accounts of a sandbox are shared with its bots. */
  async function send(transaction: Transaction): Promise<string> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await sendOnce(transaction);
      } catch (error) {
        if (tries === SEND_TRIES || !(error instanceof Error && NONCE_TAKEN.test(error.message))) throw error;
      }
    }
  }

  async function sendOnce({ to, data, gas, chainId: wanted }: Transaction): Promise<string> {
    const from = account.address;
    const [chainId, nonce, block] = await Promise.all([
      ask('eth_chainId'),
      ask('eth_getTransactionCount', [from, 'pending']),
      rpc?.request({ method: 'eth_getBlockByNumber', params: ['latest', false] }) as Promise<{
        baseFeePerGas: string;
      }>,
    ]);
    if (BigInt(chainId) !== BigInt(wanted)) throw new Error(`the endpoint is on chain ${BigInt(chainId)}`);
    const tip = 1_000_000_000n;
    const signed = await account.signTransaction({
      type: 'eip1559',
      chainId: toSafeInt(BigInt(chainId)),
      nonce: toSafeInt(BigInt(nonce)),
      to,
      data,
      gas: BigInt(gas),
      maxPriorityFeePerGas: tip,
      maxFeePerGas: BigInt(block.baseFeePerGas) * 2n + tip,
    });
    return ask('eth_sendRawTransaction', [signed]);
  }

  return {
    address: account.address.toLowerCase(),
    async request({ method, params = [] }) {
      switch (method) {
        case 'eth_requestAccounts':
        case 'eth_accounts':
          return [account.address.toLowerCase()];
        case 'eth_signTypedData_v4':
          return account.signTypedData(JSON.parse(params[1] as string) as TypedDataOfWallets);
        case 'eth_sendTransaction':
          return send(params[0] as Transaction);
        default:
          return ask(method, params);
      }
    },
  };
}
