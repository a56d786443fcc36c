import type { LogName } from './types.js';

type DatabaseErrorCode =
  | 'BAD_DATABASE_URL'
  | 'BAD_DATABASE'
  | 'DATABASE_MISSING'
  | 'UNSAFE_DATABASE'
  | 'DATABASE_NEWER'
  | 'DEPLOYMENT_MISMATCH'
  | 'DEPLOYMENT_UNBOUND'
  /** Of backups. */
  | 'FILE_EXISTS'
  | 'BAD_BACKUP'
  | 'NOT_EMPTY'
  | 'TOOL_FAILED';

/** The database can't be used as it is; retrying does not help. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';

  constructor(
    readonly code: DatabaseErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** The database does not answer at the moment; it may later. */
export class DatabaseUnreachableError extends Error {
  override readonly name = 'DatabaseUnreachableError';
  readonly code = 'DATABASE_UNREACHABLE';
}

/** This process no longer owns the log; nothing of the transaction was written. The process acquires the log anew or stops. */
export class WriterLostError extends Error {
  override readonly name = 'WriterLostError';
  readonly code = 'WRITER_LOST';

  constructor(
    readonly log: LogName,
    reason: string,
  ) {
    super(`The ${log} log was lost: ${reason}`);
  }
}

/**
 * The connection failed during COMMIT, so the transaction may or may not be durable. The caller must read back inside the next transaction
 * of the same writer, which waits until the database has decided, and must acknowledge nothing before.
 */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError';
  readonly code = 'COMMIT_UNKNOWN';

  constructor(
    readonly log: LogName,
    override readonly cause: unknown,
  ) {
    super(
      `The outcome of a transaction on the ${log} log is unknown: ${cause instanceof Error ? cause.message : String(cause)}`,
    );
  }
}

export type InvariantCode =
  | 'generation_gap'
  | 'generation_conflict'
  | 'blocks_broken'
  | 'market_order'
  | 'fill_gap'
  | 'fill_base'
  | 'fill_quote'
  | 'fill_parts'
  | 'fill_entries'
  | 'suspense_entries'
  | 'ref_exists'
  | 'balance_missing'
  | 'unbalanced_ref'
  | 'negative_balance'
  | 'negative_reservation'
  | 'claim_broken'
  | 'vault_mismatch'
  | 'reversal_outdated'
  | 'duplicate_row';

/** A generation that contradicts itself or the ledger. Nothing of it was written; the caller halts. */
export class LedgerInvariantError extends Error {
  override readonly name = 'LedgerInvariantError';

  constructor(
    readonly code: InvariantCode,
    message: string,
  ) {
    super(message);
  }
}

/**
 * A reorganisation of the chain reversed generations that a projection in memory has applied. The projection must be built again; the
 * stored data is right.
 */
export class LedgerReversedError extends Error {
  override readonly name = 'LedgerReversedError';
  readonly code = 'LEDGER_REVERSED';

  constructor(generation: number) {
    super(`Part of the ledger up to generation ${generation} was taken back; what was built on it is built anew`);
  }
}

/** The requested rows of the order log were compacted; a reader with an older state must start again from the compacted book. */
export class LogCompactedError extends Error {
  override readonly name = 'LogCompactedError';
  readonly code = 'LOG_FOLDED';

  constructor(what: string) {
    super(`${what} lies before what the order log still has row by row`);
  }
}

/** SQLSTATE of PostgreSQL or error code of SQLite, empty when the error carries none. */
export function databaseErrorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

/** A row that is there already although no key of its table could refuse a second one. */
export class DuplicateRowError extends Error {
  override readonly name = 'DuplicateRowError';
  /** The SQLSTATE of a key that refuses. */
  readonly code = '23505';
}

/** True for a violated primary or unique key, on either database. */
export function isUniqueViolation(error: unknown): boolean {
  return ['23505', 'SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'].includes(databaseErrorCode(error));
}
