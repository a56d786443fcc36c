/**
 * Public key recovery. The native library is loaded by its own entry point, because its main entry silently falls back to a JavaScript
 * implementation, which is many times slower. Where the binding does not load, WASM takes over and `signatureBackend` says so.
 */
import { createRequire } from 'node:module';
import { bytesToHex, keccak256Bytes } from '../hash.js';
import type { Address } from '../types.js';
import type { WireSignature } from './types.js';

type SignatureBackend = 'native' | 'wasm';

/** Uncompressed public key of 65 bytes, or null when nothing can be recovered. */
type RecoverKey = (signature: Uint8Array, recoveryId: 0 | 1, digest: Uint8Array) => Uint8Array | null;

/** Half of the order of secp256k1: of the two equivalent values of s, only the lower one is accepted. */
const HALF_ORDER = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex');

interface NativeBinding {
  ecdsaRecover(signature: Uint8Array, recoveryId: number, digest: Uint8Array, compressed: boolean): Uint8Array;
}

function loadNative(): RecoverKey | null {
  try {
    const binding = createRequire(import.meta.url)('secp256k1/bindings') as NativeBinding;
    return (signature, recoveryId, digest) => {
      try {
        return binding.ecdsaRecover(signature, recoveryId, digest, false);
      } catch {
        return null;
      }
    };
  } catch {
    return null;
  }
}

async function loadWasm(): Promise<RecoverKey> {
  const { instantiateSecp256k1 } = await import('@bitauth/libauth');
  const curve = await instantiateSecp256k1();
  return (signature, recoveryId, digest) => {
    const key = curve.recoverPublicKeyUncompressed(signature, recoveryId, digest);
    return typeof key === 'string' ? null : key;
  };
}

/** Recovers the signer of a 32-byte digest, or null when the signature names nobody or its s is in the upper half. */
type RecoverAddress = (digest: Uint8Array, signature: WireSignature) => Address | null;

/** A recovery on the named backend. Throws when the native binding does not load. */
export async function createRecovery(backend: SignatureBackend): Promise<RecoverAddress> {
  const recoverKey = backend === 'native' ? loadNative() : await loadWasm();
  if (recoverKey === null) throw new Error('the native binding of secp256k1 does not load on this platform');
  return recoveryWith(recoverKey);
}

function recoveryWith(recoverKey: RecoverKey): RecoverAddress {
  return (digest, signature) => {
    const compact = compactSignature(signature);
    if (compact === null) return null;
    const key = recoverKey(compact, signature.v === 27 ? 0 : 1, digest);
    return key === null ? null : bytesToHex(keccak256Bytes(key.subarray(1)).subarray(12));
  };
}

/** r and s left-padded to 32 bytes each; null when s is not in the lower half. */
function compactSignature(signature: WireSignature): Uint8Array | null {
  const compact = Buffer.from(signature.r.slice(2).padStart(64, '0') + signature.s.slice(2).padStart(64, '0'), 'hex');
  return compact.compare(HALF_ORDER, 0, 32, 32, 64) > 0 ? null : compact;
}

const native = loadNative();

/** Which library recovers in this process. */
export const signatureBackend: SignatureBackend = native === null ? 'wasm' : 'native';

/** Recovery on the best backend of this platform. */
export const recoverAddress: RecoverAddress = recoveryWith(native ?? (await loadWasm()));
