/** Fields that several settings and manifests consist of. */
import { isAddress } from 'ethers';
import { z } from 'zod';
import { parseUnits, toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';

export const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be a 20-byte address')
  // What is no address at all is complained of already.
  .refine(
    (value) => isAddress(value) || !/^0x[0-9a-fA-F]{40}$/.test(value),
    'has a wrong checksum: a digit or its case is mistyped',
  )
  .transform((value) => value.toLowerCase() as Address);
export const privateKey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be a 32-byte hex key')
  .refine(isKey, 'must be a private key: not zero, and below the order of secp256k1')
  .transform((value) => value as Hex);
/** The order of secp256k1: a private key is below it. */
const KEY_LIMIT = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

function isKey(hex: string): boolean {
  // What is no hex is complained of already.
  const key = /^0x[0-9a-fA-F]{64}$/.test(hex) ? BigInt(hex) : 1n;
  return key > 0n && key < KEY_LIMIT;
}

/** A setting that is `true` or `false`. */
export const flag = (byDefault: 'true' | 'false') =>
  z
    .enum(['true', 'false'])
    .default(byDefault)
    .transform((value) => value === 'true');

/** Digits as an integer; anything else as it is, for a schema to refuse. */
export const digitsToInt = (value: unknown): unknown =>
  typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? toSafeInt(BigInt(value)) : value;

/** An integer setting without a default, in decimal digits; the bounds keep it far inside what a double holds exactly. */
export const wholeNumber = (minimum: number, maximum: number) =>
  z.preprocess(digitsToInt, z.int({ error: 'must be a whole number in decimal digits' }).min(minimum).max(maximum));

/** The same with a default. */
export const integer = (minimum: number, maximum: number, fallback: number) =>
  wholeNumber(minimum, maximum).default(fallback);

/** Where something answers over HTTP. */
export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' });

/** Where something tells over WebSocket. */
export const wsUrl = z.url({ protocol: /^wss?$/, error: 'must be a ws:// or wss:// URL' });

/** Settings as they are given, without those that are blank: they count as absent. */
export function givenSettings(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const trimmed = Object.entries(env).map(([name, value]): [string, string] => [name, value?.trim() ?? '']);
  return Object.fromEntries(trimmed.filter(([, value]) => value !== ''));
}

/** A decimal amount of the chain's own coin in a unit of so many wei decimals; the value read is in wei. */
export const coin = (decimals: number, fallback: string) =>
  z
    .string()
    .regex(new RegExp(`^\\d{1,12}(\\.\\d{1,${decimals}})?$`), `must be a decimal of at most ${decimals} places`)
    .default(fallback)
    .transform((amount) => parseUnits(amount, decimals));
