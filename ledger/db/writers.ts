/**
 * One writer per log. Each take-over of a log raises its epoch. Every transaction that appends to the log checks the epoch under a row
 * lock, so a former holder can write nothing, even if it has not noticed the take-over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import pg from 'pg';
import { allOrFirstError, isSqlite, sendChange } from './dialects.js';
import { EARLY_BEGIN, RolledBackError } from './pg-client.js';
import { CommitUnknownError, DatabaseError, WriterLostError, databaseErrorCode } from '../errors.js';
import { beforeClose } from './db.js';
import { KEEPALIVE_MS, LOOK_MS, holdAdvisoryLock, lockKey, type AdvisoryLock } from './pg-lock.js';
import { migrations } from '../migrations/index.js';
import type { Db, LogName, Queryable, Transaction, Writer } from '../types.js';

interface AcquireOptions {
  /** Aborts the wait, also in the middle of a take-over: `acquireWriter` then holds nothing and rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Called at most once, when the log is lost other than by `release`. */
  onLost?: (error: WriterLostError) => void;
  /** PostgreSQL: called when a standby ends the session of a holder that has been silent for so long, because it is frozen. */
  onSilent?: (silentMs: number) => void;
  /** PostgreSQL: how often a standby asks for the lock. */
  pollMs?: number;
  /** PostgreSQL: how often a holder shows that it is alive. */
  keepaliveMs?: number;
  /** PostgreSQL: how long a standby must have seen the log free before it takes it. Called at each try; default 0. */
  freeForMs?(): number;
  /** PostgreSQL: once it resolves, a standby asks for the lock at once instead of at its next turn. */
  hurry?: Promise<unknown>;
}

export const POLL_MS = 250;

/**
 * Takes a log over. PostgreSQL: waits as a standby until the log's advisory lock is free, and holds it on a connection of its own. A holder
 * that is silent for some seconds, because it is frozen, loses the lock to a waiting process. On SQLite there is one process, so the newest
 * take-over wins at once. On both the epoch is raised, which stops any earlier holder from writing. Closing the database releases its
 * writers. Throws DatabaseError `DATABASE_NEWER` when the tables were changed by a newer version.
 */
export async function acquireWriter(db: Db, log: LogName, options: AcquireOptions = {}): Promise<Writer> {
  options.signal?.throwIfAborted();
  let lose: (reason: string) => void = () => {};
  const lock =
    db.kind === 'sqlite'
      ? null
      : await holdAdvisoryLock(db, `writer:${log}`, {
          pollMs: options.pollMs ?? POLL_MS,
          keepaliveMs: options.keepaliveMs ?? KEEPALIVE_MS,
          freeForMs: options.freeForMs ?? (() => 0),
          hurry: options.hurry,
          signal: options.signal,
          onSilent: options.onSilent,
          onLost: (reason) => lose(reason),
        });
  try {
    const epoch = await raiseEpoch(db, log, lock);
    options.signal?.throwIfAborted();
    const writer = createWriter(db, log, epoch, options.onLost, async () => lock?.release());
    lose = writer.lose;
    const failure = lock?.failure() ?? null;
    if (failure !== null) lose(failure);
    return writer;
  } catch (error) {
    await lock?.release();
    throw error;
  }
}

/** A holder that froze in the middle of a transaction keeps the row locked even without the advisory lock, so its session is ended, too. */
async function raiseEpoch(db: Db, log: LogName, lock: AdvisoryLock | null): Promise<number> {
  let pid: number | null = null;
  let isOver = false;
  const raising = db.knex.transaction(async (tx) => {
    if (lock !== null) {
      const answer = await tx.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid');
      pid = answer.rows[0]!.pid;
    }
    await tx('writers').insert({ log, epoch: 0 }).onConflict('log').ignore();
    await tx('writers').where({ log }).increment('epoch', 1);
    // Runs while holding the row's lock: a change of the tables is either seen here, or it raises the epoch again afterwards.
    await checkVersion(tx);
    const row = await tx<{ log: string; epoch: number }>('writers').where({ log }).first('epoch');
    return row!.epoch;
  });
  async function watch({ endBlockersOf }: AdvisoryLock): Promise<void> {
    for (await sleep(LOOK_MS); !isOver; await sleep(LOOK_MS)) if (pid !== null) await endBlockersOf(pid);
  }
  // An error that ends this check also ends the lock, and the lock reports it to its holder.
  if (lock !== null) watch(lock).catch(() => undefined);
  try {
    return await raising;
  } finally {
    isOver = true;
  }
}

/** Throws DatabaseError `DATABASE_NEWER` for tables that a newer version has changed: this one does not know their new columns. */
export async function checkVersion(q: Queryable): Promise<void> {
  const known = new Set(migrations.map(({ name }) => name));
  const done = await q<{ name: string }>('knex_migrations').select('name');
  const other = done.find(({ name }) => !known.has(name));
  if (other === undefined) return;
  const message = `A newer version of Curvebook changed this database (${other.name}); start that version`;
  throw new DatabaseError('DATABASE_NEWER', message);
}

type LosableWriter = Writer & { lose(reason: string): void };

