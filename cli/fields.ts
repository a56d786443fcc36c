/** Fields that several settings and manifests consist of. */
import { z } from 'zod';
import { parseUnits } from '../core/amounts.js';
import type { Address, Hex } from '../core/types.js';

export const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be a 20-byte address')
  .transform((value) => value.toLowerCase() as Address);
export const privateKey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be a 32-byte hex key')
  .transform((value) => value as Hex);
/** An integer setting; the bounds keep it far inside what a double holds exactly. */
export const integer = (minimum: number, maximum: number, fallback: number) =>
  z.coerce.number().int().min(minimum).max(maximum).default(fallback);

/** A decimal amount of the chain's own coin in a unit of so many wei decimals; the value read is in wei. */
export const coin = (decimals: number, fallback: string) =>
  z
    .string()
    .regex(new RegExp(`^\\d{1,12}(\\.\\d{1,${decimals}})?$`), `must be a decimal of at most ${decimals} places`)
    .default(fallback)
    .transform((amount) => parseUnits(amount, decimals));
