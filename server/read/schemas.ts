import { z } from 'zod';

/** Exact decimal in token units: no exponent, no trailing zeros, "0" for zero. */
export const decimalSchema = z.string().regex(/^(0|[1-9]\d*)(\.\d*[1-9])?$/);

/** The same with a sign. */
export const signedDecimalSchema = z.string().regex(/^(0|-?(0\.\d*[1-9]|[1-9]\d*(\.\d*[1-9])?))$/);

export const addressSchema = z.string().regex(/^0x[0-9a-f]{40}$/);

/** An address of a request: any letter case. */
export const addressParameter = z.string().regex(/^0x[0-9a-fA-F]{40}$/);

/** A sequence number of a request: a decimal integer without leading zeros. */
export const sequenceParameter = z.string().regex(/^(0|[1-9]\d{0,15})$/);

export const hashSchema = z.string().regex(/^0x[0-9a-f]{64}$/);

/** Block numbers, milliseconds, sequence numbers, ticks and lots: JSON integers. */
export const integerSchema = z.int().nonnegative();

export const pairSchema = z.string().regex(/^[^-\s]+-[^-\s]+$/);

export const directionSchema = z.enum(['buy', 'sell']);

/** In the output token. `taker` and `token` are null only for an unknown fill. */
export const feeSchema = z.strictObject({
  taker: addressSchema.nullable(),
  token: z.string().nullable(),
  amount: decimalSchema,
});

export const errorSchema = z
  .strictObject({ error: z.strictObject({ code: z.string(), message: z.string() }) })
  .meta({ id: 'Error' });
