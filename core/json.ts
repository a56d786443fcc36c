/**
 * JSON of values with bigint. Bodies of the API carry bigint as JSON integers. Stored payloads carry it as decimal strings, and each
 * type is revived by its own function, which refuses a payload of another shape.
 */
import { wordOf } from './amounts.js';
import type { Address, CloseReason, MarketSnapshot, OrderEffect, Side, SnapshotOrder, Trim } from './types.js';

/** TypeScript's library does not know JSON.rawJSON yet; every supported Node has it. */
const rawJson = JSON as unknown as { rawJSON(text: string): unknown };

/** A stored payload that does not have the shape of its type. */
export class PayloadError extends Error {
  override readonly name = 'PayloadError';
  readonly code = 'bad_payload';
}

/** JSON text in which every bigint is an integer of full precision. */
export function stringify(value: unknown, space?: number): string {
  return JSON.stringify(
    value,
    (_key, item: unknown) => (typeof item === 'bigint' ? rawJson.rawJSON(item.toString()) : item),
    space,
  );
}

/** JSON text in which every bigint is a decimal string. */
function encode(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? item.toString() : item));
}

type Row = Record<string, unknown>;

function fail(what: string, value: unknown): never {
  throw new PayloadError(`${what} expected, not ${String(JSON.stringify(value)).slice(0, 80)}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new PayloadError(`not JSON: ${text.slice(0, 80)}`);
  }
}

function asRow(value: unknown): Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Row)
    : fail('an object', value);
}

function asList<T>(value: unknown, each: (item: unknown) => T): T[] {
  return Array.isArray(value) ? value.map(each) : fail('an array', value);
}

function asBig(value: unknown): bigint {
  return typeof value === 'string' && /^-?\d+$/.test(value)
    ? BigInt(value)
    : fail('a decimal integer in a string', value);
}

function asInt(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : fail('a safe integer', value);
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : fail('a string', value);
}

function asOneOf<T extends string>(value: unknown, allowed: readonly T[]): T {
  return (allowed as readonly unknown[]).includes(value) ? (value as T) : fail(`one of ${allowed.join(', ')}`, value);
}

const SIDES: readonly Side[] = ['ask', 'bid'];
const REASONS: readonly CloseReason[] = [
  'canceled',
  'scheduledCancel',
  'inventory',
  'suspended',
  'delisted',
  'replaced',
];

/** Stored form of the effects of one order row. */
export function encodeEffects(effects: readonly OrderEffect[]): string {
  return `[${effects.map(encodeEffect).join(',')}]`;
}

/** The same text as `encode`, several times as fast for what nearly every row holds; ids and names of sides need no escaping. */
function encodeEffect(effect: OrderEffect): string {
  if (effect.type === 'close') return `{"type":"close","oid":${effect.oid},"reason":"${effect.reason}"}`;
  if (effect.type !== 'open') return encode(effect);
  const { oid, market, side, priceTicks, sizeLots, tif, cloid } = effect;
  const head = `{"type":"open","oid":${oid},"market":${market},"side":"${side}"`;
  const terms = `"priceTicks":"${priceTicks}","sizeLots":"${sizeLots}","tif":"${tif}"`;
  return `${head},${terms},"cloid":${cloid === null ? 'null' : JSON.stringify(cloid)}}`;
}

/** Inverse of encodeEffects. Throws PayloadError. */
export function decodeEffects(text: string): OrderEffect[] {
  return asList(parse(text), (item) => {
    const row = asRow(item);
    return EFFECTS[asOneOf(row.type, EFFECT_TYPES)](row);
  });
}

const EFFECTS: { readonly [T in OrderEffect['type']]: (row: Row) => Extract<OrderEffect, { type: T }> } = {
  open: (row) => ({
    type: 'open',
    oid: asInt(row.oid),
    market: asInt(row.market),
    side: asOneOf(row.side, SIDES),
    priceTicks: asBig(row.priceTicks),
    sizeLots: asBig(row.sizeLots),
    tif: asOneOf(row.tif, ['Gtc', 'Alo']),
    cloid: row.cloid === null ? null : asText(row.cloid),
  }),
  close: (row) => ({ type: 'close', oid: asInt(row.oid), reason: asOneOf(row.reason, REASONS) }),
  reduce: (row) => ({ type: 'reduce', oid: asInt(row.oid), lots: asBig(row.lots) }),
  schedule: (row) => ({ type: 'schedule', timeMs: row.timeMs === null ? null : asInt(row.timeMs) }),
  trigger: (row) => ({ type: 'trigger', timeMs: asInt(row.timeMs) }),
  agent: (row) => ({
    type: 'agent',
    name: asText(row.name),
    agent: row.agent === null ? null : (asText(row.agent) as Address),
    sinceMs: asInt(row.sinceMs),
    validUntilMs: asInt(row.validUntilMs),
  }),
};

const EFFECT_TYPES = Object.keys(EFFECTS) as OrderEffect['type'][];

/** Stored form of a snapshot; the order of its orders is kept. */
export function encodeSnapshot(snapshot: MarketSnapshot): string {
  return encode(snapshot);
}

/** Inverse of encodeSnapshot. Throws PayloadError. */
export function decodeSnapshot(text: string): MarketSnapshot {
  const row = asRow(parse(text));
  return {
    market: asInt(row.market),
    fillSeq: asInt(row.fillSeq),
    askVolumeUnits: asBig(row.askVolumeUnits),
    bidVolumeUnits: asBig(row.bidVolumeUnits),
    asks: asList(row.asks, asSnapshotOrder),
    bids: asList(row.bids, asSnapshotOrder),
  };
}

function asSnapshotOrder(item: unknown): SnapshotOrder {
  const row = asRow(item);
  return {
    oid: asInt(row.oid),
    maker: asText(row.maker) as Address,
    priceTicks: asBig(row.priceTicks),
    sizeLots: asBig(row.sizeLots),
    ...(row.cloid === undefined ? {} : { cloid: asText(row.cloid) }),
  };
}

/** Stored form of the trims of a publication. */
export function encodeTrims(trims: readonly Trim[]): string {
  return encode(trims);
}

/** Inverse of encodeTrims. Throws PayloadError. */
export function decodeTrims(text: string): Trim[] {
  return asList(parse(text), (item) => {
    const row = asRow(item);
    return { oid: asInt(row.oid), lots: asBig(row.lots) };
  });
}

/** Stored form of packed words: hex strings of 32 bytes. */
export function encodeWords(words: readonly bigint[]): string {
  return JSON.stringify(words.map((word) => `0x${wordOf(word)}`));
}

/** Inverse of encodeWords. Throws PayloadError. */
export function decodeWords(text: string): bigint[] {
  return asList(parse(text), (item) =>
    typeof item === 'string' && /^0x[0-9a-f]{64}$/.test(item) ? BigInt(item) : fail('a 32-byte word', item),
  );
}

/** Stored form of a list of addresses. */
export function encodeAddresses(addresses: readonly Address[]): string {
  return JSON.stringify(addresses);
}

/** Inverse of encodeAddresses. Throws PayloadError. */
export function decodeAddresses(text: string): Address[] {
  return asList(parse(text), (item) =>
    typeof item === 'string' && /^0x[0-9a-f]{40}$/.test(item) ? (item as Address) : fail('an address', item),
  );
}
