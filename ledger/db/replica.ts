/** A database that is read and not written: whether its tables are this version's, and how far a replica is behind its primary. */
import { migrations } from '../migrations/index.js';
import type { Db } from '../types.js';
import { boundDeployment, deploymentMismatch, hasStaleProjections, tablesOf } from './db.js';
import { checkVersion } from './writers.js';

/** What stands in the way of reading a database. `empty`: never prepared; `older`: its writers have not changed the tables yet. */
export type TablesState = 'current' | 'empty' | 'older';

/**
 * Whether the tables are those of this version, and of this deployment. Writes nothing. Throws DatabaseError `DATABASE_NEWER` for tables of a
 * newer version, and `DEPLOYMENT_MISMATCH`.
 */
export async function readTablesState(db: Db, deploymentId: string): Promise<TablesState> {
  if (!(await tablesOf(db).hasTable('knex_migrations'))) return 'empty';
  await checkVersion(db.reads);
  const made = await db.reads<{ name: string }>('knex_migrations').select('name');
  if (made.length < migrations.length || (await hasStaleProjections(db.reads))) return 'older';
  const bound = await boundDeployment(db);
  if (bound !== null && bound !== deploymentId) throw deploymentMismatch(bound, deploymentId);
  return bound === null ? 'empty' : 'current';
}

export interface ReplicaLag {
  isReplica: boolean;
  /** The state that is read is at most this much older than the primary's, by this machine's clock; zero on a primary. Null while nothing is known. */
  lagMs: number | null;
}

/**
 * How far the database is behind its primary. What was received and is applied is as old as the newest message of the primary, which sends
 * one at each commit, and at least each half minute; what waits to be applied is as old as the newest commit that was. Without the right to
 * see the receiver (`pg_monitor`), or while none is connected, the latter alone counts: the lag then grows while the primary writes nothing.
 */
export async function readReplicaLag(db: Db): Promise<ReplicaLag> {
  if (db.kind === 'sqlite') return { isReplica: false, lagMs: 0 };
  const { rows } = await db.knex.raw<{ rows: { is_replica: boolean; lag_ms: number | null }[] }>(LAG_SQL);
  const row = rows[0]!;
  return { isReplica: row.is_replica, lagMs: row.is_replica ? row.lag_ms : 0 };
}

const LAG_SQL = `
  select pg_is_in_recovery() as is_replica,
    case when pg_is_in_recovery() then
      greatest(0, ceil(extract(epoch from clock_timestamp() - greatest(
        pg_last_xact_replay_timestamp(),
        case when pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn()
          then (select last_msg_receipt_time from pg_stat_wal_receiver where status = 'streaming') end
      )) * 1000))::float8
    end as lag_ms`;
