/** What the database counts, compares and adds up: the one place that says what an aggregate may answer. */
import type { Database as SqliteDatabase } from 'better-sqlite3';
import type { Knex } from 'knex';
import type { Queryable } from '../types.js';
import { fromColumn } from './columns.js';
import { isSqlite } from './dialects.js';

/** The greatest number in a column of the rows that a query selects; null without any. Throws TypeError when it holds no numbers. */
export async function highest<Row extends object, Result>(
  rows: Knex.QueryBuilder<Row, Result>,
  column: string,
): Promise<number | null> {
  return numberIn(await rows.max({ found: column }).first(), 'found');
}

/** The least number in a column of the rows that a query selects; null without any. Throws TypeError when it holds no numbers. */
export async function lowest<Row extends object, Result>(
  rows: Knex.QueryBuilder<Row, Result>,
  column: string,
): Promise<number | null> {
  return numberIn(await rows.min({ found: column }).first(), 'found');
}

/** How many rows a query selects. */
export async function count<Row extends object, Result>(rows: Knex.QueryBuilder<Row, Result>): Promise<number> {
  return numberIn(await rows.count({ found: '*' }).first(), 'found') ?? 0;
}

/** A number that a query gave a name; null where it had no rows to answer from. Throws TypeError on anything else. */
export function numberIn(row: unknown, name: string): number | null {
  const found: unknown = new Map(Object.entries(row ?? {})).get(name);
  if (found !== null && typeof found !== 'number')
    throw new TypeError(`a row says ${name} as a ${typeof found}, not as a number`);
  return found;
}

/**
 * SQL of the exact sum of a column of amounts, as text for `fromColumn`; null over no row, and over nulls alone. Names of columns are not escaped: they
 * must come from this program.
 */
export const unitsSum = (q: Queryable, column: string): string =>
  isSqlite(q) ? `${SQLITE_SUM}(${column})` : `sum(${column})`;

const SQLITE_SUM = 'units_sum';

/** Teaches a connection of SQLite, whose own sums lose digits, to add amounts up; it throws SyntaxError on a text that is none. */
export function addUnitsSum(connection: SqliteDatabase): void {
  connection.aggregate<bigint | null>(SQLITE_SUM, {
    start: null,
    step: (sum, next: unknown) => (next === null ? sum : (sum ?? 0n) + fromColumn(next)),
    result: (sum) => sum?.toString() ?? null,
    deterministic: true,
  });
}
