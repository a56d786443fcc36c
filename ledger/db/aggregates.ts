/** What the database counts and compares, read as numbers: the one place that says what an aggregate may answer. */
import type { Knex } from 'knex';

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
