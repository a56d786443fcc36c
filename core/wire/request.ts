import { WireError } from './errors.js';
import { asAddress, asObject, asText, asUint } from './shape.js';
import type { SignedRequest, WireSignature } from './types.js';

const HEX_INTEGER = /^0x[0-9a-fA-F]{1,64}$/;

/**
 * Reads the envelope of a signed request; the action itself is read by its type. Null means absent for vaultAddress and
 * expiresAfter, unknown keys are ignored. Throws WireError.
 */
export function readSignedRequest(body: unknown): SignedRequest {
  const envelope = asObject(body, 'body');
  const action = asObject(envelope.action, 'action');
  const type = asText(action.type, 'action.type', 64);
  const { vaultAddress, expiresAfter } = envelope;
  return {
    action: { ...action, type },
    nonce: asUint(envelope.nonce, 'nonce'),
    signature: readSignature(envelope.signature),
    vaultAddress: vaultAddress === undefined || vaultAddress === null ? null : asAddress(vaultAddress, 'vaultAddress'),
    expiresAfter: expiresAfter === undefined || expiresAfter === null ? null : asUint(expiresAfter, 'expiresAfter'),
  };
}

function readSignature(value: unknown): WireSignature {
  const signature = asObject(value, 'signature');
  const v = asUint(signature.v, 'signature.v');
  if (v !== 27 && v !== 28) throw new WireError('signature.v', 'must be 27 or 28');
  return { r: readHexInteger(signature.r, 'signature.r'), s: readHexInteger(signature.s, 'signature.s'), v };
}

function readHexInteger(value: unknown, field: string): string {
  if (typeof value !== 'string' || !HEX_INTEGER.test(value))
    throw new WireError(field, 'must be 0x and 1 to 64 hex digits');
  return value;
}
