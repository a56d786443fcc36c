import { hexToBytes, keccak256Bytes } from '../hash.js';
import type { Address } from '../types.js';
import { encodeMsgpack } from './msgpack.js';

/** What is hashed next to the action. */
interface ActionContext {
  nonce: number;
  vaultAddress: Address | null;
  /** Milliseconds, or null when the action never expires: then nothing is hashed for it. */
  expiresAfter: number | null;
}

/**
 * MessagePack of an action: maps in the order of their keys, every number an unsigned integer of its shortest form. The action
 * must come from readAction, whose key order is that of signing.
 */
export function encodeAction(action: object): Uint8Array {
  return encodeMsgpack(action);
}

/** The bytes that are hashed into the connection id: action, nonce, vault marker, and the expiry when there is one. */
export function preimage(actionBytes: Uint8Array, context: ActionContext): Uint8Array {
  const { nonce, vaultAddress, expiresAfter } = context;
  const vault = vaultAddress === null ? null : hexToBytes(vaultAddress);
  const length = actionBytes.length + 9 + (vault?.length ?? 0) + (expiresAfter === null ? 0 : 9);
  // From Node's buffer pool: allocating a separate buffer takes longer than hashing it.
  const bytes = Buffer.allocUnsafe(length);
  bytes.set(actionBytes);
  let at = writeUint64(bytes, nonce, actionBytes.length);
  bytes[at++] = vault === null ? 0 : 1;
  if (vault !== null) {
    bytes.set(vault, at);
    at += vault.length;
  }
  if (expiresAfter !== null) {
    bytes[at++] = 0;
    writeUint64(bytes, expiresAfter, at);
  }
  return bytes;
}

const TWO_32 = 0x1_0000_0000;

/** A safe integer as 8 bytes; returns where the next value begins. */
function writeUint64(bytes: Buffer, value: number, at: number): number {
  return bytes.writeUInt32BE(value % TWO_32, bytes.writeUInt32BE(Math.floor(value / TWO_32), at));
}

/** keccak256 of the preimage, 32 bytes: what a signed action is bound to. */
export function connectionId(actionBytes: Uint8Array, context: ActionContext): Uint8Array {
  return keccak256Bytes(preimage(actionBytes, context));
}
