/** Whether commits survive the loss of the server: its replicas, and how many of them each commit waits for. */
import type { Db } from '../types.js';

/** One connected replica from `pg_stat_replication`. */
interface Replica {
  name: string;
  /** Null where the role may not see it: it needs `pg_monitor`. */
  state: string | null;
  syncState: string | null;
}

export interface Replication {
  replicas: readonly Replica[];
  /** `synchronous_commit` of this program's sessions. */
  synchronousCommit: string;
  synchronousStandbyNames: string;
}

/** Numbers of replicas by whether a commit waits for them; `unknown` where the role lacks the right to see it. */
export interface ReplicaCounts {
  sync: number;
  async: number;
  unknown: number;
}

interface ReplicationVerdict {
  counts: ReplicaCounts;
  /** Why a commit that was acknowledged may be lost with the server; null when it can't, or when there is no replica to lose it to. */
  problem: string | null;
  /** Each commit waits for at least one replica. */
  isSynchronous: boolean;
}

/** Reads the server's replicas; null on SQLite, which has none. */
export async function readReplication(db: Db): Promise<Replication | null> {
  if (db.kind === 'sqlite') return null;
  const { rows } = await db.knex.raw<{
    rows: { name: string | null; state: string | null; sync_state: string | null }[];
  }>('select application_name as name, state, sync_state from pg_stat_replication');
  const settings = await db.knex.raw<{ rows: { commit: string; names: string }[] }>(
    "select current_setting('synchronous_commit') as commit, current_setting('synchronous_standby_names') as names",
  );
  return {
    replicas: rows.map(({ name, state, sync_state: syncState }) => ({ name: name ?? '', state, syncState })),
    synchronousCommit: settings.rows[0]!.commit,
    synchronousStandbyNames: settings.rows[0]!.names,
  };
}

/** Values of `synchronous_commit` with which a commit waits until a replica has flushed it. */
const WAITS = ['on', 'remote_apply'];

/** Judges the server's answer. A base backup in progress is no replica. */
export function judgeReplication({ replicas, synchronousCommit, ...names }: Replication): ReplicationVerdict {
  const counts: ReplicaCounts = { sync: 0, async: 0, unknown: 0 };
  for (const { state, syncState } of replicas) {
    if (state === 'backup') continue;
    if (syncState === null) counts.unknown += 1;
    else counts[syncState === 'sync' || syncState === 'quorum' ? 'sync' : 'async'] += 1;
  }
  const waits = WAITS.includes(synchronousCommit);
  const isSynchronous = counts.sync > 0 && waits;
  return { counts, isSynchronous, problem: isSynchronous ? null : problemOf(counts, waits, synchronousCommit, names) };
}

function problemOf(
  { sync, async, unknown }: ReplicaCounts,
  waits: boolean,
  synchronousCommit: string,
  { synchronousStandbyNames: names }: { synchronousStandbyNames: string },
): string | null {
  if (sync + async + unknown === 0) return null;
  if (!waits) return `synchronous_commit is ${synchronousCommit}: commits wait for no replica`;
  // Where the role can't see the replicas' state, `synchronous_standby_names` decides.
  if (unknown > 0 && names !== '') return null;
  if (unknown > 0) return 'synchronous_standby_names is empty: commits wait for no replica';
  return `${async} replicas are attached and none is synchronous: what was acknowledged can be lost with the server`;
}
