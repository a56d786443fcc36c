/** How partitions of the outbox change while keepers go on: under a lock that is waited for a second at a time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { KEEPALIVE_MS, holdAdvisoryLock } from '../db/pg-lock.js';
import { databaseErrorCode } from '../errors.js';
import { appendOperatorRow } from '../operator/operator-log.js';
import type { Db, OperatorRow, Transaction } from '../types.js';

type PartitionErrorCode =
  | 'NOT_POSTGRESQL'
  | 'NO_PARTITION'
  | 'NEWEST_PARTITION'
  | 'NOT_OVER'
  | 'IS_DETACHED'
  | 'NOT_DETACHED'
  | 'NOT_FINAL'
  | 'NOT_VERIFIED'
  | 'CHANGED'
  | 'ROWS_AHEAD'
  | 'TOO_LONG'
  | 'BUSY'
  | 'LOCKED';

/** What is asked of a partition can't be done now; nothing was changed. */
export class PartitionError extends Error {
  override readonly name = 'PartitionError';

  constructor(
    readonly code: PartitionErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** How long a statement waits for the outbox; meanwhile everything behind it waits, too. */
const LOCK_TIMEOUT_MS = 1_000;
const LOCK_TRIES = 5;
const LOCK_PAUSE_MS = 500;

/** Nobody reads or writes the outbox until the transaction ends. */
export const lockOutbox = (tx: Transaction): Promise<unknown> => tx.raw('lock table outbox in access exclusive mode');

/** How long a command may hold the outbox, during which no keeper signs. */
export const HOLD_MS = 10_000;

/** Ends each later statement of a transaction by when the outbox has been held for too long. Called before each one that reads rows. */
type LimitHold = () => Promise<void>;

/**
 * Runs a change under the lock of the outbox, and notes it in the operator log in the same transaction. Throws PartitionError `LOCKED`, and `TOO_LONG`
 * after `holdMs` under the lock.
 */
export async function lockedAct(
  db: Db,
  act: Omit<OperatorRow, 'operatorSeq'>,
  holdMs: number,
  change: (tx: Transaction, limitHold: LimitHold) => Promise<void>,
): Promise<void> {
  const also = async (tx: Transaction): Promise<void> => {
    await limitWait(tx);
    await lockOutbox(tx);
    const endMs = performance.now() + holdMs;
    const limitHold = async (): Promise<void> => {
      const leftMs = Math.ceil(endMs - performance.now());
      // 0 would lift the limit.
      if (leftMs <= 0) throw tooLong(holdMs);
      await tx.raw(`set local statement_timeout = ${leftMs}`);
    };
    await limitHold();
    await change(tx, limitHold);
  };
  try {
    await retried(() => appendOperatorRow(db, act, { also }));
  } catch (error) {
    if (databaseErrorCode(error) === STATEMENT_CANCELLED) throw tooLong(holdMs);
    throw error;
  }
}

/** PostgreSQL's code for a statement that a timeout, or somebody, cancelled. */
export const STATEMENT_CANCELLED = '57014';

export const tooLong = (holdMs: number): PartitionError =>
  new PartitionError('TOO_LONG', `the outbox would be held for longer than ${holdMs} ms`);

/** Runs a transaction whose statements wait a second at most for what others hold, and tries it again for some time. Throws PartitionError `LOCKED`. */
export const locked = (db: Db, change: (tx: Transaction) => Promise<void>): Promise<void> =>
  retried(() =>
    db.knex.transaction(async (tx) => {
      await limitWait(tx);
      await change(tx);
    }),
  );

const limitWait = (tx: Knex.Transaction): Promise<unknown> => tx.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);

/** Tries again while others hold the table, so that those who come later never wait longer than one try. */
async function retried(run: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await run();
      return;
    } catch (error) {
      if (databaseErrorCode(error) !== '55P03') throw error;
      if (tries === LOCK_TRIES) throw new PartitionError('LOCKED', 'others hold the outbox; try again later');
    }
    await sleep(LOCK_PAUSE_MS);
  }
}

/** How long a command waits for another one to end. */
const BUSY_TIMEOUT_MS = 3_000;
const BUSY_POLL_MS = 100;

/**
 * Runs what changes partitions while no other process does, in the same schema. A process that freezes may lose this turn to another one, so
 * whatever was read has to be compared again under the lock of the outbox. Throws PartitionError `NOT_POSTGRESQL` and `BUSY`.
 */
export async function alone<T>(db: Db, run: () => Promise<T>): Promise<T> {
  requirePostgres(db);
  const signal = AbortSignal.timeout(BUSY_TIMEOUT_MS);
  const lock = await holdAdvisoryLock(db, 'partitions', {
    pollMs: BUSY_POLL_MS,
    keepaliveMs: KEEPALIVE_MS,
    freeForMs: () => 0,
    hurry: undefined,
    signal,
    onSilent: undefined,
    onLost: () => {},
  }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw new PartitionError('BUSY', 'another command changes the partitions; try again once it has ended');
  });
  try {
    return await run();
  } finally {
    await lock.release();
  }
}

/** Throws PartitionError `NOT_POSTGRESQL`. */
export function requirePostgres(db: Db): void {
  if (db.kind !== 'pg') throw new PartitionError('NOT_POSTGRESQL', 'only a PostgreSQL database has partitions');
}
