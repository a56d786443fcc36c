import { canonicalDecimal } from './decimal.js';
import { WireError } from './errors.js';
import { asAddress, asArray, asBoolean, asCloid, asObject, asOneOf, asText, asUint, onlyKeys } from './shape.js';
import type { Address } from '../types.js';
import type { JsonObject } from './shape.js';
import { TIFS } from './types.js';
import type { WireAction, WireActionType, WireGrouping, WireOrder, WireOrderType, WireTif } from './types.js';

/**
 * How an action is rebuilt for checking its signature. `canonical` normalises decimals, lower-cases client order ids and leaves out
 * optional fields that are null or false, as most clients do before they sign; `received` keeps everything as sent, for clients that sign
 * what they send. Both forms mean the same.
 */
type StringForm = 'canonical' | 'received';

type Reader = (action: JsonObject, form: StringForm) => WireAction;

const READERS: Readonly<Record<WireActionType, Reader>> = {
  order: readOrderAction,
  modify: (action, form) => {
    onlyKeys(action, 'action', ['type', 'oid', 'order', 'a']);
    const oid = readOid(action.oid, 'action.oid', form);
    return {
      type: 'modify',
      oid,
      order: readOrder(action.order, 'action.order', form),
      ...readFlag(action, 'a', form),
    };
  },
  batchModify: (action, form) => {
    onlyKeys(action, 'action', ['type', 'modifies', 'a']);
    const modifies = asArray(action.modifies, 'action.modifies', (item, field) => {
      const entry = asObject(item, field);
      return { oid: readOid(entry.oid, `${field}.oid`, form), order: readOrder(entry.order, `${field}.order`, form) };
    });
    return { type: 'batchModify', modifies, ...readFlag(action, 'a', form) };
  },
  cancel: (action, form) => {
    onlyKeys(action, 'action', ['type', 'cancels', 'f']);
    const cancels = asArray(action.cancels, 'action.cancels', (item, field) => {
      const entry = asObject(item, field);
      return { a: asUint(entry.a, `${field}.a`), o: asUint(entry.o, `${field}.o`) };
    });
    return { type: 'cancel', cancels, ...readFlag(action, 'f', form) };
  },
  cancelByCloid: (action, form) => {
    onlyKeys(action, 'action', ['type', 'cancels', 'f']);
    const cancels = asArray(action.cancels, 'action.cancels', (item, field) => {
      const entry = asObject(item, field);
      return { asset: asUint(entry.asset, `${field}.asset`), cloid: readCloid(entry.cloid, `${field}.cloid`, form) };
    });
    return { type: 'cancelByCloid', cancels, ...readFlag(action, 'f', form) };
  },
  scheduleCancel: (action, form) => {
    onlyKeys(action, 'action', ['type', 'time']);
    // Some clients sign a missing time as nil, but leave it out of what they send.
    const { time = null } = action;
    return { type: 'scheduleCancel', ...readOptional('time', time, form, (value) => asUint(value, 'action.time')) };
  },
  noop: (action) => {
    onlyKeys(action, 'action', ['type']);
    return { type: 'noop' };
  },
  setReferrer: (action) => {
    onlyKeys(action, 'action', ['type', 'code']);
    return { type: 'setReferrer', code: asText(action.code, 'action.code') };
  },
  evmUserModify: (action) => {
    onlyKeys(action, 'action', ['type', 'usingBigBlocks']);
    return { type: 'evmUserModify', usingBigBlocks: asBoolean(action.usingBigBlocks, 'action.usingBigBlocks') };
  },
};

/**
 * Rebuilds an action in the key order of signing, whatever order it came in. Fields that are false or null where clients leave
 * them out are left out. Throws WireError for another shape, an unknown type or an unknown key of the action; unknown keys of an
 * order entry are ignored.
 */
export function readAction(value: unknown, form: StringForm = 'canonical'): WireAction {
  const action = asObject(value, 'action');
  const type = asText(action.type, 'action.type', 64);
  if (!Object.hasOwn(READERS, type)) throw new WireError('action.type', 'is not a known action');
  return READERS[type as WireActionType](action, form);
}

function readOrderAction(action: JsonObject, form: StringForm): WireAction {
  onlyKeys(action, 'action', ['type', 'orders', 'grouping', 'brokerCode', 'builder']);
  const orders =
    plainOrders(action.orders) ??
    asArray(action.orders, 'action.orders', (item, field) => readOrder(item, field, form));
  const grouping = readGrouping(action.grouping);
  return {
    ...{ type: 'order' as const, orders, grouping },
    ...readOptional('brokerCode', action.brokerCode, form, (code) => asUint(code, 'action.brokerCode')),
    ...readOptional('builder', action.builder, form, readBuilder),
  };
}

function readBuilder(value: unknown): { b: Address; f: number } {
  const builder = asObject(value, 'action.builder');
  return { b: asAddress(builder.b, 'action.builder.b'), f: asUint(builder.f, 'action.builder.f') };
}

function readOrder(value: unknown, field: string, form: StringForm): WireOrder {
  return plainOrder(value) ?? readAnyOrder(value, field, form);
}

