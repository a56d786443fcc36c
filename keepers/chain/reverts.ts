/** Reads what calls revert with, by the errors of the platform's contracts, of Permit2 and of the language. */
import { Interface } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';
import { RpcResponseError, revertData, toQuantity, type Rpc } from './rpc.js';

const PERMIT2 = new Interface([
  'error InvalidNonce()',
  'error InvalidSigner()',
  'error InvalidSignature()',
  'error InvalidContractSignature()',
  'error InvalidSignatureLength()',
  'error InvalidAmount(uint256 maxAmount)',
]);
const STRINGS = new Interface(['error Error(string reason)', 'error Panic(uint256 code)']);
const INTERFACES = [
  OrderSettler__factory.createInterface(),
  Entrypoint__factory.createInterface(),
  CurveBook__factory.createInterface(),
  Custodian__factory.createInterface(),
  PERMIT2,
  STRINGS,
];

/** Characters of a text that a contract gave as its reason. */
const TEXT_CHARS = 120;
/** What a reason may not bring into a log, a page or a database: PostgreSQL stores no text with a zero byte. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}]/gu;
/** Calls within calls whose reasons are looked into: each level of data that a stranger nests is decoded again. */
export const MOST_DEPTH = 4;

/**
 * An error by its name, and the text or the data of an error within that its last argument is; null when no known contract has it, or
 * when it does not decode. By position: every interface knows `Error(string)` by itself, and there the argument has no name. Contracts of
 * strangers write the data: anything may stand behind a known selector, and any character in a text.
 */
export function parsedError(data: string): { name: string; reason: string } | null {
  if (data.length < 10) return null;
  for (const abi of INTERFACES) {
    try {
      const parsed = abi.parseError(data);
      if (parsed === null) continue;
      // Read by its index an argument that can't be decoded throws; `at` would give the error in its place.
      const last: unknown = parsed.args[parsed.args.length - 1];
      const reason = typeof last === 'string' || typeof last === 'bigint' ? `${last}` : '';
      return { name: parsed.name, reason: reason.replace(UNPRINTABLE, '\uFFFD') };
    } catch {
      return null;
    }
  }
  return null;
}

/** The name of the error, or the text of a `require`; of a failed call to a venue the error inside. The selector when nobody knows it, null without data. */
function errorName(data: string | null, depth = 0): string | null {
  if (data === null || data.length < 10) return null;
  const parsed = parsedError(data);
  if (parsed === null) return data.slice(0, 10);
  if (parsed.name === 'Error') return parsed.reason.slice(0, TEXT_CHARS);
  if (parsed.name !== 'CallFailed' || depth === MOST_DEPTH) return parsed.name;
  return errorName(parsed.reason, depth + 1) ?? parsed.name;
}

/**
 * Why a mined transaction reverted, as far as it does so again at the end of its block. One endpoint says it: it is for people to read, and decides
 * nothing about money. Null where the node does not answer, or the call does not revert again.
 */
export async function revertReason(rpc: Rpc, hash: Hex, blockNumber: number): Promise<string | null> {
  try {
    const tx = (await rpc.call('eth_getTransactionByHash', [hash])) as {
      from: Address;
      to: Address;
      input: Hex;
      gas: Hex;
    } | null;
    if (tx === null) return null;
    // With the gas that it had: without, an account's code could have a node work for all that the node grants, and less gas reverts otherwise.
    const call = { from: tx.from, to: tx.to, data: tx.input, gas: tx.gas };
    await rpc.call('eth_call', [call, toQuantity(blockNumber)]);
    return null;
  } catch (error) {
    // A node that fails is reported elsewhere.
    return error instanceof RpcResponseError ? errorName(revertData(error.data)) : null;
  }
}
