import type { Address } from '../../core/types.js';
import { CurvebookError } from './errors.js';
import { gasLimit, notMined, replaced, reverted } from './wallet.js';
import type { Reader, Signer } from './wallet.js';

/** The parts of viem's clients that are used; viem itself is not imported. */
interface Wallet {
  account?: { address: string } | undefined;
  chain?: { id: number } | undefined;
  getChainId(): Promise<number>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- viem's own types are generic over the typed data
  signTypedData(args: any): Promise<string>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- and over the chain
  sendTransaction?(args: any): Promise<string>;
}
interface Public {
  getChainId(): Promise<number>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  call(args: any): Promise<{ data?: string | undefined }>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  estimateGas(args: any): Promise<bigint>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  waitForTransactionReceipt(args: any): Promise<{ status: string; transactionHash: string }>;
}

interface Replacement {
  reason: 'cancelled' | 'replaced' | 'repriced';
}

/** viem sends on no other chain than the one that it is given; a chain that the wallet client knows has its own ways, which are kept. */
function chainOf(wallet: Wallet, id: number): object {
  if (wallet.chain?.id === id) return wallet.chain;
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 };
  return { id, name: `Chain ${id}`, nativeCurrency, rpcUrls: { default: { http: [] } } };
}

/** Signer and reader of viem's wallet client (with an account) and public client. */
export function fromViem(wallet: Wallet, client: Public): { signer: Signer; reader: Reader } {
  const { account } = wallet;
  if (account === undefined) throw new CurvebookError('NO_ACCOUNT', 'the wallet client has no account');
  return {
    signer: {
      address: account.address,
      signTypedData: (data) => wallet.signTypedData({ account, ...data }),
      async chainId() {
        // The one sends, the other estimates and waits.
        const [ofWallet, ofClient] = await Promise.all([wallet.getChainId(), client.getChainId()]);
        if (ofWallet === ofClient) return ofWallet;
        const text = `the wallet client is on chain ${ofWallet}, the public client on ${ofClient}`;
        throw new CurvebookError('WRONG_CHAIN', text);
      },
      async sendTransaction({ to, data }, chainId) {
        if (wallet.sendTransaction === undefined)
          throw new CurvebookError('CANNOT_SEND', 'the wallet sends no transactions');
        const gas = gasLimit(await client.estimateGas({ account: account.address, to, data }));
        const on = chainId === undefined ? {} : { chain: chainOf(wallet, chainId) };
        const hash = await wallet.sendTransaction({ account, to, data, gas, ...on });
        const replacements: Replacement[] = [];
        const onReplaced = (one: Replacement): unknown => replacements.push(one);
        const { status, transactionHash } = await client
          .waitForTransactionReceipt({ hash, onReplaced })
          .catch((error: unknown) => {
            throw notMined(hash, error);
          });
        // The receipt may be that of another transaction of the account; `repriced` is the same call for another price.
        if (replacements.some(({ reason }) => reason !== 'repriced')) throw replaced(hash, transactionHash);
        if (status !== 'success') throw reverted(transactionHash);
        return transactionHash;
      },
    },
    reader: {
      async call({ to, data, from }) {
        return (
          (await client.call({ to, data, ...(from === undefined ? {} : { account: from satisfies Address }) })).data ??
          '0x'
        );
      },
    },
  };
}
