/**
 * The Merkle tree of a checkpoint: root and proofs are those of the published `@openzeppelin/merkle-tree` (StandardMerkleTree with its
 * default options), so that anybody can check them with it. That library builds each tree from all values, which takes seconds for a large
 * ledger; this module updates only the changed leaves, and yields after every slice of work.
 */
import { wordOf } from './amounts.js';
import { bytesToHex, hexToBytes, keccak256Bytes } from './hash.js';
import type { Address, Hex } from './types.js';

/** Types of a leaf's values, as the library takes them. */
export const LEAF_ENCODING = ['address', 'address', 'uint256'] as const;

/** Most hashes, and most leaves moved, between two yields. */
export const SLICE = 250;

const HASH_BYTES = 32;

/** Root of a tree without leaves; the library has no empty tree. */
export const EMPTY_ROOT: Hex = `0x${'0'.repeat(64)}`;

/** An immutable tree. Its leaves are in ascending order of their hashes, from the last node backwards, as in the library. */
export interface MerkleTree {
  readonly leafCount: number;
  /** 2 x leafCount - 1 hashes, the root first; the children of node i are 2i + 1 and 2i + 2. */
  readonly nodes: Uint8Array;
}

export const EMPTY_TREE: MerkleTree = { leafCount: 0, nodes: new Uint8Array(0) };

/** Hash of the leaf (maker, token, max(balance, 0)): keccak256 twice over the ABI encoding. */
export function leafHash(maker: Address, token: Address, balanceUnits: bigint): Uint8Array {
  const encoded = new Uint8Array(96);
  encoded.set(hexToBytes(maker), 12);
  encoded.set(hexToBytes(token), 44);
  const units = balanceUnits < 0n ? 0n : balanceUnits;
  encoded.set(hexToBytes(`0x${wordOf(units)}`), 64);
  return keccak256Bytes(keccak256Bytes(encoded));
}

/** Root of the tree, `EMPTY_ROOT` without leaves. */
export function merkleRoot({ leafCount, nodes }: MerkleTree): Hex {
  return leafCount === 0 ? EMPTY_ROOT : bytesToHex(nodes.subarray(0, HASH_BYTES));
}

/** Siblings from the leaf to the root, null when the leaf is not in the tree. */
export function merkleProof({ leafCount, nodes }: MerkleTree, leaf: Uint8Array): Hex[] | null {
  const leaves = leavesOf({ leafCount, nodes });
  const at = firstNotAbove(leaves, leaf);
  if (at === leafCount || Buffer.compare(hashAt(leaves, at), leaf) !== 0) return null;
  const proof: Hex[] = [];
  for (let index = leafCount - 1 + at; index > 0; index = (index - 1) >> 1) {
    proof.push(bytesToHex(hashAt(nodes, index % 2 === 0 ? index - 1 : index + 1)));
  }
  return proof;
}

/**
 * The tree with some leaves taken out and others put in; the given one stays as it is. It yields after each slice of work. Throws
 * RangeError when a leaf to take out is not there. Leaves are distinct, because maker and token are part of each.
 */
export function* updateTree(
  tree: MerkleTree,
  removed: readonly Uint8Array[],
  added: readonly Uint8Array[],
): Generator<void, MerkleTree> {
  if (removed.length === 0 && added.length === 0) return tree;
  let leaves = leavesOf(tree);
  for (const part of slices(removed)) {
    leaves = withoutLeaves(leaves, part);
    yield;
  }
  for (const part of slices(added)) {
    leaves = withLeaves(leaves, part);
    yield;
  }
  const leafCount = leaves.length / HASH_BYTES;
  if (leafCount === 0) return EMPTY_TREE;
  return yield* hashNodes(tree, leaves, leafCount);
}

