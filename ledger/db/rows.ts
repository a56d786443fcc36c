/**
 * Rows of any table as they are stored, for code that checks or compares them. Other code reads through the functions of each log, which
 * interpret the rows.
 */
import type { Tables } from 'knex/types/tables.js';
import { toSafeInt } from '../../core/amounts.js';
import type { Queryable } from '../types.js';
import { sendForRows, type Binding } from './dialects.js';
import type { Stored } from './tables.js';

type Table = keyof Tables;
type Column<T extends Table> = keyof Stored<T> & string;
/** Columns and what they must equal; null is equal to null. */
type Where<T extends Table> = Partial<Stored<T>>;

/** Which rows to read, and in which order. All conditions must hold. */
export interface RowFilter<T extends Table> {
  where?: Where<T>;
  /** Numbers from one to another, both included. */
  between?: [column: Column<T>, from: number, to: number];
  /** Numbers above this one. */
  above?: [column: Column<T>, after: number];
  orderBy?: readonly Column<T>[];
  limit?: number;
  /** Rows left out at the beginning; only together with a limit. */
  offset?: number;
}

/** The rows of a table that match a filter; without a filter all, in no order. */
export async function readRows<T extends Table>(
  q: Queryable,
  table: T,
  filter: RowFilter<T> = {},
): Promise<Stored<T>[]> {
  const { text, bindings } = conditions(filter);
  const order = filter.orderBy === undefined ? '' : ` order by ${filter.orderBy.map(quoted).join(', ')}`;
  const limit = filter.limit === undefined ? '' : ` limit ${filter.limit} offset ${filter.offset ?? 0}`;
  return sendForRows<Stored<T>>(q, `select * from ${quoted(table)}${text}${order}${limit}`, bindings);
}

/** The first row that matches a filter, undefined without any. */
export async function firstRow<T extends Table>(
  q: Queryable,
  table: T,
  filter: RowFilter<T>,
): Promise<Stored<T> | undefined> {
  const [row] = await readRows(q, table, { ...filter, limit: 1 });
  return row;
}

/** How many rows a table has. */
export async function countRows<T extends Table>(q: Queryable, table: T, filter: RowFilter<T> = {}): Promise<number> {
  const { text, bindings } = conditions(filter);
  const sql = `select count(*) as total from ${quoted(table)}${text}`;
  const [row] = await sendForRows<{ total: number | string }>(q, sql, bindings);
  return toSafeInt(BigInt(row?.total ?? 0));
}

/** The lowest and the highest number in a column of the rows that match a filter; null without any. */
export async function extremes<T extends Table>(
  q: Queryable,
  table: T,
  column: Column<T>,
  filter: RowFilter<T> = {},
): Promise<{ least: number; most: number } | null> {
  const { text, bindings } = conditions(filter);
  const name = quoted(column);
  const sql = `select min(${name}) as least, max(${name}) as most from ${quoted(table)}${text}`;
  const [row] = await sendForRows<{ least: number | null; most: number | null }>(q, sql, bindings);
  return row === undefined || row.least === null || row.most === null ? null : { least: row.least, most: row.most };
}

const quoted = (name: string): string => `"${name}"`;

function conditions<T extends Table>({
  where = {},
  between,
  above,
}: RowFilter<T>): {
  text: string;
  bindings: Binding[];
} {
  const parts: string[] = [];
  const bindings: Binding[] = [];
  for (const [column, value] of Object.entries(where as Record<string, Binding>)) {
    parts.push(value === null ? `${quoted(column)} is null` : `${quoted(column)} = ?`);
    if (value !== null) bindings.push(value);
  }
  if (between !== undefined) {
    parts.push(`${quoted(between[0])} between ? and ?`);
    bindings.push(between[1], between[2]);
  }
  if (above !== undefined) {
    parts.push(`${quoted(above[0])} > ?`);
    bindings.push(above[1]);
  }
  return { text: parts.length === 0 ? '' : ` where ${parts.join(' and ')}`, bindings };
}
