import type { Address } from '../types.js';

/** How many of a signer's highest nonces are remembered. Once that many are, a nonce below all of them is refused. */
export const REMEMBERED_NONCES = 100;

const NONE: readonly number[] = [];

/** Used nonces per signer. */
export interface NonceSet {
  add(signer: Address, nonce: number): void;
  /** Ascending. The returned array changes as nonces are added. */
  of(signer: Address): readonly number[];
  clone(): NonceSet;
}

/** Creates the set, from a copy of `initial` if given. Each signer's nonces are ascending. */
export function createNonceSet(initial?: ReadonlyMap<Address, readonly number[]>): NonceSet {
  const bySigner = new Map<Address, number[]>();
  for (const [signer, nonces] of initial ?? []) bySigner.set(signer, [...nonces]);

  const add = (signer: Address, nonce: number): void => {
    let nonces = bySigner.get(signer);
    if (nonces === undefined) {
      nonces = [];
      bySigner.set(signer, nonces);
    }
    let at = nonces.length;
    while (at > 0 && nonces[at - 1]! > nonce) at--;
    if (nonces[at - 1] === nonce) return;
    nonces.splice(at, 0, nonce);
    if (nonces.length > REMEMBERED_NONCES) nonces.shift();
  };

  return { add, of: (signer) => bySigner.get(signer) ?? NONE, clone: () => createNonceSet(bySigner) };
}
