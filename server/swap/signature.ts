import { Interface, Signature, TypedDataEncoder, getBytes } from 'ethers';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import { recoverAddress } from '../../core/wire/recover.js';
import type { Address, Hex } from '../../core/types.js';
import { isFailedCall, type EthReader } from '../../liquidity/eth.js';

const ACCOUNT = new Interface(['function isValidSignature(bytes32, bytes) view returns (bytes4)']);
const VALID = '0x1626ba7e';

/** The digest that a wallet signs for the typed data. */
export function digestOf({ domain, types, message }: OrderTypedData): Hex {
  const { EIP712Domain: _, ...rest } = types;
  return TypedDataEncoder.hash(domain, rest, message) as Hex;
}

/**
 * The signature in the form that Permit2 takes, or null when it will not take it: an account with `code` is asked by ERC-1271, and that is so
 * for EIP-7702 accounts, too; any other must have signed itself, with 65 bytes or 64 in the compact form of EIP-2098. Some wallets end it
 * with 0 or 1 where the chain knows 27 and 28 only, so that is set right.
 */
export async function acceptedSignature(
  eth: EthReader,
  { owner, code }: { owner: Address; code: Hex },
  digest: Hex,
  signature: Hex,
): Promise<Hex | null> {
  if (code === '0x') return signedByKey(owner, digest, signature);
  const data = ACCOUNT.encodeFunctionData('isValidSignature', [digest, signature]);
  try {
    const answer = (await eth.call('eth_call', [{ to: owner, data }, 'latest'])) as Hex;
    return answer.length >= 66 && answer.startsWith(VALID) ? signature : null;
  } catch (error) {
    if (isFailedCall(error)) return null;
    throw error;
  }
}

function signedByKey(owner: Address, digest: Hex, signature: Hex): Hex | null {
  const isCompact = signature.length === 130;
  if (signature.length !== 132 && !isCompact) return null;
  try {
    // Throws for an s in the upper half, of which there would be a second signature for the same digest.
    const { r, s, v, serialized } = Signature.from(signature);
    const signer = recoverAddress(getBytes(digest), { r: r, s: s, v });
    if (signer !== owner) return null;
    return isCompact ? signature : (serialized as Hex);
  } catch {
    return null;
  }
}
