/** Sums by key: added up in memory, then added to the stored rows. */
import type { Knex } from 'knex';
import { unitsSum } from '../db/aggregates.js';
import { addAll, chunks, fromColumn, toColumn, upsertAll } from '../db/columns.js';
import { isSqlite, sendChange, sendForRows, type Binding } from '../db/dialects.js';
import type { Queryable } from '../types.js';
import type { SumOf, SumTable } from './tables.js';

type Key = readonly (string | number)[];

/** A row: its key in the order of the table's key columns, and its sums in that of `sums`. */
export interface SumRow {
  key: Key;
  sums: bigint[];
}

/** Sums of one table by key. */
export interface Sums<T extends SumTable = SumTable> {
  readonly table: T;
  readonly rows: Map<string, SumRow>;
}

export const createSums = <T extends SumTable>(table: T): Sums<T> => ({ table, rows: new Map() });

const nameOf = (key: Key): string => key.join(':');

/** The market of a row. Throws TypeError when its key has none. */
export const marketOf = (table: SumTable, row: Pick<SumRow, 'key'>): number => wholeAt(row, table.text.length);

/** When the period of a row began. Throws TypeError when its key does not say. */
export const openOf = (row: Pick<SumRow, 'key'>): number => wholeAt(row, row.key.length - 1);

function wholeAt({ key }: Pick<SumRow, 'key'>, place: number): number {
  const whole = key[place];
  if (typeof whole !== 'number') throw new TypeError(`${nameOf(key)} has no number at ${place}`);
  return whole;
}

/** Adds to the row of a key, or subtracts with a sign of -1. */
export function addTo<T extends SumTable>(
  { table, rows }: Sums<T>,
  key: Key,
  deltas: Partial<Record<SumOf<T>, bigint>>,
  sign: 1n | -1n = 1n,
): void {
  const name = nameOf(key);
  const row = rows.get(name) ?? { key, sums: table.sums.map(() => 0n) };
  rows.set(name, row);
  for (const [i, column] of table.sums.entries()) {
    const delta = deltas[column as SumOf<T>];
    if (delta !== undefined) row.sums[i]! += sign * delta;
  }
}

const keyColumns = ({ text, whole }: SumTable): string[] => [...text, ...whole];

/** Stored rows under these keys, by their names. */
export async function readSumsAt(q: Queryable, table: SumTable, keys: readonly Key[]): Promise<Map<string, SumRow>> {
  const columns = keyColumns(table);
  const found = new Map<string, SumRow>();
  for (const part of chunks(keys, 60)) {
    const sql = `select * from ${table.name} where ${part.map(() => anyKey(columns)).join(' or ')}`;
    const rows = await sendForRows<Record<string, string | number>>(q, sql, part.flat());
    for (const row of rows.map((stored) => fromStored(table, stored))) found.set(nameOf(row.key), row);
  }
  return found;
}

/** Rows of a table that a condition on its columns selects. */
export async function selectSums(
  q: Queryable,
  table: SumTable,
  where: string,
  bindings: readonly Binding[],
): Promise<SumRow[]> {
  const sql = `select * from ${table.name} where ${where} order by ${keyColumns(table).join(', ')}`;
  const rows = await sendForRows<Record<string, string | number>>(q, sql, bindings);
  return rows.map((row) => fromStored(table, row));
}

/** Sums over the rows of a table that a condition on its columns selects, by market, in the order of markets: the database adds them up, exactly. */
export async function selectTotals<T extends SumTable, C extends SumOf<T>>(
  q: Queryable,
  { name, columns }: { name: T['name']; columns: readonly C[] },
  where: string,
  bindings: readonly Binding[],
): Promise<Map<number, Record<C, bigint>>> {
  const sums = columns.map((column) => `${unitsSum(q, column)} as ${column}`);
  const sql = `select market, ${sums.join(', ')} from ${name} where ${where} group by market order by market`;
  const rows = await sendForRows<{ market: number } & Record<C, string>>(q, sql, bindings);
  return new Map(
    rows.map((row) => {
      const total = columns.map((column) => [column, fromColumn(row[column])]);
      return [row.market, Object.fromEntries(total) as Record<C, bigint>];
    }),
  );
}

function fromStored(table: SumTable, row: Record<string, string | number>): SumRow {
  return {
    key: keyColumns(table).map((column) => row[column]!),
    sums: table.sums.map((column) => fromColumn(row[column])),
  };
}

const isEmpty = ({ sums }: SumRow): boolean => sums.every((sum) => sum === 0n);

/** Adds sums of which no stored row can become all zeros: PostgreSQL adds them up without a read. */
export async function addSums(tx: Knex.Transaction, sums: Sums): Promise<void> {
  if (isSqlite(tx)) return storeSums(tx, sums);
  const { table, rows } = sums;
  const added = [...rows.values()].filter((row) => !isEmpty(row)).map((row) => toStored(table, row));
  await addAll(tx, table.name, keyColumns(table), added);
}

/** Adds sums to the stored rows. A row that becomes all zeros is deleted. */
export async function storeSums(tx: Knex.Transaction, { table, rows }: Sums): Promise<void> {
  if (rows.size === 0) return;
  const stored = await readSumsAt(
    tx,
    table,
    [...rows.values()].map(({ key }) => key),
  );
  const after = [...rows].map(([name, { key, sums }]): SumRow => {
    const before = stored.get(name);
    return before === undefined ? { key, sums } : { key, sums: sums.map((sum, i) => sum + before.sums[i]!) };
  });
  const gone = after.filter((row) => isEmpty(row) && stored.has(nameOf(row.key)));
  const columns = keyColumns(table);
  for (const part of chunks(gone, 60)) {
    const sql = `delete from ${table.name} where ${part.map(() => anyKey(columns)).join(' or ')}`;
    await sendChange(
      tx,
      sql,
      part.flatMap(({ key }) => [...key]),
    );
  }
  const rest = after.filter((row) => !isEmpty(row)).map((row) => toStored(table, row));
  await upsertAll(tx, table.name, columns, rest);
}

const anyKey = (columns: readonly string[]): string => `(${columns.map((column) => `${column} = ?`).join(' and ')})`;

function toStored(table: SumTable, { key, sums }: SumRow): Record<string, Binding> {
  const row: Record<string, Binding> = {};
  for (const [i, column] of keyColumns(table).entries()) row[column] = key[i]!;
  for (const [i, column] of table.sums.entries()) row[column] = toColumn(sums[i]!);
  return row;
}

/** The sum of several rows, by column name. */
export function totalOf<T extends SumTable>(table: T, rows: readonly Pick<SumRow, 'sums'>[]): Record<SumOf<T>, bigint> {
  const sums = table.sums.map((column, i) => [column, rows.reduce((sum, row) => sum + row.sums[i]!, 0n)]);
  return Object.fromEntries(sums) as Record<SumOf<T>, bigint>;
}
