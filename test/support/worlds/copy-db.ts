import { schemaOf } from '../../../ledger/db/db.js';
import { insertAll } from '../../../ledger/db/columns.js';
import type { Db } from '../../../ledger/types.js';

/** Tables of Knex' own. */
const OURS_ALREADY = /^knex_/;

/** A backup: every row of a database in another one of the same kind, with the same tables and nothing in them. */
export async function copyDb(from: Db, to: Db): Promise<void> {
  for (const table of await tablesOf(from)) {
    if (OURS_ALREADY.test(table) || table.startsWith('sqlite_')) continue;
    const rows = await from.knex(table).select<Record<string, unknown>[]>();
    await to.knex.transaction(async (tx) => {
      await tx(table).delete();
      await insertAll(tx, table, rows);
    });
  }
}

async function tablesOf(db: Db): Promise<string[]> {
  if (db.kind === 'sqlite') {
    const rows = await db.knex('sqlite_master').where({ type: 'table' }).select<{ name: string }[]>('name');
    return rows.map(({ name }) => name);
  }
  const rows = await db.knex
    .withSchema('information_schema')
    .from('tables')
    .where({ table_schema: schemaOf(db), table_type: 'BASE TABLE' })
    .select<{ table_name: string }[]>('table_name');
  return rows.map(({ table_name: name }) => name);
}
