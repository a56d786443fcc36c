/** A state trie of accounts, with the proofs that nodes give of it. */
import { MerklePatriciaTrie, createMerkleProof } from '@ethereumjs/mpt';
import { encodeRlp } from 'ethers';
import { bytesToHex, hexToBytes, keccak256, keccakText } from '../../../core/hash.js';
import type { Address, Hex } from '../../../core/types.js';
import { scalar } from '../../../keepers/chain/rlp.js';

interface Accounts {
  stateRoot: Hex;
  proofOf(address: Address): Promise<Hex[]>;
}

/** Accounts without code or storage that have sent so many transactions. */
export async function accountsOf(nonces: ReadonlyMap<Address, number>): Promise<Accounts> {
  const trie = new MerklePatriciaTrie();
  const keyOf = (address: Address): Uint8Array => hexToBytes(keccak256(hexToBytes(address)));
  for (const [address, nonce] of nonces) {
    const account = [scalar(`0x${nonce.toString(16)}`), '0x0a', keccakText('no storage'), keccakText('no code')];
    await trie.put(keyOf(address), hexToBytes(encodeRlp(account)));
  }
  return {
    stateRoot: bytesToHex(trie.root()),
    proofOf: async (address) => (await createMerkleProof(trie, keyOf(address))).map(bytesToHex),
  };
}
