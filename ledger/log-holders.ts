import { lockKey } from './pg-lock.js';
import type { Db, LogName } from './types.js';

/**
 * Which logs somebody holds now. PostgreSQL tells of every process of the deployment; null on SQLite, where only the one process that
 * uses the file can say.
 */
export async function readLogHolders(db: Db, logs: readonly LogName[]): Promise<Set<LogName> | null> {
  if (db.kind === 'sqlite') return null;
  const held = new Set<LogName>();
  for (const log of logs) {
    // A lock by one bigint shows as its two halves, and with objsubid 1.
    const answer = await db.knex.raw<{ rows: { held: boolean }[] }>(
      `select exists (
         select 1 from pg_locks
         where locktype = 'advisory' and granted and objsubid = 1
           and database = (select oid from pg_database where datname = current_database())
           and (classid::bigint << 32) | objid::bigint = hashtextextended(?, 0)
       ) as held`,
      [lockKey(db, `writer:${log}`)],
    );
    if (answer.rows[0]?.held === true) held.add(log);
  }
  return held;
}
