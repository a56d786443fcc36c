/** Proofs of accounts against those of a library, and what does not pass for one. */
import { MerklePatriciaTrie, createMerkleProof } from '@ethereumjs/mpt';
import { expect } from 'chai';
import fc from 'fast-check';
import { bytesToHex, hexToBytes, keccak256, keccakText } from '../../../core/hash.js';
import type { Address, Hex } from '../../../core/types.js';
import { proveValue, provenNonce } from '../../../keepers/chain/account-proof.js';
import { RpcContradictionError, type Rpc } from '../../../keepers/chain/rpc.js';
import { accountsOf } from '../../support/api/accounts.js';
import { inUpperCase } from '../../support/nodes/lies.js';
import { sealBlock, resealed } from '../../support/nodes/real-blocks.js';

const addressOf = (i: number): Address => keccakText(`account ${i}`).slice(0, 42) as Address;
const keyOf = (address: Address): Hex => keccak256(hexToBytes(address));

describe('proof of an account', () => {
  it('gives each account its nonce, and an absent one none, in tries of any size', async () => {
    for (const count of [1, 2, 3, 17, 300]) {
      const nonces = new Map(Array.from({ length: count }, (_, i) => [addressOf(i), i === 0 ? 0 : i * 7]));
      const { stateRoot, proofOf } = await accountsOf(nonces);
      const header = resealed(
        sealBlock({ number: 9, parentHash: keccakText('8'), timestampSec: 9, transactions: [] }).header,
        {
          stateRoot,
        },
      );
      const rpcOf = (change: (proof: Hex[]) => Hex[] = (proof) => proof): Rpc => ({
        name: 'one',
        call: () => Promise.reject(new Error('not asked')),
        batch: async (requests) => [
          header,
          { accountProof: change(await proofOf(requests[1]!.params[0] as Address)), nonce: '0x63' },
        ],
      });
      const block = { number: 9, hash: header.hash };
      for (const [address, nonce] of nonces) expect(await provenNonce(rpcOf(), address, block)).to.equal(nonce);
      for (let i = count; i < count + 20; i++) expect(await provenNonce(rpcOf(), addressOf(i), block)).to.equal(0);

      expect(await provenNonce(inUpperCase('one', rpcOf()), addressOf(0), block), 'letter case').to.equal(0);

      const refusal = async (rpc: Rpc, at = block): Promise<unknown> =>
        provenNonce(rpc, addressOf(0), at).catch((error: unknown) => error);
      const cut = (proof: Hex[]): Hex[] => proof.slice(0, -1);
      const other = await proofOf(addressOf(1));
      expect(await refusal(rpcOf(cut))).to.be.instanceOf(RpcContradictionError);
      expect(await refusal(rpcOf(), { number: 9, hash: keccakText('another') })).to.be.instanceOf(
        RpcContradictionError,
      );
      expect(await refusal(rpcOf(() => undefined as unknown as Hex[]))).to.be.instanceOf(RpcContradictionError);
      if (count > 1) expect(await refusal(rpcOf((proof) => [...cut(proof), other.at(-1)!]))).to.be.instanceOf(Error);
    }
  });

  it('is refused with any byte changed', async () => {
    const nonces = new Map(Array.from({ length: 40 }, (_, i) => [addressOf(i), i]));
    const { stateRoot, proofOf } = await accountsOf(nonces);
    const proof = await proofOf(addressOf(5));
    expect(proveValue(stateRoot, keyOf(addressOf(5)), proof)).to.be.a('string');
    const size = proof.reduce((sum, node) => sum + (node.length - 2) / 2, 0);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: size - 1 }), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        let left = at;
        const changed = proof.map((node) => {
          const bytes = hexToBytes(node);
          if (left >= 0 && left < bytes.length) bytes[left]! ^= mask;
          left -= bytes.length;
          return bytesToHex(bytes);
        });
        expect(() => proveValue(stateRoot, keyOf(addressOf(5)), changed)).to.throw(RangeError);
      }),
    );
  });

  it('is that of the library for any keys that share their beginning', async () => {
    const trie = new MerklePatriciaTrie();
    const keys = ['00', '01', '10', '11', '1f'].map((end): Hex => `0x${'ab'.repeat(31)}${end}`);
    const value = (key: Hex): Hex => `0x${key.slice(2)}${'ff'.repeat(8)}`;
    for (const key of keys) await trie.put(hexToBytes(key), hexToBytes(value(key)));
    const root = bytesToHex(trie.root());
    for (const key of keys) {
      const nodes = (await createMerkleProof(trie, hexToBytes(key))).map(bytesToHex);
      expect(proveValue(root, key, nodes)).to.equal(value(key));
    }
    const absent: Hex = `0x${'ab'.repeat(31)}12`;
    const nodes = (await createMerkleProof(trie, hexToBytes(absent))).map(bytesToHex);
    expect(proveValue(root, absent, nodes)).to.equal(null);
  });
});
