import { schemaOf } from '../../../ledger/db/db.js';
import type { Db } from '../../../ledger/types.js';

/** Every column and index of a database as a line each, sorted: two databases with the same tables give the same lines. */
export async function layoutOf(db: Db): Promise<string[]> {
  return (db.kind === 'pg' ? await pgLines(db) : await sqliteLines(db)).sort();
}

async function pgLines({ knex, ...db }: Db): Promise<string[]> {
  const schema = schemaOf({ knex, ...db });
  const columns = await knex.raw<{ rows: { line: string }[] }>(
    `select concat_ws(' ', table_name, column_name, data_type, numeric_precision, is_nullable, column_default) as line
     from information_schema.columns where table_schema = ?`,
    [schema],
  );
  const indexes = await knex.raw<{ rows: { line: string }[] }>(
    'select indexdef as line from pg_indexes where schemaname = ?',
    [schema],
  );
  return [...columns.rows, ...indexes.rows].map(({ line }) => line.replaceAll(schema, 'schema'));
}

async function sqliteLines({ knex }: Db): Promise<string[]> {
  const columns = await knex.raw<{ line: string }[]>(
    `select t.name || ' ' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || c.pk || ' ' || ifnull(c.dflt_value, '') as line
     from sqlite_master t join pragma_table_info(t.name) c where t.type = 'table'`,
  );
  const indexes = await knex.raw<{ line: string }[]>(
    `select t.name || ' ' || i.name || ' ' || i."unique" || ' ' || i.partial || ' ' || group_concat(c.name) as line
     from sqlite_master t join pragma_index_list(t.name) i join pragma_index_xinfo(i.name) c
     where t.type = 'table' and c.key = 1 group by t.name, i.name, i."unique", i.partial`,
  );
  return [...columns, ...indexes].map(({ line }) => line);
}
