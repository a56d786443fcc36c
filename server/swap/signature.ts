import { Interface, Signature, TypedDataEncoder, getBytes, toQuantity } from 'ethers';
import type { TypedData } from '../../core/swap/typed-data.js';
import { recoverAddress } from '../../core/wire/recover.js';
import type { Address, Hex } from '../../core/types.js';
import { bytesOf, isFailedCall, onOne, type EthReader } from '../../liquidity/eth.js';

const ACCOUNT = new Interface(['function isValidSignature(bytes32, bytes) view returns (bytes4)']);
const VALID = '0x1626ba7e';
export const DEFAULT_CHECK_GAS = 1_000_000n;

/** The digest that a wallet signs for the typed data. */
export function digestOf({ domain, types, message }: TypedData): Hex {
  const { EIP712Domain: _, ...rest } = types;
  return TypedDataEncoder.hash(domain, rest, message) as Hex;
}

/**
 * The signature in the form that Permit2 accepts, or null when Permit2 would refuse it. An account with `code`, also by EIP-7702, is asked
 * by ERC-1271; any other must have signed with its key, in 65 bytes or in the 64 bytes of EIP-2098. A recovery byte of 0 or 1, as some
 * wallets send, is changed to 27 or 28.
 */
export async function acceptedSignature(
  eth: EthReader,
  { owner, code }: { owner: Address; code: Hex },
  digest: Hex,
  signature: Hex,
  { maxGas, permit2 }: { maxGas: bigint; permit2?: Address } = { maxGas: DEFAULT_CHECK_GAS },
): Promise<Hex | null> {
  if (code === '0x') return signedByKey(owner, digest, signature);
  const data = ACCOUNT.encodeFunctionData('isValidSignature', [digest, signature]);
  try {
    // Called as Permit2 will call it, with the most gas that an order may take: an owner's code uses the node's time.
    const call = { ...(permit2 === undefined ? {} : { from: permit2 }), to: owner, data, gas: toQuantity(maxGas) };
    const answer = await onOne(eth, async (one) => bytesOf(await one.call('eth_call', [call, 'latest'])));
    return answer.length >= 66 && answer.startsWith(VALID) ? signature : null;
  } catch (error) {
    if (isFailedCall(error)) return null;
    throw error;
  }
}

/** Gas of a check that can't be measured, for example when the account refuses the test signature. */
const UNMEASURED_CHECK_GAS = 30_000n;
const INTRINSIC_GAS = 21_000n;

/**
 * Gas that an account with code takes to check a signature of a key's length, so that the fee can pay for it; 0 for an account without. Null when it
 * takes more than `maxGas`.
 */
export async function signatureGas(
  eth: EthReader,
  { owner, code }: { owner: Address; code: Hex },
  { maxGas, permit2 }: { maxGas: bigint; permit2: Address },
): Promise<bigint | null> {
  if (code === '0x') return 0n;
  const data = ACCOUNT.encodeFunctionData('isValidSignature', [`0x${'5a'.repeat(32)}`, `0x${'5a'.repeat(65)}`]);
  const call = { from: permit2, to: owner, data, gas: toQuantity(maxGas) };
  try {
    const gas = await onOne(eth, async (one) => BigInt(bytesOf(await one.call('eth_estimateGas', [call]))));
    return gas - INTRINSIC_GAS > UNMEASURED_CHECK_GAS ? gas - INTRINSIC_GAS : UNMEASURED_CHECK_GAS;
  } catch (error) {
    if (/out of gas|gas required exceeds|exceeds allowance/i.test((error as Error).message)) return null;
    if (isFailedCall(error)) return UNMEASURED_CHECK_GAS;
    throw error;
  }
}

function signedByKey(owner: Address, digest: Hex, signature: Hex): Hex | null {
  const isCompact = signature.length === 130;
  if (signature.length !== 132 && !isCompact) return null;
  try {
    // Throws for an s in the upper half, which would allow a second signature of the same digest.
    const { r, s, v, serialized } = Signature.from(signature);
    const signer = recoverAddress(getBytes(digest), { r: r, s: s, v });
    if (signer !== owner) return null;
    return isCompact ? signature : (serialized as Hex);
  } catch {
    return null;
  }
}
