import { hexToBytes, keccak256Bytes } from '../../core/hash.js';
import type { Hex } from '../../core/types.js';

const BLOOM_BYTES = 256;

/**
 * The three bits that an address or topic sets in a block's 2048-bit log filter: the low 11 bits of the first three 16-bit pairs of its
 * hash (yellow paper, section 4.3.1).
 */
export function bloomBits(value: Hex): number[] {
  const hash = keccak256Bytes(hexToBytes(value));
  return [0, 2, 4].map((at) => ((hash[at]! << 8) | hash[at + 1]!) & 2_047);
}

/** False when the filter proves that the value is in no log of the block. */
export function bloomHas(bloom: Uint8Array, bits: readonly number[]): boolean {
  return bits.every((bit) => (bloom[BLOOM_BYTES - 1 - (bit >> 3)]! & (1 << (bit & 7))) !== 0);
}

/** The share of the filter's bits that are set: the chance that one bit of a value that was not logged is set nevertheless. */
export function bloomFill(bloom: Uint8Array): number {
  let bits = 0;
  for (const byte of bloom) for (let rest = byte; rest !== 0; rest &= rest - 1) bits += 1;
  return bits / (BLOOM_BYTES * 8);
}

/** Bytes of a header's logsBloom. Throws RangeError unless they are 256. */
export function parseBloom(text: string): Uint8Array {
  const bytes = hexToBytes(text);
  if (bytes.length !== BLOOM_BYTES) throw new RangeError(`a log filter of ${bytes.length} bytes`);
  return bytes;
}