function createWriter(
  db: Db,
  log: LogName,
  epoch: number,
  onLost: AcquireOptions['onLost'],
  unlock: () => Promise<void>,
): LosableWriter {
  let lost: WriterLostError | null = null;
  let tail: Promise<unknown> = Promise.resolve();
  let released: Promise<void> | null = null;

  function lose(reason: string): void {
    if (lost !== null) return;
    lost = new WriterLostError(log, reason);
    onLost?.(lost);
  }

  async function run<T>(steps: Steps<T>): Promise<T> {
    if (lost !== null) throw lost;
    try {
      return await fencedTransaction(db, log, epoch, steps);
    } catch (error) {
      if (error instanceof WriterLostError) lose('another process took it over');
      throw error;
    }
  }

  function tx<T>(write: Steps<T>['write'], read?: Steps<T>['read']): Promise<T> {
    const result = tail.then(() => run({ write, read }));
    tail = result.catch(() => {});
    return result;
  }

  async function release(): Promise<void> {
    await tail;
    forget();
    lost ??= new WriterLostError(log, 'this process released it');
    await unlock();
  }

  const writer = { log, epoch, tx, lose, release: () => (released ??= release()) };
  const forget = beforeClose(db, writer.release);
  return writer;
}

/** What a transaction of a writer does. */
interface Steps<T> {
  write: (tx: Knex.Transaction) => Promise<T>;
  /** Reads that are sent together with the fence. */
  read?: ((tx: Knex.Transaction) => Promise<void>) | undefined;
}

/** The pool may return a connection that the server has just closed; each try takes another one. */
const BEGIN_TRIES = 3;

async function fencedTransaction<T>(db: Db, log: LogName, epoch: number, steps: Steps<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const attempt = await attemptTransaction(db, log, epoch, steps);
    if ('result' in attempt) return attempt.result;
    const { error, phase } = attempt;
    if (phase === 'committing' && isConnectionFailure(db, error)) throw new CommitUnknownError(log, error);
    if (phase !== 'beginning' || tries === BEGIN_TRIES || !isConnectionFailure(db, error)) throw error;
  }
}

/** Where a transaction failed: before anything of it was sent, in its body, which is rolled back, or at COMMIT. */
type Phase = 'beginning' | 'writing' | 'committing';

/** The fence changes nothing but its own row, to what it is, so that it may be sent before BEGIN is answered. */
const BEGINNING: Knex.TransactionConfig = { userParams: EARLY_BEGIN };

/** Plain SQL: it is part of every commit, and building a query takes longer than running it. */
const FENCE = 'update writers set epoch = ? where log = ? and epoch = ?';

async function attemptTransaction<T>(
  db: Db,
  log: LogName,
  epoch: number,
  { write, read }: Steps<T>,
): Promise<{ result: T } | { error: unknown; phase: Phase }> {
  const progress: { phase: Phase; failure: { error: unknown } | null } = { phase: 'beginning', failure: null };
  try {
    const result = await db.knex.transaction(async (tx) => {
      try {
        // The update takes the row's lock, so that a take-over waits for this transaction, and the next transaction sees the take-over.
        let unread: { error: unknown } | null = null;
        const [held] = await allOrFirstError([
          sendChange(tx, FENCE, [epoch, log, epoch]),
          read?.(tx).catch((error: unknown) => void (unread = { error })) ?? Promise.resolve(),
        ]);
        // Whoever took over may have changed what is read, so that is told first.
        if (held !== 1) throw new WriterLostError(log, 'another process took it over');
        // BEGIN has failed, and its error is the transaction's.
        if (tx.isCompleted()) throw new Error('the transaction has not begun');
        progress.phase = 'writing';
        if (unread !== null) throw (unread as { error: unknown }).error;
        const written = await write(tx);
        progress.phase = 'committing';
        return written;
      } catch (error) {
        progress.failure = { error };
        throw error;
      }
    }, BEGINNING);
    return { result };
  } catch (error) {
    // Knex replaces the error of the body by the one of a ROLLBACK that fails too; the first is the cause.
    return { error: progress.failure === null ? error : progress.failure.error, phase: progress.phase };
  }
}

/** True unless the database itself answered with an error, which for a COMMIT means that it was rolled back. */
function isConnectionFailure(db: Db, error: unknown): boolean {
  const code = databaseErrorCode(error);
  if (db.kind === 'sqlite') return code.startsWith('SQLITE_IOERR');
  if (error instanceof WriterLostError || error instanceof RolledBackError) return false;
  // These codes report a shutdown or a crash, which leave the outcome of a COMMIT in progress open.
  return !(error instanceof pg.DatabaseError) || /^(08|57|58|XX)/.test(code);
}

/** Epoch of a log's newest writer, 0 before the first: what an earlier one may still answer is no answer of this one. */
export async function readEpoch(q: Queryable, log: LogName): Promise<number> {
  const row = await q<{ log: string; epoch: number }>('writers').where({ log }).first('epoch');
  return row?.epoch ?? 0;
}

/** Which logs are held now by any process of the deployment; null on SQLite, where only the process that uses the file knows. */
export async function readLogHolders(db: Db, logs: readonly LogName[]): Promise<Set<LogName> | null> {
  if (db.kind === 'sqlite') return null;
  const held = new Set<LogName>();
  for (const log of logs) {
    // pg_locks shows a lock on one bigint as two halves, with objsubid 1.
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

/**
 * Waits until no transaction of a log's writer is in progress, and blocks the next one until this transaction ends. On SQLite there is one
 * write transaction at a time anyway.
 */
export async function waitForWriter(tx: Transaction, log: LogName): Promise<void> {
  if (!isSqlite(tx)) await tx('writers').where({ log }).forShare().select('epoch');
}
