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
 * How far the database is behind its primary. While it is connected and everything that the primary has written, as far as its newest message told,
 * is applied, the state is as old as that message, which comes with each commit and at least each half minute. Otherwise it is as old as the newest
 * commit that is applied, which also counts without the right to see the receiver (`pg_monitor`): then the lag grows while the primary writes
 * nothing. Both times are the primary's: clocks that differ by a second change the lag by one. Of a replica of a replica it is the lag behind the
 * latter.
 */
export async function readReplicaLag(db: Db): Promise<ReplicaLag> {
  if (db.kind === 'sqlite') return { isReplica: false, lagMs: 0 };
  const { rows } = await db.knex.raw<{ rows: { is_replica: boolean; lag_ms: number | null }[] }>(LAG_SQL);
  const row = rows[0]!;
  return { isReplica: row.is_replica, lagMs: row.is_replica ? row.lag_ms : 0 };
}

/** What arrives late is applied at once, so that its own position says nothing: the primary's end of the log must be reached. */
const LAG_SQL = `
  select pg_is_in_recovery() as is_replica,
    case when pg_is_in_recovery() then
      greatest(0, ceil(extract(epoch from clock_timestamp() - greatest(
        pg_last_xact_replay_timestamp(),
        (select last_msg_send_time from pg_stat_wal_receiver
          where status = 'streaming' and latest_end_lsn <= pg_last_wal_replay_lsn())
      )) * 1000))::float8
    end as lag_ms`;
