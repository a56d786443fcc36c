/** The taker's signatures: of an order of the settler, and of other typed data. */
import { HDNodeWallet, Mnemonic } from 'ethers';
import { orderTypedData, type OrderTerms } from '../../core/swap/typed-data.js';
import type { Address, Hex } from '../../core/types.js';
import { PERMIT2_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { SANDBOX_CHAIN_ID, SANDBOX_MNEMONIC } from '../../deploy/sandbox/accounts.js';
import { digestOf } from '../../server/swap/signature.js';
import type { Venue } from './curvebook.js';
import { TAKER } from './world.js';

export function signatureOf({ settler }: Venue, terms: OrderTerms): Hex {
  const lower = (address: string) => address.toLowerCase() as Address;
  const domain = { chainId: SANDBOX_CHAIN_ID, permit2: lower(PERMIT2_ADDRESS), spender: lower(settler.address) };
  return signedByTaker(digestOf(orderTypedData(terms, domain)));
}

export const takerKey = (): HDNodeWallet =>
  HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(SANDBOX_MNEMONIC), "m/44'/60'/0'/0").deriveChild(TAKER);

export const signedByTaker = (digest: Hex): Hex => takerKey().signingKey.sign(digest).serialized as Hex;
