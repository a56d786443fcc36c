/**
 * Statements that a query builder compiled, by the builder's shape: whoever asks the same with other values gets the same text. What is not of
 * the few shapes that most queries have is compiled each time.
 */

/** What a builder compiles to, less what nobody of the simulation looks at. */
export interface Compiled {
  sql: string;
  method?: string;
  bindings?: readonly unknown[];
}
interface Part {
  grouping: string;
  type?: string;
  column?: unknown;
  operator?: unknown;
  value?: unknown;
  method?: unknown;
  alias?: unknown;
  direction?: unknown;
  nulls?: unknown;
  bool?: unknown;
  not?: unknown;
  asColumn?: unknown;
  distinct?: unknown;
  aggregateDistinct?: unknown;
}
/** A builder of queries, as far as it is looked at. */
export interface Shaped {
  readonly _method?: string;
  readonly _single?: Readonly<Record<string, unknown>>;
  readonly _statements?: readonly Part[];
  readonly _comments?: readonly unknown[];
  readonly _options?: readonly unknown[];
  /** Of plain SQL instead. */
  readonly isRawInstance?: boolean;
  readonly sql?: string;
  readonly bindings?: unknown;
  readonly _wrappedBefore?: string;
  readonly _wrappedAfter?: string;
  readonly _timeout?: number;
}

/** More shapes than the backend has. */
const MOST_KEPT = 5_000;
/** Null for shapes whose values stand in another order than they were looked at. */
const known = new Map<string, Compiled | null>();
/** How many values plain SQL takes; null where a question mark may be something else. */
const taken = new Map<string, number | null>();

const isPlain = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null;
const isEmpty = (values: readonly unknown[] | undefined): boolean => values === undefined || values.length === 0;

/** The same as `compile` returns, as far as it decides what is sent and how the answer is read. */
export function compiled(builder: Shaped, compile: () => Compiled): Compiled {
  if (builder.isRawInstance === true) return compiledRaw(builder) ?? compile();
  const bindings: unknown[] = [];
  const shape = shapeOf(builder, bindings);
  if (shape === null) return compile();
  const before = known.get(shape);
  if (before === null) return compile();
  if (before !== undefined) return { ...before, bindings };
  const first = compile();
  if (known.size >= MOST_KEPT) known.clear();
  const asked = first.bindings ?? [];
  const isSame = asked.length === bindings.length && asked.every((value, i) => value === bindings[i]);
  known.set(shape, isSame ? { ...first } : null);
  return first;
}

function compiledRaw({ sql, bindings, ...rest }: Shaped): Compiled | null {
  if (typeof sql !== 'string' || rest._wrappedBefore !== undefined || rest._wrappedAfter !== undefined) return null;
  if (rest._timeout !== undefined || !isEmpty(rest._options)) return null;
  if (bindings === undefined) return { method: 'raw', sql, bindings: [] };
  if (!Array.isArray(bindings) || !bindings.every(isPlain)) return null;
  let count = taken.get(sql);
  if (count === undefined) {
    if (taken.size >= MOST_KEPT) taken.clear();
    count = /\?\?|\\/.test(sql) ? null : sql.split('?').length - 1;
    taken.set(sql, count);
  }
  return count === bindings.length ? { method: 'raw', sql, bindings } : null;
}

/** Everything about a query but its values, which go into `bindings` in the order of the text; null for what it does not know. */
function shapeOf(builder: Shaped, bindings: unknown[]): string | null {
  const { _method: method, _single: single, _statements: parts } = builder;
  if (single === undefined || parts === undefined || (method !== 'select' && method !== 'first')) return null;
  if (!isEmpty(builder._comments) || !isEmpty(builder._options)) return null;
  const { table, limit, only, skipBinding, ...others } = single;
  if (typeof table !== 'string' || only === true || Object.keys(others).length > 0) return null;
  if (skipBinding !== undefined && (skipBinding as { limit?: unknown }).limit !== undefined) return null;
  if (limit !== undefined && (typeof limit !== 'number' || limit === 0)) return null;
  let shape = `${method}\0${table}\0${limit === undefined ? '' : 'limit'}`;
  for (const part of parts) {
    const of = shapeOfPart(part, bindings);
    if (of === null) return null;
    shape += `\0${of}`;
  }
  if (limit !== undefined) bindings.push(limit);
  return shape;
}

function shapeOfPart(part: Part, bindings: unknown[]): string | null {
  const { grouping, type, value } = part;
  if (grouping === 'columns') {
    if (part.distinct !== undefined && part.distinct !== false) return null;
    if (type === 'aggregate' && typeof value === 'string')
      return `${String(part.method)}(${value}) ${String(part.alias)} ${String(part.aggregateDistinct)}`;
    if (type !== undefined || !Array.isArray(value) || !value.every((one) => typeof one === 'string')) return null;
    return `columns ${value.join('\x01')}`;
  }
  if (grouping === 'order') {
    if (type !== 'orderByBasic' || typeof value !== 'string') return null;
    return `order ${value} ${String(part.direction)} ${String(part.nulls)}`;
  }
  if (grouping !== 'where' || typeof part.column !== 'string' || part.asColumn === true) return null;
  const place = `${type} ${part.column} ${String(part.bool)} ${String(part.not)}`;
  if (type === 'whereNull') return place;
  if (type === 'whereBasic') {
    if (typeof part.operator !== 'string' || value === null || !isPlain(value)) return null;
    bindings.push(value);
    return `${place} ${part.operator}`;
  }
  if ((type !== 'whereIn' && type !== 'whereBetween') || !Array.isArray(value) || !value.every(isPlain)) return null;
  bindings.push(...(value as unknown[]));
  return `${place} ${value.length}`;
}