/** A list of plain orders only, else null. */
function plainOrders(value: unknown): WireOrder[] | null {
  if (!Array.isArray(value)) return null;
  const orders: WireOrder[] = [];
  for (const item of value) {
    const order = plainOrder(item);
    if (order === null) return null;
    orders.push(order);
  }
  return orders;
}

/**
 * A resting limit order whose strings are canonical, hence the same in both forms; null for any other, which is then read field by
 * field. Nearly every order is of this kind, and the names of fields are only needed when one is wrong.
 */
function plainOrder(value: unknown): WireOrder | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { a, b, p, s, r, t, c } = value as JsonObject;
  if (typeof a !== 'number' || !Number.isSafeInteger(a) || a < 0) return null;
  if (typeof b !== 'boolean' || typeof r !== 'boolean') return null;
  if (typeof p !== 'string' || typeof s !== 'string') return null;
  if (canonicalDecimal(p) !== p || canonicalDecimal(s) !== s) return null;
  const tif = plainTif(t);
  if (tif === null) return null;
  if (c === undefined) return { a, b, p, s, r, t: { limit: { tif } } };
  return typeof c === 'string' && CANONICAL_CLOID.test(c) ? { a, b, p, s, r, t: { limit: { tif } }, c } : null;
}

const CANONICAL_CLOID = /^0x[0-9a-f]{32}$/;

function plainTif(type: unknown): WireTif | null {
  if (typeof type !== 'object' || type === null || Array.isArray(type)) return null;
  const { limit } = type as JsonObject;
  if (typeof limit !== 'object' || limit === null || Array.isArray(limit) || Object.keys(type).length !== 1)
    return null;
  const { tif } = limit as JsonObject;
  return tif === 'Gtc' || tif === 'Alo' ? tif : null;
}

function readAnyOrder(value: unknown, field: string, form: StringForm): WireOrder {
  const entry = asObject(value, field);
  const order = {
    a: asUint(entry.a, `${field}.a`),
    b: asBoolean(entry.b, `${field}.b`),
    p: readDecimal(entry.p, `${field}.p`, form),
    s: readDecimal(entry.s, `${field}.s`, form),
    r: asBoolean(entry.r, `${field}.r`),
    t: readOrderType(entry.t, `${field}.t`, form),
  };
  return { ...order, ...readOptional('c', entry.c, form, (value) => readCloid(value, `${field}.c`, form)) };
}

function readOrderType(value: unknown, field: string, form: StringForm): WireOrderType {
  const type = asObject(value, field);
  onlyKeys(type, field, ['limit', 'trigger']);
  if (type.limit !== undefined && type.trigger === undefined) {
    return { limit: { tif: asOneOf(asObject(type.limit, `${field}.limit`).tif, `${field}.limit.tif`, TIFS) } };
  }
  if (type.trigger === undefined || type.limit !== undefined) throw new WireError(field, 'must have limit or trigger');
  const trigger = asObject(type.trigger, `${field}.trigger`);
  return {
    trigger: {
      isMarket: asBoolean(trigger.isMarket, `${field}.trigger.isMarket`),
      triggerPx: readDecimal(trigger.triggerPx, `${field}.trigger.triggerPx`, form),
      tpsl: asOneOf(trigger.tpsl, `${field}.trigger.tpsl`, ['tp', 'sl']),
    },
  };
}

function readGrouping(value: unknown): WireGrouping {
  if (typeof value === 'string')
    return asOneOf<'na' | 'normalTpsl' | 'positionTpsl'>(value, 'action.grouping', [
      'na',
      'normalTpsl',
      'positionTpsl',
    ]);
  const grouping = asObject(value, 'action.grouping');
  onlyKeys(grouping, 'action.grouping', ['p']);
  return { p: asUint(grouping.p, 'action.grouping.p') };
}

function readDecimal(value: unknown, field: string, form: StringForm): string {
  const canonical = typeof value === 'string' ? canonicalDecimal(value) : null;
  if (canonical === null) throw new WireError(field, 'must be a string with a plain decimal of at most 8 decimals');
  return form === 'canonical' ? canonical : (value as string);
}

function readCloid(value: unknown, field: string, form: StringForm): string {
  const cloid = asCloid(value, field);
  return form === 'canonical' ? cloid.toLowerCase() : cloid;
}

function readOid(value: unknown, field: string, form: StringForm): number | string {
  return typeof value === 'string' ? readCloid(value, field, form) : asUint(value, field);
}

/** A flag that clients write only when it is true. */
function readFlag<K extends string>(action: JsonObject, key: K, form: StringForm): Partial<Record<K, true>> {
  const flag = readOptional(key, action[key], form, (value) => asBoolean(value, `action.${key}`));
  return flag[key] === false && form === 'canonical' ? {} : (flag as Partial<Record<K, true>>);
}

/**
 * A field that may be absent. In the received form a null stays; the types describe the canonical form, which is the one that is executed.
 */
function readOptional<K extends string, T>(
  key: K,
  value: unknown,
  form: StringForm,
  read: (value: unknown) => T,
): Partial<Record<K, T>> {
  if (value === undefined || (value === null && form === 'canonical')) return {};
  return { [key]: value === null ? null : read(value) } as Partial<Record<K, T>>;
}
