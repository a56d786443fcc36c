/** The hash of core/hash.ts for browsers: without WebAssembly, which a strict Content-Security-Policy refuses, and without Node's Buffer. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex as toHex, hexToBytes as fromHex } from '@noble/hashes/utils.js';
import type { Hex } from '../../core/types.js';

export const keccak256Bytes = (data: Uint8Array): Uint8Array => keccak_256(data);

export const keccak256 = (data: Uint8Array): Hex => bytesToHex(keccak_256(data));

export const keccakText = (text: string): Hex => keccak256(new TextEncoder().encode(text));

/** Bytes of a hex string with 0x in front. Throws RangeError when it is not hex of whole bytes. */
export function hexToBytes(hex: string): Uint8Array {
  if (!/^0x(?:[0-9a-fA-F]{2})*$/.test(hex))
    throw new RangeError(`not hex of whole bytes: ${JSON.stringify(hex.slice(0, 40))}`);
  return fromHex(hex.slice(2));
}

export const bytesToHex = (bytes: Uint8Array): Hex => `0x${toHex(bytes)}`;
