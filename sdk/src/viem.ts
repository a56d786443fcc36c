import type { Address } from '../../core/types.js';
import { CurvebookError } from './errors.js';
import { gasLimit, replaced, reverted } from './wallet.js';
import type { Reader, Signer } from './wallet.js';

/** The parts of viem's clients that are used; viem itself is not imported. */
interface Wallet {
  account?: { address: string } | undefined;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- viem's own types are generic over the typed data
  signTypedData(args: any): Promise<string>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- and over the chain
  sendTransaction?(args: any): Promise<string>;
}
interface Public {
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

/** Signer and reader of viem's wallet client (with an account) and public client. */
export function fromViem(wallet: Wallet, client: Public): { signer: Signer; reader: Reader } {
  const { account } = wallet;
  if (account === undefined) throw new CurvebookError('NO_ACCOUNT', 'the wallet client has no account');
  return {
    signer: {
      address: account.address,
      signTypedData: (data) => wallet.signTypedData({ account, ...data }),
      async sendTransaction({ to, data }) {
        if (wallet.sendTransaction === undefined)
          throw new CurvebookError('CANNOT_SEND', 'the wallet sends no transactions');
        const gas = gasLimit(await client.estimateGas({ account: account.address, to, data }));
        const hash = await wallet.sendTransaction({ account, to, data, gas });
        const replacements: Replacement[] = [];
        const onReplaced = (one: Replacement): unknown => replacements.push(one);
        const { status, transactionHash } = await client.waitForTransactionReceipt({ hash, onReplaced });
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
