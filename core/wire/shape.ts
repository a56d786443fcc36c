import type { Address } from '../types.js';
import { WireError } from './errors.js';

/** Readers of JSON values: each returns the value in its type or throws WireError naming the field. */
export type JsonObject = Readonly<Record<string, unknown>>;

const ADDRESS = /^(?:0x)?([0-9a-fA-F]{40})$/;
const CLOID = /^0x[0-9a-fA-F]{32}$/;

/** A JSON object, not an array. */
export function asObject(value: unknown, field: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new WireError(field, 'must be an object');
  return value as JsonObject;
}

/** Each element read by `each`. */
export function asArray<T>(value: unknown, field: string, each: (item: unknown, field: string) => T): T[] {
  if (!Array.isArray(value)) throw new WireError(field, 'must be an array');
  return value.map((item: unknown, index) => each(item, `${field}[${index}]`));
}

/** An integer from 0 to 2^53 - 1. */
export function asUint(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new WireError(field, 'must be a non-negative integer below 2^53');
  }
  return value;
}

export function asBoolean(value: unknown, field: string): boolean {
  if (typeof value !== 'boolean') throw new WireError(field, 'must be true or false');
  return value;
}

/** A string of at most `maxChars` characters. */
export function asText(value: unknown, field: string, maxChars = 1024): string {
  if (typeof value !== 'string' || value.length > maxChars) throw new WireError(field, 'must be a string');
  return value;
}

export function asOneOf<T extends string>(value: unknown, field: string, allowed: readonly T[]): T {
  if (!(allowed as readonly unknown[]).includes(value))
    throw new WireError(field, `must be one of ${allowed.join(', ')}`);
  return value as T;
}

/** An address in any letter case, with or without 0x; lower case with 0x comes out. */
export function asAddress(value: unknown, field: string): Address {
  const match = typeof value === 'string' ? ADDRESS.exec(value) : null;
  if (match === null) throw new WireError(field, 'must be a 20-byte address');
  return `0x${(match[1] ?? '').toLowerCase()}`;
}

/** A client order id as it was sent: 0x and 32 hex digits of any case. */
export function asCloid(value: unknown, field: string): string {
  if (typeof value !== 'string' || !CLOID.test(value)) throw new WireError(field, 'must be 0x and 32 hex digits');
  return value;
}

/** Refuses keys outside `allowed`: they were signed but would not be understood. */
export function onlyKeys(object: JsonObject, field: string, allowed: readonly string[]): void {
  const unknown = Object.keys(object).find((key) => !allowed.includes(key));
  if (unknown !== undefined) throw new WireError(`${field}.${unknown.slice(0, 40)}`, 'is not a known field');
}
