/**
 * Schemas of PostgreSQL with every table and no row, which tests take one after the other: to make all tables takes it a second, to empty
 * them some milliseconds. All processes of a run share them; `dropSpareSchemas` removes them at its end.
 */
import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import type { Knex } from 'knex';
import { migrate, openDb, schemaOf } from '../../../ledger/db/db.js';
import type { Db } from '../../../ledger/types.js';

/** A run is all processes that share a folder of transpiled code, or one process. */
const RUN = basename(process.env.TRANSPILED ?? `${process.pid}`).replace(/\W/g, '_');
/** How the names of its spare schemas begin. */
const PREFIX = `spare_${RUN}_`.toLowerCase();

/** A smaller table is emptied faster by deleting its rows than by TRUNCATE, which creates new files. */
const TRUNCATED_FROM_BYTES = 256 * 1_024;

/** Gives the schema of `db`, which does not exist yet, every table: a spare one takes its name, else migrations make them. */
export async function takeSchema(db: Db): Promise<void> {
  const isTaken = await db.knex.transaction(async (tx) => {
    // One at a time: two that rename the same schema fail.
    await tx.raw('select pg_advisory_xact_lock(hashtext(?))', [PREFIX]);
    const [spare] = await schemasOf(tx);
    if (spare === undefined) return false;
    await tx.raw('alter schema ?? rename to ??', [spare, schemaOf(db)]);
    return true;
  });
  if (isTaken) return;
  await migrate(db);
  await db.knex.raw(`comment on schema ?? is '${await layoutMark(db.knex, schemaOf(db))}'`, [schemaOf(db)]);
}

/**
 * Empties the schema of `db` and keeps it for other tests under another name; a connection that still writes by the old name fails. A schema whose
 * tables are not as the migrations made them is dropped.
 */
export async function giveBackSchema(db: Db): Promise<void> {
  const schema = schemaOf(db);
  const { rows } = await db.knex.raw<{ rows: { mark: string | null }[] }>(
    `select obj_description(oid, 'pg_namespace') as mark from pg_namespace where nspname = ?`,
    [schema],
  );
  const mark = rows[0]?.mark ?? null;
  if (mark === null || mark !== (await layoutMark(db.knex, schema))) return dropSchema(db);
  await db.knex.transaction(async (tx) => {
    await tx.raw(
      `do $$ declare name text; begin
         for name in select tablename from pg_tables where schemaname = '${schema}' and tablename not like 'knex_%' loop
           if pg_table_size(format('%I.%I', '${schema}', name)::regclass) > ${TRUNCATED_FROM_BYTES}
           then execute format('truncate %I.%I', '${schema}', name);
           else execute format('delete from %I.%I', '${schema}', name);
           end if;
         end loop;
       end $$`,
    );
    await tx.raw('alter schema ?? rename to ??', [schema, `${PREFIX}${randomUUID().slice(0, 8)}`]);
  });
}

export async function dropSchema(db: Db): Promise<void> {
  await db.knex.raw('drop schema if exists ?? cascade', [schemaOf(db)]);
}

/** Removes all that this run keeps on the server of `url`. */
export async function dropSpareSchemas(url: string): Promise<void> {
  const db = await openDb(url);
  try {
    for (const spare of await schemasOf(db.knex)) await db.knex.raw('drop schema if exists ?? cascade', [spare]);
  } finally {
    await db.close();
  }
}

async function schemasOf(q: Knex): Promise<string[]> {
  const { rows } = await q.raw<{ rows: { name: string }[] }>(
    'select nspname as name from pg_namespace where starts_with(nspname, ?)',
    [PREFIX],
  );
  return rows.map(({ name }) => name);
}

/** A hash that changes with every table, column, index, constraint and trigger of the schema, and with the migrations that have run. */
async function layoutMark(q: Knex, schema: string): Promise<string> {
  const { rows } = await q.raw<{ rows: { mark: string }[] }>(
    `with tables as (select oid, relname, relnatts, reloptions from pg_class where relnamespace = (select oid from pg_namespace where nspname = :schema))
     select md5(string_agg(line, ' ' order by line)) as mark from (
       select concat_ws(':', 'class', oid, relname, relnatts, reloptions) as line from tables
       union all select concat_ws(':', 'column', attrelid, attnum, xmin) from pg_attribute where attrelid in (select oid from tables)
       union all select concat_ws(':', 'constraint', oid, xmin) from pg_constraint where conrelid in (select oid from tables)
       union all select concat_ws(':', 'trigger', oid, xmin) from pg_trigger where tgrelid in (select oid from tables)
       union all select concat_ws(':', 'migration', name) from :schema:.knex_migrations
     ) as lines`,
    { schema },
  );
  return rows[0]!.mark;
}
