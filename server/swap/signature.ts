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
 * The signature in the form that Permit2 takes, or null when it will not take it: an account with `code` is asked by ERC-1271, and that is so
 * for EIP-7702 accounts, too; any other must have signed itself, with 65 bytes or 64 in the compact form of EIP-2098. Some wallets end it
 * with 0 or 1 where the chain knows 27 and 28 only, so that is set right.
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
    // As Permit2 will ask it, and no longer than an order may take: what an owner's code does costs whoever simulates it.
    const call = { ...(permit2 === undefined ? {} : { from: permit2 }), to: owner, data, gas: toQuantity(maxGas) };
    const answer = await onOne(eth, async (one) => bytesOf(await one.call('eth_call', [call, 'latest'])));
    return answer.length >= 66 && answer.startsWith(VALID) ? signature : null;
  } catch (error) {
    if (isFailedCall(error)) return null;
    throw error;
  }
}

/** Gas of a check that can't be measured, as when the account refuses what it is asked. */
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
    // Throws for an s in the upper half, of which there would be a second signature for the same digest.
    const { r, s, v, serialized } = Signature.from(signature);
    const signer = recoverAddress(getBytes(digest), { r: r, s: s, v });
    if (signer !== owner) return null;
    return isCompact ? signature : (serialized as Hex);
  } catch {
    return null;
  }
}
