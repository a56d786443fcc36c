/**
 * Knex clients that correct the ones they extend. They depend on internal paths of the pinned Knex version; tests assert the statements
 * that are sent.
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { databaseErrorCode } from '../errors.js';
import type { Queryable } from '../types.js';

interface RawConnection {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
}

interface TransactionLike {
  readOnly?: boolean;
  begin(connection: RawConnection): Promise<unknown>;
  readonly trxClient: { query(connection: RawConnection, sql: string): Promise<unknown> };
}

type ClientClass = { new (config: Knex.Config): KnexClient };
interface KnexClient {
  transaction(...args: unknown[]): TransactionLike;
  positionBindings(sql: string): string;
  _query(connection: RawConnection, query: { sql: string; response?: { command?: string } }): Promise<unknown>;
}

const require = createRequire(import.meta.url);
const BetterSqliteClient = require('knex/lib/dialects/better-sqlite3/index.js') as ClientClass;
const PostgresClient = require('knex/lib/dialects/postgres/index.js') as ClientClass;

/** How long a statement outside a write transaction waits for another process, holding the event loop. */
export const SQLITE_BUSY_TIMEOUT_MS = 1_000;
/** How long a write transaction waits for its turn, leaving the event loop free. */
const BEGIN_TIMEOUT_MS = 15_000;
const BEGIN_RETRY_MS = 20;
const BEGIN_IMMEDIATE = 'BEGIN IMMEDIATE;';

/**
 * SQLite with write transactions that take the write lock when they begin. A deferred BEGIN takes it at the first write; by then earlier
 * reads may be stale, and the write fails with SQLITE_BUSY whatever the timeout is. Read-only transactions stay deferred.
 */
export class SqliteClient extends BetterSqliteClient {
  override transaction(...args: unknown[]): TransactionLike {
    const transaction = super.transaction(...args);
    transaction.begin = async (connection) => {
      const send = (sql: string): Promise<unknown> => transaction.trxClient.query(connection, sql);
      // A COMMIT that failed for lack of space leaves the only connection inside its transaction.
      if (connection.inTransaction) await send('ROLLBACK;');
      return transaction.readOnly === true ? send('BEGIN;') : beginImmediate(send);
    };
    return transaction;
  }

  override async _query(connection: RawConnection, query: { sql: string }): Promise<unknown> {
    // Inside a transaction nothing has to wait, because a write transaction holds the lock.
    if (!connection.inTransaction) {
      setBusyTimeout(connection, query.sql === BEGIN_IMMEDIATE ? 0 : SQLITE_BUSY_TIMEOUT_MS);
    }
    return super._query(connection, query);
  }
}

/** The timeout last set on each connection; a new one has `SQLITE_BUSY_TIMEOUT_MS`. */
const busyTimeouts = new WeakMap<RawConnection, number>();

/**
 * Sends the statement only when the timeout changes; between consecutive write transactions it does not. Executed, not prepared: each
 * prepared statement is an object that only a later turn of the event loop frees.
 */
function setBusyTimeout(connection: RawConnection, timeoutMs: number): void {
  if ((busyTimeouts.get(connection) ?? SQLITE_BUSY_TIMEOUT_MS) === timeoutMs) return;
  connection.exec(`pragma busy_timeout = ${timeoutMs}`);
  busyTimeouts.set(connection, timeoutMs);
}

/** Rows of a raw query's result, on either database. */
function rawRows<T>(answer: unknown): T[] {
  return Array.isArray(answer) ? (answer as T[]) : (answer as { rows: T[] }).rows;
}

/** How many rows a raw statement changed. */
function rawChanges(answer: unknown): number {
  const { changes, rowCount } = answer as { changes?: number; rowCount?: number };
  return changes ?? rowCount ?? 0;
}

/** A value as it is bound to a placeholder. */
export type Binding = string | number | null;

interface Sender {
  acquireConnection(): Promise<RawConnection>;
  query(
    connection: RawConnection,
    query: { sql: string; bindings: readonly Binding[] },
  ): Promise<{ response: unknown }>;
}

/**
 * Sends plain SQL, one binding per question mark, without the query builder, which takes longer than the database. Outside a transaction it
 * uses Knex's `raw`.
 */
async function send(q: Queryable, sql: string, bindings: readonly Binding[]): Promise<unknown> {
  if (q.isTransaction !== true) return q.raw(sql, bindings);
  const client = q.client as Sender;
  return (await client.query(await client.acquireConnection(), { sql, bindings })).response;
}

/** Sends plain SQL and returns its rows. */
export async function sendForRows<T>(q: Queryable, sql: string, bindings: readonly Binding[] = []): Promise<T[]> {
  return rawRows<T>(await send(q, sql, bindings));
}

/** Sends plain SQL that changes rows. Returns how many it changed. */
export async function sendChange(tx: Knex.Transaction, sql: string, bindings: readonly Binding[]): Promise<number> {
  return rawChanges(await send(tx, sql, bindings));
}

/**
 * Waits for several statements of one transaction that were sent together, for which PostgreSQL needs one round trip. Rejects with the
 * first error, but only once all have ended, so that none is sent after the transaction is over.
 */
export async function allOrFirstError<T extends readonly unknown[]>(work: {
  [K in keyof T]: Promise<T[K]>;
}): Promise<T> {
  let failure: { error: unknown } | null = null;
  const note = (error: unknown): void => void (failure ??= { error });
  const ended = await Promise.all(work.map((one) => one.catch(note)));
  if (failure !== null) throw (failure as { error: unknown }).error;
  return ended as unknown as T;
}

/** So many placeholders, separated by commas. */
export function placeholders(count: number): string {
  return Array(count).fill('?').join(', ');
}

interface Preparing {
  prepare(sql: string): unknown;
}

