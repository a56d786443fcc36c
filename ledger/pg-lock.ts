import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PG_SESSION_SQL, pgConnectionOf, schemaOf } from './db.js';
import type { Db } from './types.js';

/** A PostgreSQL advisory lock, held for as long as its own connection lives. */
export interface AdvisoryLock {
  /** Why the lock was lost; null while it is held. */
  failure(): string | null;
  /** Frees the lock by closing its connection; repeated calls do nothing. */
  release(): Promise<void>;
}

export interface AdvisoryLockOptions {
  /** How often to ask for a lock that another session holds. */
  pollMs: number;
  /** How often the holder's connection is asked whether it lives; it may take three times as long to answer. */
  keepaliveMs: number;
  signal: AbortSignal | undefined;
  /** Called at most once, never after `release`. */
  onLost: (reason: string) => void;
}

/**
 * Waits for the lock called `name` within the schema of `db`, and takes it. Rejects with the signal's reason when told to stop, and
 * with the database's error when the connection fails.
 */
export async function holdAdvisoryLock(db: Db, name: string, options: AdvisoryLockOptions): Promise<AdvisoryLock> {
  const client = new pg.Client({ ...pgConnectionOf(db), query_timeout: 3 * options.keepaliveMs });
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
    while (!(await tryLock(client, lockKey(db, name)))) {
      await sleep(options.pollMs, undefined, { signal: options.signal });
    }
  } catch (error) {
    await end();
    options.signal?.throwIfAborted();
    throw error;
  }

  let asking = false;
  const timer = setInterval(() => {
    if (asking) return;
    asking = true;
    client.query('select 1').then(
      () => (asking = false),
      (error: Error) => lose(error.message),
    );
  }, options.keepaliveMs);
  keepalive.timer = timer;
  timer.unref();
  return { failure: () => failure, release: end };
}

/** What the lock called `name` is known by to the whole server, whose schemas share its advisory locks. */
export const lockKey = (db: Db, name: string): string => `curvebook:${schemaOf(db)}:${name}`;

async function tryLock(client: pg.Client, key: string): Promise<boolean> {
  const sql = 'select pg_try_advisory_lock(hashtextextended($1, 0)) as held';
  const answer = await client.query<{ held: boolean }>(sql, [key]);
  return answer.rows[0]?.held === true;
}
