/** Shapes that all tables share, so that rows read the same from both databases. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Knex } from 'knex';

/** An amount: exact text on SQLite, whose numbers lose digits beyond 2^53, and numeric(78,0), wide enough for uint256, on PostgreSQL. */
export function amount(db: Knex, table: Knex.CreateTableBuilder, name: string): Knex.ColumnBuilder {
  const sqlite = /sqlite/.test(String((db.client as { driverName: string }).driverName));
  return table.specificType(name, sqlite ? 'text' : 'numeric(78,0)');
}

const COLUMN_LIMIT = 10n ** 78n;

/**
 * An amount as a binding; as a bigint SQLite would refuse or round it beyond 64 bits. Throws RangeError beyond 78 digits, on either
 * database, so that both take the same amounts.
 */
export function toColumn(units: bigint): string {
  if (units >= COLUMN_LIMIT || units <= -COLUMN_LIMIT) throw new RangeError('an amount of more than 78 digits');
  return units.toString();
}

/** An amount as it was read. Throws SyntaxError on anything but an integer in text, so that a rounded number never passes. */
export function fromColumn(value: unknown): bigint {
  if (typeof value !== 'string' || !/^-?\d+$/.test(value))
    throw new SyntaxError(`not a stored amount: ${String(value)}`);
  return BigInt(value);
}

/** Both databases bound the number of bindings of one statement; SQLite also holds the event loop while one runs. */
const ROWS_PER_INSERT = 200;

/** Inserts any number of rows, in order, a bounded number per statement. */
export async function insertAll(tx: Knex.Transaction, table: string, rows: readonly object[]): Promise<void> {
  for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
    if (start > 0) await nextTurn();
    await tx(table).insert(rows.slice(start, start + ROWS_PER_INSERT));
  }
}

/**
 * Like `insertAll`, for the log that orders wait for: rows are lists of values in the order of the columns, and the statement is
 * written here, because the query builder takes several times as long as the database.
 */
export async function insertValues(
  tx: Knex.Transaction,
  table: string,
  columns: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
): Promise<void> {
  const row = `(${columns.map(() => '?').join(', ')})`;
  for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
    const part = rows.slice(start, start + ROWS_PER_INSERT);
    const values = part.map(() => row).join(', ');
    await tx.raw(`insert into ${table} (${columns.join(', ')}) values ${values}`, part.flat());
  }
}

/** Parts of a list, each short enough for the bindings of one statement. */
export function chunks<T>(items: readonly T[], size = 500): T[][] {
  const parts: T[][] = [];
  for (let start = 0; start < items.length; start += size) parts.push(items.slice(start, start + size));
  return parts;
}

/** Default and largest page of reads that take a limit. */
export const MAX_PAGE = 10_000;

/** A page size within 1..MAX_PAGE. Throws RangeError: no limit is silent. */
export function checkLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    throw new RangeError(`limit must be 1..${MAX_PAGE}, not ${limit}`);
  return limit;
}