/** Hashes every node with a changed child. */
function* hashNodes(before: MerkleTree, leaves: Uint8Array, leafCount: number): Generator<void, MerkleTree> {
  const inner = leafCount - 1;
  const nodes = new Uint8Array((2 * leafCount - 1) * HASH_BYTES);
  const sameShape = before.leafCount === leafCount;
  if (sameShape) nodes.set(before.nodes);
  nodes.set(leaves, inner * HASH_BYTES);
  const changed = new Uint8Array(2 * leafCount - 1).fill(1);
  if (sameShape) {
    const [first, last] = changedRange(leavesOf(before), leaves);
    changed.fill(0, inner);
    changed.fill(1, inner + first, inner + last + 1);
  }
  yield;
  let hashes = 0;
  for (let index = inner - 1; index >= 0; index--) {
    const left = 2 * index + 1;
    changed[index] = changed[left]! | changed[left + 1]!;
    if (changed[index] === 0) continue;
    nodes.set(nodeHash(nodes, left), index * HASH_BYTES);
    hashes += 1;
    if (hashes % SLICE === 0) yield;
  }
  return { leafCount, nodes };
}

const pair = new Uint8Array(2 * HASH_BYTES);

/** Hash of a node whose children begin at `left`: of both, the lower one first. */
function nodeHash(nodes: Uint8Array, left: number): Uint8Array {
  const a = hashAt(nodes, left);
  const b = hashAt(nodes, left + 1);
  const inOrder = Buffer.compare(a, b) <= 0;
  pair.set(inOrder ? a : b, 0);
  pair.set(inOrder ? b : a, HASH_BYTES);
  return keccak256Bytes(pair);
}

function hashAt(hashes: Uint8Array, index: number): Uint8Array {
  return hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
}

/** The leaves as they stand in the tree: in descending order. */
function leavesOf({ leafCount, nodes }: MerkleTree): Uint8Array {
  return leafCount === 0 ? new Uint8Array(0) : nodes.subarray((leafCount - 1) * HASH_BYTES);
}

/** Index of the first of the descending leaves that is not above `leaf`. */
function firstNotAbove(leaves: Uint8Array, leaf: Uint8Array): number {
  let low = 0;
  let high = leaves.length / HASH_BYTES;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(hashAt(leaves, middle), leaf) > 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First and last index at which two lists of equal length differ; the last is below the first when they do not. */
function changedRange(before: Uint8Array, after: Uint8Array): [number, number] {
  let first = 0;
  let last = after.length - 1;
  while (first <= last && before[first] === after[first]) first += 1;
  while (last > first && before[last] === after[last]) last -= 1;
  return [Math.floor(first / HASH_BYTES), Math.floor(last / HASH_BYTES)];
}

function* slices(hashes: readonly Uint8Array[]): Generator<Uint8Array[]> {
  for (let start = 0; start < hashes.length; start += SLICE) {
    yield hashes.slice(start, start + SLICE).sort((a, b) => Buffer.compare(b, a));
  }
}

function withoutLeaves(leaves: Uint8Array, descending: readonly Uint8Array[]): Uint8Array {
  const kept = new Uint8Array(leaves.length - descending.length * HASH_BYTES);
  let from = 0;
  let to = 0;
  for (const leaf of descending) {
    const at = firstNotAbove(leaves, leaf);
    if (at * HASH_BYTES === leaves.length || Buffer.compare(hashAt(leaves, at), leaf) !== 0) {
      throw new RangeError(`leaf ${bytesToHex(leaf)} is not in the tree`);
    }
    kept.set(leaves.subarray(from, at * HASH_BYTES), to);
    to += at * HASH_BYTES - from;
    from = (at + 1) * HASH_BYTES;
  }
  kept.set(leaves.subarray(from), to);
  return kept;
}

function withLeaves(leaves: Uint8Array, descending: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(leaves.length + descending.length * HASH_BYTES);
  let from = 0;
  let to = 0;
  for (const leaf of descending) {
    const at = firstNotAbove(leaves, leaf) * HASH_BYTES;
    all.set(leaves.subarray(from, at), to);
    to += at - from;
    all.set(leaf, to);
    to += HASH_BYTES;
    from = at;
  }
  all.set(leaves.subarray(from), to);
  return all;
}
