import { createKeccak } from 'hash-wasm';
import type { Hex } from './types.js';
import { toSafeInt } from './amounts.js';

/** One hasher for the process: hashing is synchronous, so no two uses overlap. */
const hasher = await createKeccak(256);

/** keccak256 as 32 bytes. */
export function keccak256Bytes(data: Uint8Array): Uint8Array {
  return hasher.init().update(data).digest('binary');
}

/** keccak256 as lower-case hex. */
export function keccak256(data: Uint8Array): Hex {
  return `0x${hasher.init().update(data).digest('hex')}`;
}

/** keccak256 of a text's UTF-8 bytes, as lower-case hex. */
export function keccakText(text: string): Hex {
  return `0x${hasher.init().update(text).digest('hex')}`;
}

/** Bytes of a hex string with 0x in front. Throws RangeError when it is not hex of whole bytes. */
export function hexToBytes(hex: string): Uint8Array {
  if (!/^0x(?:[0-9a-fA-F]{2})*$/.test(hex))
    throw new RangeError(`not hex of whole bytes: ${JSON.stringify(hex.slice(0, 40))}`);
  return Uint8Array.from(Buffer.from(hex.slice(2), 'hex'));
}

/** Lower-case hex with 0x in front. */
export function bytesToHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}

/**
 * The id that makers deduplicate fills by: the top 53 bits of a hash over deployment, market, transaction, fill and order, so that
 * a replay gives the same id and a fill re-mined in another transaction gives another.
 */
export function tradeId(
  deploymentId: string,
  marketId: Hex,
  fill: { txHash: Hex; fillSeq: number },
  oid: number,
): number {
  const hash = keccakText(`${deploymentId}:${marketId}:${fill.txHash}:${fill.fillSeq}:${oid}`);
  return toSafeInt(BigInt(hash) >> (256n - 53n));
}
