import { createRequire } from 'node:module';
import { bytesToHex, keccak256Bytes } from '../../core/hash.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import type { Address } from '../../core/types.js';

interface Signer {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { signature: Uint8Array; recid: number };
  publicKeyCreate(key: Uint8Array, compressed: boolean): Uint8Array;
}

const curve = createRequire(import.meta.url)('secp256k1') as Signer;
/** Makers that the load is spread over, and one that only the cancel-all uses. */
export const QUOTING = 100;
export const RESERVED = 100;
const keys = Array.from({ length: QUOTING + 1 }, (_, index) => new Uint8Array(32).fill(index + 1));

export const makers: Address[] = keys.map((key) =>
  bytesToHex(keccak256Bytes(curve.publicKeyCreate(key, false).subarray(1)).subarray(12)),
);

let nonce = Date.now();

/** A signed body as JSON text, every one with a nonce of its own. */
export function signedBody(action: object, maker: number): string {
  nonce += 1;
  const context = { nonce, vaultAddress: null, expiresAfter: null };
  const digest = agentDigest('a', connectionId(encodeAction(action), context));
  const { signature, recid } = curve.ecdsaSign(digest, keys[maker] as Uint8Array);
  const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32))];
  return JSON.stringify({ action, nonce, signature: { r, s, v: 27 + recid }, vaultAddress: null, expiresAfter: null });
}

/** An order action with `count` bids at distinct prices. */
export const orderAction = (count: number, seed = 0) => ({
  type: 'order',
  orders: Array.from({ length: count }, (_, index) => ({
    a: 10000,
    b: true,
    p: `${2000 + ((seed + index) % 400)}.25`,
    s: '0.5',
    r: false,
    t: { limit: { tif: 'Gtc' } },
  })),
  grouping: 'na',
});

let turn = 0;

/** `count` signed bodies of `orders` orders each, spread evenly over the makers, counting earlier calls. */
export function orderBodies(count: number, orders: number): string[] {
  return Array.from({ length: count }, () => {
    turn += 1;
    return signedBody(orderAction(orders, turn * 7), turn % QUOTING);
  });
}
