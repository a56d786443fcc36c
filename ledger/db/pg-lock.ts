import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PG_SESSION_SQL, pgConnectionOf, schemaOf } from './db.js';
import type { Db } from '../types.js';

/**
 * A PostgreSQL advisory lock, held for as long as its own connection lives. The holder sends a query every KEEPALIVE_MS, so that others see
 * that it is alive: a frozen process would keep its connection, and its lock with it.
 */
export interface AdvisoryLock {
  /** Why the lock was lost; null while it is held. */
  failure(): string | null;
  /** Ends sessions that block the session `pid` by a transaction in which they have sent nothing for a while. */
  endBlockersOf(pid: number): Promise<void>;
  /** Frees the lock by closing its connection; repeated calls do nothing. */
  release(): Promise<void>;
}

interface AdvisoryLockOptions {
  /** How often to ask for a lock that another session holds. */
  pollMs: number;
  /** How often the holder sends a query, so that others see that it is alive. */
  keepaliveMs: number;
  /** How long the lock must have been seen free before it is taken; called at each try. */
  freeForMs(): number;
  /** Once it resolves, the lock is tried at once. */
  hurry: Promise<unknown> | undefined;
  signal: AbortSignal | undefined;
  /** Called when this process ended the session of a holder that had been silent for so long. */
  onSilent: ((silentMs: number) => void) | undefined;
  /** Called at most once, never after `release`. */
  onLost: (reason: string) => void;
}

/** How often a holder shows that it is alive. */
export const KEEPALIVE_MS = 500;
/**
 * A holder that has sent nothing for so long counts as frozen: a waiting process ends its session. Five times its usual pause: one that only
 * collects garbage or gets no processor for 2 s keeps its logs. Whoever loses one that way can't write any more, and starts again.
 */
export const SILENT_MS = 2_500;
/** The server itself ends a silent session after this time, so that its lock becomes free even while no process waits for it. */
const SESSION_TIMEOUT_MS = 15_000;
/** How long the database may take to answer before the holder takes its connection for dead. */
const ANSWER_TIMEOUT_MS = 9_000;
/** How often a waiting process checks whether the holder is alive. */
export const LOOK_MS = 250;
/** A transaction that its client leaves without a whole statement for so long counts as frozen while a process that takes a log over waits for it. */
const STUCK_MS = 2_000;
/** The same while any other transaction waits for it: one that is slow keeps its locks, since what it does is worth more than a short wait. */
const BLOCKING_MS = 5_000;
/** How often holders look for such transactions. */
const SWEEP_MS = 1_000;
/** Application name of lock sessions: only sessions with it are ended, because they are known to send queries all the time. */
const APPLICATION = 'curvebook lock';

/**
 * Waits for the lock called `name` within the schema of `db`, and takes it; a silent holder loses it. Rejects with the signal's reason when
 * the signal aborts, and with the database's error when the connection fails.
 */
export async function holdAdvisoryLock(db: Db, name: string, options: AdvisoryLockOptions): Promise<AdvisoryLock> {
  const client = new pg.Client({
    ...pgConnectionOf(db),
    query_timeout: ANSWER_TIMEOUT_MS,
    application_name: APPLICATION,
  });
  let failure: string | null = null;
  const keepalive: { timer?: NodeJS.Timeout } = {};
  let ended: Promise<void> | null = null;

  function end(): Promise<void> {
    clearInterval(keepalive.timer);
    // With a query unanswered the client drops its socket, so that this does not wait for a dead peer.
    return (ended ??= client.end().catch(() => {}));
  }

  function lose(reason: string): void {
    if (failure !== null || ended !== null) return;
    failure = reason;
    void end();
    options.onLost(reason);
  }

  client.on('error', (error) => lose(error.message));
  client.on('end', () => lose('the connection of its lock ended'));
  try {
    await client.connect();
    await client.query(PG_SESSION_SQL);
    const key = lockKey(db, name);
    let lookedMs = performance.now();
    let freeSinceMs: number | null = null;
    let isHurried = false;
    const hurried = options.hurry?.then(
      () => (isHurried = true),
      () => new Promise<never>(() => undefined),
    );
    const pause = async (): Promise<void> => {
      const slept = sleep(options.pollMs, undefined, { signal: options.signal });
      await (hurried === undefined || isHurried ? slept : Promise.race([slept, hurried]));
    };
    const take = async (): Promise<boolean> => {
      if (options.freeForMs() === 0) return tryLock(client, key);
      freeSinceMs = (await isHeld(client, key)) ? null : (freeSinceMs ?? performance.now());
      if (freeSinceMs === null || performance.now() - freeSinceMs < options.freeForMs()) return false;
      return tryLock(client, key);
    };
    while (!(await take())) {
      await pause();
      if (performance.now() - lookedMs < LOOK_MS) continue;
      lookedMs = performance.now();
      const ended = await client.query<{ silent_ms: number }>(END_SILENT_HOLDER, [key, SILENT_MS, APPLICATION]);
      for (const { silent_ms: silentMs } of ended.rows) options.onSilent?.(silentMs);
    }
    await client.query(LIMIT_SESSION);
  } catch (error) {
    await end();
    options.signal?.throwIfAborted();
    throw error;
  }

  let asking = false;
  let sweptMs = performance.now();
  // Each query shows that this process lives.
  const keepAlive = (): Promise<unknown> => {
    if (performance.now() - sweptMs < SWEEP_MS) return client.query('select 1');
    sweptMs = performance.now();
    return client.query(END_STUCK, [BLOCKING_MS]);
  };
  const timer = setInterval(() => {
    if (asking) return;
    asking = true;
    keepAlive().then(
      () => (asking = false),
      (error: Error) => lose(error.message),
    );
  }, options.keepaliveMs);
  keepalive.timer = timer;
  timer.unref();
  return {
    failure: () => failure,
    endBlockersOf: async (pid) => void (await client.query(END_BLOCKERS, [STUCK_MS, pid])),
    release: end,
  };
}