/** Statements kept per connection; the least recently used one goes first. */
const KEPT_STATEMENTS = 200;
const IS_KEPT = /^\s*(?:select|with|insert|update|delete|begin|commit)\b/i;

/**
 * Makes the connection keep its prepared statements, because preparing one takes longer than running it. Any statement other than queries,
 * changes of rows, BEGIN and COMMIT clears them, because it may change a table or roll such a change back.
 */
export function keepStatements(connection: Preparing): void {
  const prepare = connection.prepare.bind(connection);
  const kept = new Map<string, unknown>();
  connection.prepare = (sql) => {
    if (!IS_KEPT.test(sql)) {
      kept.clear();
      return prepare(sql);
    }
    const statement = kept.get(sql) ?? prepare(sql);
    kept.delete(sql);
    kept.set(sql, statement);
    if (kept.size > KEPT_STATEMENTS) kept.delete(kept.keys().next().value as string);
    return statement;
  };
}

/** Waits here and not in SQLite: SQLite would block the thread, and with it the holder of the lock if that is in this process. */
async function beginImmediate(send: (sql: string) => Promise<unknown>): Promise<unknown> {
  const deadline = performance.now() + BEGIN_TIMEOUT_MS;
  for (;;) {
    try {
      return await send(BEGIN_IMMEDIATE);
    } catch (error) {
      const isBusy = databaseErrorCode(error).startsWith('SQLITE_BUSY');
      if (!isBusy || performance.now() > deadline) throw error;
    }
    await sleep(BEGIN_RETRY_MS * (0.5 + Math.random()));
  }
}

/** A COMMIT that rolled back, because a statement of the transaction had failed and its error was ignored. */
export class RolledBackError extends Error {
  override readonly name = 'RolledBackError';
  /** The SQLSTATE of statements in a failed transaction. */
  readonly code = '25P02';

  constructor() {
    super('The transaction had failed and was rolled back at COMMIT');
  }
}

/** A COMMIT that is durable on this server but perhaps on no replica, because the wait for replicas was cancelled. */
class UnreplicatedError extends Error {
  override readonly name = 'UnreplicatedError';

  constructor() {
    super('The commit is done on this server and may not be on its replicas');
  }
}

/**
 * Connections whose wait for replicas was cancelled since their last COMMIT. The server sends a warning, and reports the COMMIT as done.
 */
const unreplicated = new WeakSet<object>();
/**
 * SQLSTATEs of that warning, since its text depends on the server's language: a plain warning, or a shutdown. None of our statements causes
 * other warnings.
 */
const UNREPLICATED = ['01000', '57P01'];

/** Listens to a PostgreSQL connection's notices. */
export function watchNotices(connection: {
  on(event: 'notice', listener: (notice: { code?: string }) => void): unknown;
}): void {
  connection.on('notice', ({ code = '' }) => {
    if (UNREPLICATED.includes(code)) unreplicated.add(connection);
  });
}

/** The socket under a connection of `pg`. */
interface PgConnection {
  readonly connection?: { readonly stream?: { cork?(): void; uncork?(): void } };
}

const held = new WeakSet<object>();

/**
 * Lets statements that are sent together leave in one write at the end of this turn of the event loop, and not in one each: a write takes
 * longer than anything else that sending a statement does.
 */
function holdWrites(connection: PgConnection): void {
  const stream = connection.connection?.stream;
  if (stream?.cork === undefined || held.has(stream)) return;
  held.add(stream);
  stream.cork();
  process.nextTick(() => {
    held.delete(stream);
    stream.uncork?.();
  });
}

/** User parameter of a transaction whose first statement is sent together with BEGIN; see `PgClient`. */
export const EARLY_BEGIN = { earlyBegin: true };

/** Statement texts with numbered placeholders, by those with question marks. Cleared when there are too many. */
const positioned = new Map<string, string>();
const MAX_POSITIONED = 1_000;

/**
 * PostgreSQL answers COMMIT of a failed transaction with success and the word ROLLBACK; here that is an error. With `EARLY_BEGIN` a
 * transaction does not wait for the answer to BEGIN, which saves a round trip: its first statement must be harmless by itself, in case
 * that BEGIN fails, and must be waited for before the next one. Once BEGIN has failed, Knex sends nothing more of the transaction.
 */
export class PgClient extends PostgresClient {
  override transaction(...args: unknown[]): TransactionLike {
    const transaction = super.transaction(...args);
    const { userParams } = (args[1] ?? {}) as Knex.TransactionConfig;
    if (userParams?.['earlyBegin'] !== true) return transaction;
    const begin = transaction.begin.bind(transaction);
    transaction.begin = async (connection) => {
      // Its failure ends the transaction; that is where it is reported.
      void begin(connection);
    };
    return transaction;
  }

  /** The same few statements are sent all the time, and replacing the placeholders of a long one takes as long as sending it. */
  override positionBindings(sql: string): string {
    const known = positioned.get(sql);
    if (known !== undefined) return known;
    const made = super.positionBindings(sql);
    if (positioned.size >= MAX_POSITIONED) positioned.clear();
    positioned.set(sql, made);
    return made;
  }

  override async _query(
    connection: RawConnection & PgConnection,
    query: { sql: string; response?: { command?: string } },
  ): Promise<unknown> {
    holdWrites(connection);
    const answer = await super._query(connection, query);
    if (/^COMMIT\b/i.test(query.sql) && query.response?.command === 'ROLLBACK') {
      throw new RolledBackError();
    }
    // The caller then treats the commit as undecided, and reads back after a commit that does wait for replicas.
    if (unreplicated.delete(connection) && /^COMMIT\b/i.test(query.sql)) throw new UnreplicatedError();
    return answer;
  }
}
