/** Shapes that all tables share, so that rows read the same from both databases. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Knex } from 'knex';
import { isSqlite, placeholders, sendChange, sendRows, type Binding } from './dialects.js';

/** An amount: exact text on SQLite, whose numbers lose digits beyond 2^53, and numeric(78,0), wide enough for uint256, on PostgreSQL. */
export function amount(db: Knex, table: Knex.CreateTableBuilder, name: string): Knex.ColumnBuilder {
  return table.specificType(name, isSqlite(db) ? 'text' : 'numeric(78,0)');
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

/** Both databases limit the bindings of one statement, and on SQLite a statement blocks the event loop while it runs. */
const ROWS_PER_INSERT = 200;

/**
 * Inserts any number of rows, in order, a bounded number per statement. All rows must have the columns of the first one. Names of tables
 * and columns are not escaped: they must come from this program.
 */
export async function insertAll<T extends object>(
  tx: Knex.Transaction,
  table: string,
  rows: readonly T[],
): Promise<void> {
  await insertParts(tx, { table, conflict: '' }, rows);
}

/**
 * Inserts rows as `insertAll` does, no two with the same key; where the table has a row with a key, the new row takes its place.
 */
export const upsertAll = <T extends object>(
  tx: Knex.Transaction,
  table: string,
  key: readonly (keyof T & string)[],
  rows: readonly T[],
): Promise<void> => insertOr(tx, { table, key, rows }, (column) => `excluded.${column}`);

/**
 * On PostgreSQL, whose amounts are numbers: inserts rows as `insertAll` does, no two with the same key; where the table has a row with a key,
 * each other column of the new row is added to it.
 */
export const addAll = <T extends object>(
  tx: Knex.Transaction,
  table: string,
  key: readonly (keyof T & string)[],
  rows: readonly T[],
): Promise<void> => insertOr(tx, { table, key, rows }, (column) => `"${table}".${column} + excluded.${column}`);

/** Inserts rows; where the table has a row with a key, its other columns become what `changeOf` says of their quoted names. */
async function insertOr<T extends object>(
  tx: Knex.Transaction,
  { table, key, rows }: { table: string; key: readonly (keyof T & string)[]; rows: readonly T[] },
  changeOf: (column: string) => string,
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const others = Object.keys(first).filter((column) => !(key as readonly string[]).includes(column));
  const changes = others.map((column) => `"${column}" = ${changeOf(`"${column}"`)}`).join(', ');
  await insertParts(tx, { table, conflict: ` on conflict (${quoted(key)}) do update set ${changes}` }, rows);
}

/** Inserts rows as `insertAll` does; where the table has a row with a key, that one stays. */
export async function insertAbsent<T extends object>(
  tx: Knex.Transaction,
  table: string,
  key: readonly (keyof T & string)[],
  rows: readonly T[],
): Promise<void> {
  await insertParts(tx, { table, conflict: ` on conflict (${quoted(key)}) do nothing` }, rows);
}

/**
 * Changes rows that are there, found by their key, no two with the same one, a bounded number per statement. Throws RangeError when the
 * table lacks one of them.
 */
export async function updateAll<T extends object>(
  tx: Knex.Transaction,
  table: string,
  key: readonly (keyof T & string)[],
  rows: readonly T[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const others = columns.filter((column) => !(key as readonly string[]).includes(column));
  for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
    if (start > 0) await nextTurn();
    const part = rows.slice(start, start + ROWS_PER_INSERT);
    const cells: Binding[] = [];
    for (const row of part) addCells(cells, table, columns, row);
    const source = isSqlite(tx) ? valuesSource(columns, part.length) : recordsSource(table, columns);
    const changes = others.map((column) => `"${column}" = v."${column}"`).join(', ');
    const same = key.map((column) => `t."${column}" = v."${column}"`).join(' and ');
    const sql = `update "${table}" as t set ${changes} from (${source}) as v where ${same}`;
    const changed = await sendChange(tx, sql, isSqlite(tx) ? cells : [JSON.stringify(part)]);
    if (changed !== part.length) throw new RangeError(`${changed} of ${part.length} rows of ${table} are there`);
  }
}

/** Values that are bound one by one; SQLite names the columns of such a list in this way. */
function valuesSource(columns: readonly string[], rowCount: number): string {
  const named = columns.map((column, i) => `column${i + 1} as "${column}"`).join(', ');
  return `select ${named} from (values ${Array(rowCount)
    .fill(`(${placeholders(columns.length)})`)
    .join(', ')})`;
}

const recordsSource = (table: string, columns: readonly string[]): string =>
  `select ${quoted(columns)} from json_populate_recordset(null::"${table}", ?)`;

interface Insert {
  table: string;
  /** What follows the values. */
  conflict: string;
}

async function insertParts(tx: Knex.Transaction, insert: Insert, rows: readonly object[]): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
    if (start > 0) await nextTurn();
    const part = rows.slice(start, start + ROWS_PER_INSERT);
    const cells: Binding[] = [];
    for (const row of part) addCells(cells, insert.table, columns, row);
    if (isSqlite(tx)) await sendChange(tx, valuesText(insert, columns, part.length), cells);
    else await sendRows(tx, insert.table, recordsText(insert, columns), JSON.stringify(part));
  }
}

/**
 * Like `insertAll`, but fast, for the log that orders wait for: rows are lists of values in the order of the columns, and the statement is
 * plain SQL, because the query builder takes several times as long as the database.
 */
export async function insertValues(
  tx: Knex.Transaction,
  table: string,
  columns: readonly string[],
  rows: readonly (readonly Binding[])[],
): Promise<void> {
  const row = `(${placeholders(columns.length)})`;
  for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
    const part = rows.slice(start, start + ROWS_PER_INSERT);
    const values = part.map(() => row).join(', ');
    await sendChange(tx, `insert into ${table} (${columns.join(', ')}) values ${values}`, part.flat());
  }
}

const quoted = (columns: readonly string[]): string => columns.map((column) => `"${column}"`).join(', ');

/** SQLite is fastest with the values bound one by one, to a statement text that it has prepared before. */
function valuesText({ table, conflict }: Insert, columns: readonly string[], rowCount: number): string {
  const row = `(${placeholders(columns.length)})`;
  return `insert into "${table}" (${quoted(columns)}) values ${Array(rowCount).fill(row).join(', ')}${conflict}`;
}

/** PostgreSQL is fastest with all rows in one JSON binding, read with the types of the table. */
function recordsText({ table, conflict }: Insert, columns: readonly string[]): string {
  const list = quoted(columns);
  return `insert into "${table}" (${list}) select ${list} from json_populate_recordset(null::"${table}", ?)${conflict}`;
}

/** Throws for a row with a missing or an extra column, which would otherwise become a null. */
function addCells(cells: Binding[], table: string, columns: readonly string[], row: object): void {
  for (const column of columns) {
    const cell = (row as Record<string, Binding | undefined>)[column];
    if (cell === undefined) throw otherColumns(table, column);
    cells.push(cell);
  }
  const own = Object.keys(row);
  if (own.length !== columns.length) throw otherColumns(table, own.join());
}

function otherColumns(table: string, columns: string): RangeError {
  return new RangeError(`a row of ${table} has other columns than the first one: ${columns}`);
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
