/** What the clients need of a wallet. `@curvebook/sdk/viem` and `@curvebook/sdk/ethers` adapt the wallets of those libraries. */
import { minBig, wordOf } from '../../core/amounts.js';
import { hexToBytes, keccakText } from '../../core/hash.js';
import type { Address, Hex } from '../../core/types.js';
import { CurvebookError } from './errors.js';

export interface TypedData {
  domain: Record<string, unknown>;
  /** Without `EIP712Domain`. */
  types: Record<string, { name: string; type: string }[]>;
  primaryType: string;
  message: Record<string, unknown>;
}

interface Call {
  to: Address;
  data: Hex;
}

/** Signs and sends for one account. */
export interface Signer {
  address: string;
  signTypedData(data: TypedData): Promise<string>;
  /**
   * Resolves with the transaction's hash once it is mined; rejects when it reverted, and when another one took its place. It is not to be executed on
   * any other chain than `chainId`. Absent where only messages are signed.
   */
  sendTransaction?(call: Call, chainId?: number): Promise<string>;
  /** The chain that the wallet is on now; null for a key that is on none. Where it is absent, the wallet itself has to refuse other chains. */
  chainId?(): Promise<bigint | number | null>;
}

/** Throws CurvebookError `WRONG_CHAIN` when the wallet says that it is on another chain. */
export async function assertChain(signer: Signer, chainId: number): Promise<void> {
  const at = (await signer.chainId?.()) ?? null;
  if (at !== null && BigInt(at) !== BigInt(chainId))
    throw new CurvebookError('WRONG_CHAIN', `the wallet is on chain ${at}, the contracts are on ${chainId}`);
}

/**
 * The gas limit of a transaction that was estimated: a third more, rounded up. By the time it is mined another curve may be posted or more of this one
 * taken, which costs some gas more; a transaction with exactly what was estimated would then be paid for and bring nothing.
 */
export function gasLimit(estimatedGas: bigint): bigint {
  return (estimatedGas * 4n + 2n) / 3n;
}

/** A transaction that changed nothing. */
export const reverted = (hash: string, cause?: unknown): CurvebookError =>
  new CurvebookError('REVERTED', `${hash} reverted`, { cause });

/** A transaction that will never be mined, because `by` has its nonce. */
export const replaced = (hash: string, by: string, cause?: unknown): CurvebookError =>
  new CurvebookError('REPLACED', `another transaction of the account, ${by}, took the place of ${hash}`, { cause });

/** A transaction of which it is not known whether it will be mined, for whatever reason: it must not be taken for one that failed. */
export const notMined = (hash: string, cause: unknown): CurvebookError =>
  new CurvebookError('NOT_MINED', `${hash} was sent, and whether it is mined is not known`, { cause });

/** Reads from the chain. */
export interface Reader {
  /** eth_call at the newest block. */
  call(call: Call & { from?: Address }): Promise<string>;
}

/** An address in lower case. Throws CurvebookError `BAD_ARGUMENT`. */
export function asAddress(text: string, what = 'address'): Address {
  if (typeof text !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(text))
    throw new CurvebookError('BAD_ARGUMENT', `${what} is no address: ${text}`);
  return text.toLowerCase() as Address;
}

/** Call data of a function whose arguments are addresses and unsigned integers: the selector and a word for each. */
export function callData(signature: string, args: readonly (Address | bigint)[]): Hex {
  const words = args.map((arg) => {
    const value = BigInt(arg);
    if (value < 0n || value >= 1n << 256n)
      throw new CurvebookError('BAD_ARGUMENT', `${signature}: ${value} is no uint256`);
    return wordOf(value);
  });
  return `${keccakText(signature).slice(0, 10) as Hex}${words.join('')}`;
}

/** The first word of what a call returned. Throws CurvebookError `NO_CONTRACT` when there is none. */
export function firstWord(answer: string): bigint {
  if (!/^0x[0-9a-fA-F]{64}/.test(answer))
    throw new CurvebookError('NO_CONTRACT', `no contract answers there: ${String(answer).slice(0, 40)}`);
  return BigInt(answer.slice(0, 66));
}

/** r, s and v of a signature of 65 bytes, as requests carry them. Throws CurvebookError `BAD_SIGNATURE`. */
export function splitSignature(signature: string): { r: Hex; s: Hex; v: 27 | 28 } {
  if (typeof signature !== 'string' || !/^0x[0-9a-fA-F]{130}$/.test(signature))
    throw new CurvebookError('BAD_SIGNATURE', 'a signature has 65 bytes, as hex');
  const [last = 0] = hexToBytes(`0x${signature.slice(130)}`);
  const v = last < 27 ? last + 27 : last;
  if (v !== 27 && v !== 28) throw new CurvebookError('BAD_SIGNATURE', `v is ${last}`);
  return { r: signature.slice(0, 66) as Hex, s: `0x${signature.slice(66, 130)}`, v };
}

/** Sends on one chain; nothing is sent while the wallet is on another. Throws CurvebookError `CANNOT_SEND` if the signer sends nothing. */
export function senderOf(signer: Signer, chainId: number): (call: Call) => Promise<string> {
  const { sendTransaction } = signer;
  if (sendTransaction === undefined) throw new CurvebookError('CANNOT_SEND', 'this signer sends no transactions');
  return async (call) => {
    await assertChain(signer, chainId);
    return sendTransaction.call(signer, call, chainId);
  };
}

const MAX_UINT256 = 2n ** 256n - 1n;

/**
 * Lets `spender` take at least `units` of a token from the signer. If the allowance is lower, one transaction sets it to exactly `units`; with
 * `isMore` that is beside all that may be taken already, up to the most that an allowance can be, which tokens take for one without end.
 * Once `signal` is aborted, it throws its reason and asks for nothing.
 */
export async function allow(
  { signer, reader, chainId }: { signer: Signer; reader: Reader; chainId: number },
  { token, spender, units, isMore = false }: { token: Address; spender: Address; units: bigint; isMore?: boolean },
  signal?: AbortSignal,
): Promise<string | null> {
  const owner = asAddress(signer.address);
  const data = callData('allowance(address,address)', [owner, spender]);
  const allowedUnits = firstWord(await reader.call({ to: token, data }));
  const wantedUnits = isMore ? minBig(allowedUnits + units, MAX_UINT256) : units;
  signal?.throwIfAborted();
  if (allowedUnits >= wantedUnits) return null;
  return senderOf(signer, chainId)({ to: token, data: callData('approve(address,uint256)', [spender, wantedUnits]) });
}
