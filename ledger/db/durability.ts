/** Whether acknowledged commits survive a crash of the database's machine. */
import { toSafeInt } from '../../core/amounts.js';
import type { Db } from '../types.js';

/** Settings of the server and of this program's sessions. */
export interface PgDurability {
  kind: 'pg';
  version: string;
  fsync: string;
  fullPageWrites: string;
  synchronousCommit: string;
  /** A replica, which takes no writes. */
  isReplica: boolean;
  maxConnections: number;
  /** Connections open now, of all programs. */
  connections: number;
}

type Durability = PgDurability | { kind: 'sqlite'; journal: string; synchronous: number };

/** Reads the settings. */
export async function readDurability(db: Db): Promise<Durability> {
  if (db.kind === 'sqlite') {
    const [journal] = await db.knex.raw<{ journal_mode: string }[]>('pragma journal_mode');
    const [synchronous] = await db.knex.raw<{ synchronous: number }[]>('pragma synchronous');
    return { kind: 'sqlite', journal: journal?.journal_mode ?? '', synchronous: synchronous?.synchronous ?? 0 };
  }
  const { rows } = await db.knex.raw<{ rows: Record<string, string>[] }>(`
    select current_setting('server_version') as version, current_setting('fsync') as fsync,
      current_setting('full_page_writes') as full_page_writes, current_setting('synchronous_commit') as synchronous_commit,
      pg_is_in_recovery()::text as is_replica, current_setting('max_connections') as max_connections,
      (select count(*)::text from pg_stat_activity) as connections`);
  const row = rows[0]!;
  return {
    kind: 'pg',
    version: row['version']!,
    fsync: row['fsync']!,
    fullPageWrites: row['full_page_writes']!,
    synchronousCommit: row['synchronous_commit']!,
    isReplica: row['is_replica'] === 'true',
    maxConnections: toSafeInt(BigInt(row['max_connections']!)),
    connections: toSafeInt(BigInt(row['connections']!)),
  };
}
