import { Interface, Signature, TypedDataEncoder, recoverAddress } from 'ethers';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import type { Address, Hex } from '../../core/types.js';
import type { EthReader } from '../../liquidity/eth.js';

const ACCOUNT = new Interface(['function isValidSignature(bytes32, bytes) view returns (bytes4)']);
const VALID = '0x1626ba7e';

/** The digest that a wallet signs for the typed data. */
export function digestOf({ domain, types, message }: OrderTypedData): Hex {
  const { EIP712Domain: _, ...rest } = types;
  return TypedDataEncoder.hash(domain, rest, message) as Hex;
}

/**
 * Whether Permit2 will take the signature: an account with code is asked by ERC-1271, and that is so for EIP-7702 accounts, too; any other
 * must have signed itself, with 65 bytes or 64 in the compact form.
 */
export async function isSignedBy(eth: EthReader, owner: Address, digest: Hex, signature: Hex): Promise<boolean> {
  const code = (await eth.call('eth_getCode', [owner, 'latest'])) as Hex;
  if (code === '0x') return isSignedByKey(owner, digest, signature);
  const data = ACCOUNT.encodeFunctionData('isValidSignature', [digest, signature]);
  try {
    const answer = (await eth.call('eth_call', [{ to: owner, data }, 'latest'])) as Hex;
    return answer.length >= 66 && answer.startsWith(VALID);
  } catch (error) {
    if (isAnswer(error)) return false;
    throw error;
  }
}

function isSignedByKey(owner: Address, digest: Hex, signature: Hex): boolean {
  if (signature.length !== 132 && signature.length !== 130) return false;
  try {
    return recoverAddress(digest, Signature.from(signature)).toLowerCase() === owner;
  } catch {
    return false;
  }
}

/** The node answered, and its answer is that the call reverts. A node that can't be reached has no code. */
export function isAnswer(error: unknown): boolean {
  return typeof (error as { code?: unknown }).code === 'number';
}
