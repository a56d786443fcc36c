/** Keys in encrypted files (Web3 Secret Storage, version 3), as geth, Foundry and most wallets write them. */
import { scryptSync as nativeScrypt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { computeAddress, decryptKeystoreJsonSync, encryptKeystoreJsonSync, scryptSync } from 'ethers';
import { z } from 'zod';
import type { Hex } from '../../core/types.js';

/** Memory that opening a file may take; the usual ones take 128 MiB. */
const MAX_SCRYPT_BYTES = 512 * 2 ** 20;

/** Roles that sign transactions. */
export const SIGNING_ROLES = ['poster', 'settler', 'executor'] as const;
export type SigningRole = (typeof SIGNING_ROLES)[number];

const keystore = (role: SigningRole) =>
  z
    .string()
    .min(1)
    .optional()
    .describe(`encrypted JSON file with the ${role}'s key, in place of ${keyName(role)}`);

export const keystoreSettings = {
  POSTER_KEYSTORE: keystore('poster'),
  SETTLER_KEYSTORE: keystore('settler'),
  EXECUTOR_KEYSTORE: keystore('executor'),
  KEYSTORE_PASSWORD_FILE: z.string().min(1).optional().describe('file with the password of the keystores'),
};

/** The settings of a role's key, as the key itself and as a file. */
export function keyName(role: SigningRole): `${Uppercase<SigningRole>}_PRIVATE_KEY` {
  return `${role.toUpperCase() as Uppercase<SigningRole>}_PRIVATE_KEY`;
}
export function keystoreName(role: SigningRole): `${Uppercase<SigningRole>}_KEYSTORE` {
  return `${role.toUpperCase() as Uppercase<SigningRole>}_KEYSTORE`;
}

/** A file that can't be opened; the message names the setting and never shows what is in the file. */
class KeystoreError extends Error {}

/** The key in a file. Throws KeystoreError. */
export function openKeystore(path: string, passwordFile: string | undefined, setting: string): Hex {
  useNativeScrypt();
  if (passwordFile === undefined) throw new KeystoreError(`${setting}: KEYSTORE_PASSWORD_FILE is required, too`);
  const text = contentOf(path, setting);
  // An editor ends a file with a line break, which no password has.
  const password = contentOf(passwordFile, 'KEYSTORE_PASSWORD_FILE').replace(/\r?\n$/, '');
  try {
    return decryptKeystoreJsonSync(text, password).privateKey as Hex;
  } catch (error) {
    const reason = /incorrect password/.test(String(error)) ? 'the password is not its' : 'it is no keystore';
    throw new KeystoreError(`${setting}: can't open ${path}: ${reason}`);
  }
}

/** Costs of the password's hash, as usual: a second or so on a slow machine. */
const USUAL_SCRYPT_N = 131_072;

/** The content of such a file. */
export function keystoreText(key: Hex, password: string, scryptN = USUAL_SCRYPT_N): string {
  useNativeScrypt();
  const account = { address: computeAddress(key), privateKey: key };
  return `${encryptKeystoreJsonSync(account, password, { scrypt: { N: scryptN, r: 8, p: 1 } })}\n`;
}

/**
 * The settings with the keys of these roles that keystores hold in the place of the files' names. Adds to `problems` what can't be opened, and a
 * role that has both.
 */
export function withKeystores(
  given: Readonly<Record<string, string>>,
  roles: readonly string[],
  problems: string[],
): Record<string, string> {
  const settings: Record<string, string> = { ...given };
  for (const role of SIGNING_ROLES) {
    const path = given[keystoreName(role)];
    if (path === undefined) continue;
    if (given[keyName(role)] !== undefined)
      problems.push(`${keystoreName(role)}: ${keyName(role)} is set, too; set one`);
    else if (roles.includes(role)) {
      try {
        settings[keyName(role)] = openKeystore(path, given['KEYSTORE_PASSWORD_FILE'], keystoreName(role));
      } catch (error) {
        if (!(error instanceof KeystoreError)) throw error;
        problems.push(error.message);
      }
    }
  }
  return settings;
}

function contentOf(path: string, setting: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new KeystoreError(`${setting}: can't read ${path}`);
  }
}

/** Node's own is several times as fast as the library's, and bounds the memory that a file may ask for. */
function useNativeScrypt(): void {
  if (isNative) return;
  isNative = true;
  scryptSync.register(
    (password, salt, N, r, p, bytes) =>
      `0x${nativeScrypt(password, salt, bytes, { N, r, p, maxmem: MAX_SCRYPT_BYTES }).toString('hex')}`,
  );
}
let isNative = false;
