import { keccak256 } from '../../core/hash.js';
import type { Hex } from '../../core/types.js';
import { hexBytes, rlp, rlpList, scalar, type RlpItem } from './rlp.js';

/** The fields of an RPC's receipt that the receipts root covers. Nothing else in the answer is proven. */
export interface RpcReceipt {
  /** Absent in receipts of old nodes, which know one type only. */
  type?: string | null;
  status?: string | null;
  /** The state's root in the place of the status, before Byzantium. */
  root?: string | null;
  cumulativeGasUsed: string;
  logsBloom: string;
  logs: readonly { address: string; topics: readonly string[]; data: string }[];
  /** Of rollups' deposits. */
  depositNonce?: string | null;
  depositReceiptVersion?: string | null;
}

const DEPOSIT_TYPE = '7e';
/** EIP-2718: above it begin lists, and with them the receipts that have no type. */
const MAX_TYPE = 0x7f;

/**
 * A receipt as it stands in the block's trie, as hex without 0x (EIP-2718; for deposits the rollups' specification). A deposit's nonce is
 * included only together with a version: before versions, nodes answer a nonce that the root leaves out. Unknown types are encoded like all
 * others; the root decides whether that is right. No two receipts have the same encoding: the type must be one byte, or it could contain
 * the beginning of another receipt, whose end is data that anybody may log. Throws RangeError or TypeError for what is no receipt.
 */
export function encodeReceipt(receipt: RpcReceipt): string {
  const type = scalar(receipt.type ?? '0x0').slice(2);
  if (type.length > 2 || parseInt(type, 16) > MAX_TYPE)
    throw new RangeError(`no type of a receipt: 0x${type.slice(0, 40)}`);
  const outcome = given(receipt.status) ? scalar(receipt.status) : (receipt.root ?? '');
  const logs: RlpItem = receipt.logs.map(({ address, topics, data }) => [address, topics, data]);
  const fields: RlpItem[] = [outcome, scalar(receipt.cumulativeGasUsed), receipt.logsBloom, logs];
  if (type === DEPOSIT_TYPE && given(receipt.depositReceiptVersion)) {
    fields.push(scalar(receipt.depositNonce ?? '0x0'), scalar(receipt.depositReceiptVersion));
  }
  return type + rlp(fields);
}

const given = (value: string | null | undefined): value is string => value !== undefined && value !== null;

/** The root of the trie of a block's receipts, in their order. Throws RangeError or TypeError for what are no receipts. */
export function receiptsRoot(receipts: readonly RpcReceipt[]): Hex {
  return indexedRoot(receipts.map(encodeReceipt));
}

/** The root of a trie whose keys are the RLP of 0, 1, 2, … Values are hex without 0x. */
export function indexedRoot(values: readonly string[]): Hex {
  if (values.length === 0) return keccak256(hexBytes(rlp('0x')));
  const leaves = values.map((value, index): Leaf => ({ key: rlp(scalar(`0x${index.toString(16)}`)), value }));
  leaves.sort((a, b) => (a.key < b.key ? -1 : 1));
  return keccak256(hexBytes(node(leaves, 0, leaves.length, 0)));
}

/** The key as a digit per nibble. */
interface Leaf {
  key: string;
  value: string;
}

const NO_VALUE = rlp('0x');
const NIBBLES = '0123456789abcdef';

/** The RLP of the node over `leaves[from..to)`, which share the first `depth` nibbles. No key begins with another whole one. */
function node(leaves: readonly Leaf[], from: number, to: number, depth: number): string {
  const first = leaves[from]!;
  if (to - from === 1) return rlpList([path(first.key.slice(depth), true), rlp(`0x${first.value}`)]);
  const shared = sharedLength(first.key, leaves[to - 1]!.key, depth);
  if (shared > depth) return rlpList([path(first.key.slice(depth, shared), false), child(leaves, from, to, shared)]);
  const children: string[] = [];
  let at = from;
  for (const nibble of NIBBLES) {
    const start = at;
    while (at < to && leaves[at]!.key[depth] === nibble) at += 1;
    children.push(at === start ? NO_VALUE : child(leaves, start, at, depth + 1));
  }
  return rlpList([...children, NO_VALUE]);
}

/** A node as its parent holds it: itself when it is shorter than a hash, else its hash. */
function child(leaves: readonly Leaf[], from: number, to: number, depth: number): string {
  const encoded = node(leaves, from, to, depth);
  return encoded.length < 64 ? encoded : rlp(keccak256(hexBytes(encoded)));
}

/** Sorted keys share what the first and the last one share. */
function sharedLength(first: string, last: string, from: number): number {
  let length = from;
  while (length < first.length && first[length] === last[length]) length += 1;
  return length;
}

/** The yellow paper's hex prefix (appendix C). */
function path(nibbles: string, isLeaf: boolean): string {
  const flag = isLeaf ? 2 : 0;
  return rlp(nibbles.length % 2 === 0 ? `0x${flag}0${nibbles}` : `0x${flag + 1}${nibbles}`);
}
