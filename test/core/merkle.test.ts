import { StandardMerkleTree } from '@openzeppelin/merkle-tree';
import { expect } from 'chai';
import fc from 'fast-check';
import { bytesToHex } from '../../core/hash.js';
import {
  EMPTY_ROOT,
  EMPTY_TREE,
  LEAF_ENCODING,
  SLICE,
  leafHash,
  merkleProof,
  merkleRoot,
  updateTree,
  type MerkleTree,
} from '../../core/merkle.js';
import type { Address } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';

type Value = [maker: Address, token: Address, units: bigint];

const address = (number: number): Address => `0x${number.toString(16).padStart(40, '0')}`;
const hashOf = ([maker, token, units]: Value): Uint8Array => leafHash(maker, token, units);
const ENCODING = [...LEAF_ENCODING];

/** Runs an update to its end; returns the tree and the number of slices. */
function update(
  tree: MerkleTree,
  removed: readonly Value[],
  added: readonly Value[],
): { tree: MerkleTree; slices: number } {
  const steps = updateTree(tree, removed.map(hashOf), added.map(hashOf));
  for (let slices = 1; ; slices++) {
    const step = steps.next();
    if (step.done) return { tree: step.value, slices };
  }
}

function expectLikeLibrary(tree: MerkleTree, values: readonly Value[]): void {
  if (values.length === 0) {
    expect(merkleRoot(tree)).to.equal(EMPTY_ROOT);
    return;
  }
  const library = StandardMerkleTree.of([...values], ENCODING);
  expect(merkleRoot(tree)).to.equal(library.root);
  for (const value of values) {
    const proof = merkleProof(tree, hashOf(value));
    expect(proof).to.deep.equal(library.getProof(value));
    expect(StandardMerkleTree.verify(merkleRoot(tree), ENCODING, value, proof!)).to.equal(true);
  }
}

describe('checkpoint tree', () => {
  it("hashes a leaf as the published library does, a debtor's as zero", () => {
    const value: Value = [address(0xab), address(0xcd), 2n ** 255n];
    const library = StandardMerkleTree.of([value], ENCODING);
    expect(bytesToHex(hashOf(value))).to.equal(library.leafHash(value));
    expect(leafHash(address(1), address(2), -5n)).to.deep.equal(leafHash(address(1), address(2), 0n));
  });

  it("has the library's root and proofs for any number of leaves", () => {
    for (let count = 0; count <= 33; count++) {
      const values = Array.from({ length: count }, (_, i): Value => [address(i), address(i % 3), BigInt(i * i)]);
      expectLikeLibrary(update(EMPTY_TREE, [], values).tree, values);
    }
  });

  it('proves nothing that is not in it', () => {
    const { tree } = update(EMPTY_TREE, [], [[address(1), address(2), 3n]]);
    expect(merkleProof(tree, hashOf([address(1), address(2), 4n]))).to.equal(null);
    expect(merkleProof(EMPTY_TREE, hashOf([address(1), address(2), 4n]))).to.equal(null);
    expect(() => update(tree, [[address(1), address(2), 4n]], [])).to.throw(RangeError);
  });

  it("follows changes leaf by leaf to the library's tree, and leaves the tree before them alone", () => {
    const row = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.bigInt(0n, 5n));
    fc.assert(
      fc.property(fc.array(fc.array(row, { maxLength: 8 }), { maxLength: 8 }), (rounds) => {
        const units = new Map<number, bigint>();
        const valueOf = (maker: number): Value => [address(maker), address(7), units.get(maker)!];
        let tree = EMPTY_TREE;
        for (const changes of rounds) {
          const makers = [...new Set(changes.map(([maker]) => maker))];
          const removed = makers.filter((maker) => units.has(maker)).map(valueOf);
          for (const [maker, amount] of changes) {
            if (amount === 0n) units.delete(maker);
            else units.set(maker, amount);
          }
          const added = makers.filter((maker) => units.has(maker)).map(valueOf);
          const before = { root: merkleRoot(tree), tree };
          tree = update(tree, removed, added).tree;
          expect(merkleRoot(before.tree)).to.equal(before.root);
        }
        expectLikeLibrary(tree, [...units.keys()].map(valueOf));
      }),
      fcOptions(40),
    );
  });

  it('gives way after every slice of hashes, and hashes only above leaves that moved', () => {
    const count = 5_000;
    const values = Array.from({ length: count }, (_, i): Value => [address(i), address(7), 1n]);
    const full = update(EMPTY_TREE, [], values);
    expect(full.slices, 'leaves moved, then nodes hashed').to.equal(count / SLICE + Math.ceil((count - 1) / SLICE) + 1);

    const sorted = [...values].sort((a, b) => Buffer.compare(hashOf(a), hashOf(b)));
    // A value whose new leaf stays between its neighbours moves nobody else.
    const lone = sorted.findIndex((value, i) => {
      if (i === 0 || i === count - 1) return false;
      const next = hashOf([value[0], value[1], 2n]);
      return Buffer.compare(hashOf(sorted[i - 1]!), next) < 0 && Buffer.compare(next, hashOf(sorted[i + 1]!)) < 0;
    });
    expect(lone, 'one of the neighbourhoods fits').to.be.greaterThan(0);
    const value = sorted[lone]!;
    const next: Value = [value[0], value[1], 2n];
    const small = update(full.tree, [value], [next]);
    expect(small.slices, 'one slice each for taking out, putting in and the path to the root').to.equal(4);
    const proof = merkleProof(small.tree, hashOf(next))!;
    expect(StandardMerkleTree.verify(merkleRoot(small.tree), ENCODING, next, proof)).to.equal(true);
  });
});
