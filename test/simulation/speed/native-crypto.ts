/** Has ethers hash and sign by the native library: the same bytes in a tenth of the time. Owners and keepers of a simulation sign thousands of times. */
import { createRequire } from 'node:module';
import { Signature, SigningKey, getBytes, keccak256, type BytesLike, type SignatureLike } from 'ethers';
import { bytesToHex, hexToBytes, keccak256Bytes } from '../../../core/hash.js';

interface Curve {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { signature: Uint8Array; recid: number };
  ecdsaRecover(signature: Uint8Array, recid: number, digest: Uint8Array, isCompressed: boolean): Uint8Array;
}

let isInstalled = false;

/** For all of this process from now on. */
export function installNativeCrypto(): void {
  if (isInstalled) return;
  isInstalled = true;
  const curve = createRequire(import.meta.url)('secp256k1') as Curve;
  keccak256.register((data) => keccak256Bytes(getBytes(data)));
  SigningKey.prototype.sign = function sign(this: SigningKey, digest: BytesLike): Signature {
    const { signature, recid } = curve.ecdsaSign(getBytes(digest), hexToBytes(this.privateKey));
    const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32))];
    return Signature.from({ r, s, v: recid === 0 ? 27 : 28 });
  };
  SigningKey.recoverPublicKey = (digest: BytesLike, like: SignatureLike): string => {
    const { r, s, yParity } = Signature.from(like);
    return bytesToHex(curve.ecdsaRecover(getBytes(`${r}${s.slice(2)}`), yParity, getBytes(digest), false));
  };
}
