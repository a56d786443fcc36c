/** Exact arithmetic on amounts: bigint base units inside, plain decimal strings outside. Nothing here rounds unless its name says how. */

/** Why a decimal was refused. */
type AmountErrorCode = 'bad_decimal' | 'too_many_decimals' | 'bad_decimals';

/** A decimal string that is not an amount of the token. */
export class AmountError extends Error {
  override readonly name = 'AmountError';

  constructor(
    readonly code: AmountErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** A plain decimal as digits and scale: value = digits / 10^scale, no trailing zeros after the point. */
interface Decimal {
  digits: bigint;
  scale: number;
}

/** Longest decimal string that is read; 2^256 has 78 digits. */
const MAX_DECIMAL_CHARS = 120;
/** Most decimals of a token. */
export const MAX_DECIMALS = 77;
/** Limit at which a sum saturates whose parts anybody may choose, such as requested withdrawals. */
export const MAX_U128 = 2n ** 128n - 1n;
/** Ten thousand basis points are the whole. */
export const BPS = 10_000n;

const PLAIN_DECIMAL = /^(\d+)(?:\.(\d+))?$/;

/**
 * Reads a plain, non-negative decimal string: digits, and after a point at least one more. No sign, exponent, space or separator.
 * Throws AmountError `bad_decimal`.
 */
export function parseDecimal(text: string): Decimal {
  const match = text.length <= MAX_DECIMAL_CHARS ? PLAIN_DECIMAL.exec(text) : null;
  if (match === null) {
    const shown = text.length <= 40 ? text : `${text.slice(0, 40)}...`;
    throw new AmountError(
      'bad_decimal',
      `not a plain decimal of at most ${MAX_DECIMAL_CHARS} characters: ${JSON.stringify(shown)}`,
    );
  }
  const decimals = match[2] ?? '';
  const fraction = decimals.endsWith('0') ? decimals.replace(/0+$/, '') : decimals;
  return { digits: BigInt(match[1] + fraction), scale: fraction.length };
}

/**
 * Base units of a token amount written as a plain decimal. Zeros at the end do not count as decimals.
 * Throws AmountError `bad_decimal`, or `too_many_decimals` when the amount is not a whole number of units.
 */
export function parseUnits(decimal: string, decimals: number): bigint {
  assertDecimals(decimals);
  const { digits, scale } = parseDecimal(decimal);
  if (scale > decimals) throw new AmountError('too_many_decimals', `${decimal} has more than ${decimals} decimals`);
  return digits * powerOfTen(decimals - scale);
}

const POWERS_OF_TEN: readonly bigint[] = Array.from({ length: 100 }, (_, exponent) => 10n ** BigInt(exponent));

/** 10^exponent; the exponent must not be negative. */
export function powerOfTen(exponent: number): bigint {
  return POWERS_OF_TEN[exponent] ?? 10n ** BigInt(exponent);
}

/** Exact decimal of an amount in units: no exponent, no trailing zeros, "0" for zero, a leading minus for negative amounts. */
export function formatUnits(units: bigint, decimals: number): string {
  assertDecimals(decimals);
  const digits = absBig(units)
    .toString()
    .padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

function assertDecimals(decimals: number): void {
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > MAX_DECIMALS) {
    throw new AmountError('bad_decimals', `decimals must be an integer from 0 to ${MAX_DECIMALS}, not ${decimals}`);
  }
}

/** Quotient rounded towards minus infinity. Throws RangeError when the divisor is zero. */
export function floorDiv(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  const inexact = quotient * divisor !== dividend;
  return inexact && dividend < 0n !== divisor < 0n ? quotient - 1n : quotient;
}

/** Quotient rounded towards plus infinity. Throws RangeError when the divisor is zero. */
export function ceilDiv(dividend: bigint, divisor: bigint): bigint {
  return -floorDiv(-dividend, divisor);
}

/** The lowest of the arguments. */
export function minBig(first: bigint, ...rest: readonly bigint[]): bigint {
  return rest.reduce((low, value) => (value < low ? value : low), first);
}

/** The highest of the arguments. */
export function maxBig(first: bigint, ...rest: readonly bigint[]): bigint {
  return rest.reduce((high, value) => (value > high ? value : high), first);
}

/** Absolute value. */
export function absBig(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** `units` clamped to 0..2^128-1. */
export function saturateU128(units: bigint): bigint {
  return minBig(maxBig(units, 0n), MAX_U128);
}

/**
 * A block number, time, sequence number or id as a JS number; never an amount or a price. Strings are decimal integers.
 * Throws RangeError when the value is not an integer within +-(2^53 - 1).
 */
export function toSafeInt(value: bigint | string): number {
  if (typeof value === 'string' && !/^-?\d{1,20}$/.test(value))
    throw new RangeError(`not an integer: ${JSON.stringify(value.slice(0, 40))}`);
  const integer = Number(typeof value === 'string' ? BigInt(value) : value);
  if (!Number.isSafeInteger(integer)) throw new RangeError(`beyond 2^53 - 1: ${value}`);
  return integer;
}

/** The 64 hex digits, without 0x, of a 32-byte word: an unsigned integer, or an address as the ABI encodes it. */
export function wordOf(value: bigint | `0x${string}`): string {
  return BigInt(value).toString(16).padStart(64, '0');
}
