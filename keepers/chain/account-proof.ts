import { decodeRlp } from 'ethers';
import { toSafeInt } from '../../core/amounts.js';
import { hexToBytes, keccak256 } from '../../core/hash.js';
import type { Address, Hex } from '../../core/types.js';
import { headerHash } from './header-hash.js';
import { RpcContradictionError, toQuantity, type Rpc } from './rpc.js';

/** A block whose hash was proven, as the ledger has it. */
export interface ProvenBlock {
  number: number;
  hash: Hex;
}

/** Most nodes of a proof: more than any path of 64 nibbles has. */
const MAX_NODES = 66;
const HASH_HEX = 66;

/**
 * How many transactions an account had sent at the end of a block, by a proof (EIP-1186) against the state root in the header of that hash,
 * so that the endpoint can't invent it. Throws RpcContradictionError for an invalid proof, RpcUnavailableError and RpcResponseError where
 * the endpoint has no such block or gives no proofs.
 */
export async function provenNonce(rpc: Rpc, account: Address, block: ProvenBlock): Promise<number> {
  const at = toQuantity(block.number);
  const [header, proof] = await rpc.batch([
    { method: 'eth_getBlockByNumber', params: [at, false] },
    { method: 'eth_getProof', params: [account, [], at] },
  ]);
  try {
    const fields = header as Readonly<Record<string, unknown>>;
    if (headerHash(fields) !== block.hash) throw new RangeError('the header is of another block');
    const nodes = (proof as { accountProof: Hex[] }).accountProof;
    const root = (fields['stateRoot'] as string).toLowerCase() as Hex;
    return nonceOf(proveValue(root, keccak256(hexToBytes(account)), nodes));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new RpcContradictionError(`${rpc.name} proves no account at block ${block.number}: ${message}`, rpc, error);
  }
}

function nonceOf(account: Hex | null): number {
  if (account === null) return 0;
  const fields = decodeRlp(account);
  const nonce = Array.isArray(fields) ? fields[0] : undefined;
  if (!Array.isArray(fields) || fields.length < 4 || typeof nonce !== 'string') throw new RangeError('no account');
  return nonce === '0x' ? 0 : toSafeInt(BigInt(nonce));
}

/**
 * The value under a key of 32 bytes in the trie with this root; null when the nodes prove that there is none. Values must be at least as
 * long as a hash, as accounts are, so that no node is embedded in another one. The root is lower case. Throws RangeError when the nodes prove neither.
 */
export function proveValue(root: Hex, key: Hex, nodes: readonly Hex[]): Hex | null {
  const isList: boolean = Array.isArray(nodes);
  if (!isList || nodes.length > MAX_NODES) throw new RangeError('no list of nodes');
  const nibbles = key.slice(2);
  let expected: string = root;
  let at = 0;
  for (const raw of nodes) {
    if (keccak256(hexToBytes(raw)) !== expected) throw new RangeError('a node has another hash than its parent names');
    const node = itemsOf(raw);
    if (node.length === 17) {
      const child = node[parseInt(nibbles[at] ?? '', 16)];
      if (child === '0x') return null;
      expected = requireHash(child);
      at += 1;
      continue;
    }
    const { path, isLeaf } = pathOf(node);
    if (!nibbles.startsWith(path, at)) return null;
    at += path.length;
    if (isLeaf) {
      if (at !== nibbles.length) throw new RangeError('a leaf above the end of the key');
      return node[1] as Hex;
    }
    expected = requireHash(node[1]);
  }
  throw new RangeError('the nodes end before the key does');
}

function itemsOf(raw: Hex): string[] {
  const items = decodeRlp(raw);
  if (!Array.isArray(items) || !items.every((item) => typeof item === 'string')) throw new RangeError('no node');
  return items;
}

function requireHash(child: string | undefined): string {
  if (child?.length !== HASH_HEX) throw new RangeError('a node that names no hash');
  return child;
}

/** The yellow paper's hex prefix (appendix C). */
function pathOf(node: readonly string[]): { path: string; isLeaf: boolean } {
  const encoded = node[0]?.slice(2) ?? '';
  const flag = parseInt(encoded[0] ?? '', 16);
  if (node.length !== 2 || !(flag <= 3)) throw new RangeError('no node');
  return { path: encoded.slice(flag % 2 === 1 ? 1 : 2), isLeaf: flag >= 2 };
}
