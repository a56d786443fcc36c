/**
 * Makes a long history out of a short one: copies the rows of some hours of fills for the hours that follow, by SQL statements alone. The fills of
 * `world.ts` repeat after a thousand per market, so copies differ from generated fills in numbers and times only.
 */
import type { Db } from '../../ledger/types.js';

/** How far each copy is after the one before it. */
interface Step {
  generations: number;
  /** Of each market. */
  fills: number;
  ms: number;
}

interface Copied {
  table: string;
  /** Which rows are copied; `?` is the first generation or time of the original. */
  where: string;
  /** What each copy adds to a column: that many times its number. */
  shifts: Record<string, number>;
}

function copiedTables({ generations, fills, ms }: Step): Copied[] {
  const since = 'generation >= ?';
  const [head, time] = ['observed_head', 'observed_head_timestamp_ms'];
  return [
    {
      table: 'generations',
      where: since,
      shifts: {
        ...{ generation: generations, from_block: generations, to_block: generations, [head]: generations },
        ...{ block_timestamp_ms: ms, scanned_ms: ms, [time]: ms },
      },
    },
    {
      table: 'blocks',
      where: since,
      shifts: { number: generations, generation: generations, timestamp_sec: ms / 1_000 },
    },
    { table: 'market_progress', where: since, shifts: { generation: generations, fill_seq: fills } },
    {
      table: 'fills',
      where: since,
      // No two fills stand at one place of a transaction.
      shifts: { fill_seq: fills, block_number: generations, timestamp_ms: ms, generation: generations, log_index: 1 },
    },
    {
      table: 'order_fills',
      where: since,
      shifts: { fill_seq: fills, oid: 2 * fills, tid: 2 * fills, generation: generations, timestamp_ms: ms },
    },
    // Of no interval that is longer than an hour.
    { table: 'candles', where: 'interval_no <= 5 and open_ms >= ?', shifts: { open_ms: ms } },
    { table: 'maker_hours', where: 'hour_ms >= ?', shifts: { hour_ms: ms } },
    { table: 'market_hours', where: 'hour_ms >= ?', shifts: { hour_ms: ms } },
  ];
}

/** Copies the rows from these generations and times on, so many times. Indexes are dropped before and created after, which is faster. */
export async function copyHistory(
  db: Db,
  from: { generation: number; timeMs: number },
  step: Step,
  copies: number,
): Promise<void> {
  for (const { table, where, shifts } of copiedTables(step)) {
    const indexes = await indexesOf(db, table);
    for (const { name } of indexes) await db.knex.raw('drop index ??', [name]);
    const columns = Object.keys(await db.knex(table).columnInfo());
    const values = columns.map((column) => `${column} + copy.no * ${shifts[column] ?? 0}`);
    const selected = columns.map((column, i) => (column in shifts ? values[i] : column));
    await db.knex.raw(
      `insert into ${table} (${columns.join(', ')})
       with recursive copy(no) as (select 1 union all select no + 1 from copy where no < ${copies})
       select ${selected.join(', ')} from copy cross join (select * from ${table} where ${where}) as original`,
      [where.startsWith('generation') ? from.generation : from.timeMs],
    );
    for (const { sql } of indexes) await db.knex.raw(sql);
  }
}

/** Indexes of a table that hold no key, and how each is made. */
async function indexesOf(db: Db, table: string): Promise<{ name: string; sql: string }[]> {
  if (db.kind === 'sqlite') {
    const rows = await db.knex('sqlite_master').where({ type: 'index', tbl_name: table }).whereNotNull('sql').select();
    return (rows as { name: string; sql: string }[]).filter(({ sql }) => !/^create unique/i.test(sql));
  }
  const rows = await db
    .knex('pg_indexes')
    .where({ tablename: table })
    .whereRaw('schemaname = current_schema()')
    .select({ name: 'indexname', sql: 'indexdef' });
  return (rows as { name: string; sql: string }[]).filter(({ sql }) => !sql.startsWith('CREATE UNIQUE'));
}