/** Key of the lock called `name` on the server: all schemas share its advisory locks, so the schema is part of the key. */
export const lockKey = (db: Db, name: string): string => `curvebook:${schemaOf(db)}:${name}`;

/** Works since PostgreSQL 14; before that only a waiting process ends a silent session. */
const LIMIT_SESSION = `select set_config('idle_session_timeout', '${SESSION_TIMEOUT_MS}', false)
  where current_setting('server_version_num')::int >= 140000`;

/** Needs no privilege beyond LOGIN, because a role may end its own sessions. */
const END_SILENT_HOLDER = `select pg_terminate_backend(activity.pid),
    round(extract(epoch from clock_timestamp() - state_change) * 1000)::int as silent_ms
  from pg_locks join pg_stat_activity as activity on activity.pid = pg_locks.pid
  where locktype = 'advisory' and granted and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
    and (classid::bigint << 32) | objid::bigint = hashtextextended($1, 0)
    and state = 'idle' and state_change < clock_timestamp() - $2::int * interval '1 millisecond'
    and application_name = $3 and usename = current_user`;

/** A session that waits for its client, between two statements or in the middle of one that arrived in part, or of an answer. */
const IS_STUCK = (session: string): string => `${session}.usename = current_user
    and (${session}.state = 'idle in transaction' or ${session}.wait_event in ('ClientRead', 'ClientWrite'))
    and ${session}.state_change < clock_timestamp() - $1::int * interval '1 millisecond'`;

const END_BLOCKERS = `select pg_terminate_backend(stuck.pid) from pg_stat_activity as stuck
  where stuck.pid = any (pg_blocking_pids($2)) and ${IS_STUCK('stuck')}`;

/** Ends what blocks other sessions of this role: nobody need take a log over for a frozen process to keep the owner of a log, or its own successor, waiting. */
const END_STUCK = `select pg_terminate_backend(stuck.pid) from pg_stat_activity as stuck
  where ${IS_STUCK('stuck')} and stuck.pid in (
    select unnest(pg_blocking_pids(waiting.pid)) from pg_stat_activity as waiting
    where waiting.wait_event_type = 'Lock' and waiting.usename = current_user and waiting.datname = current_database()
  )`;

const HOLDERS = `from pg_locks
  where locktype = 'advisory' and granted and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
    and (classid::bigint << 32) | objid::bigint = hashtextextended($1, 0)`;

async function isHeld(client: pg.Client, key: string): Promise<boolean> {
  const answer = await client.query<{ held: boolean }>(`select exists (select 1 ${HOLDERS}) as held`, [key]);
  return answer.rows[0]?.held === true;
}

async function tryLock(client: pg.Client, key: string): Promise<boolean> {
  const sql = 'select pg_try_advisory_lock(hashtextextended($1, 0)) as held';
  const answer = await client.query<{ held: boolean }>(sql, [key]);
  return answer.rows[0]?.held === true;
}
