import { encode } from '@msgpack/msgpack';
import { hexToBytes, keccak256Bytes } from '../hash.js';
import type { Address } from '../types.js';

/** What is hashed next to the action. */
export interface ActionContext {
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
  return encode(action);
}

/** The bytes that are hashed into the connection id: action, nonce, vault marker, and the expiry when there is one. */
export function preimage(actionBytes: Uint8Array, context: ActionContext): Uint8Array {
  const vault = context.vaultAddress === null ? null : hexToBytes(context.vaultAddress);
  const length = actionBytes.length + 9 + (vault?.length ?? 0) + (context.expiresAfter === null ? 0 : 9);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  bytes.set(actionBytes);
  let at = actionBytes.length;
  view.setBigUint64(at, BigInt(context.nonce));
  at += 8;
  bytes[at++] = vault === null ? 0 : 1;
  if (vault !== null) {
    bytes.set(vault, at);
    at += vault.length;
  }
  if (context.expiresAfter !== null) {
    bytes[at++] = 0;
    view.setBigUint64(at, BigInt(context.expiresAfter));
  }
  return bytes;
}

/** keccak256 of the preimage, 32 bytes: what a signed action is bound to. */
export function connectionId(actionBytes: Uint8Array, context: ActionContext): Uint8Array {
  return keccak256Bytes(preimage(actionBytes, context));
}
