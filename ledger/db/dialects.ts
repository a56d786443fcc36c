/**
 * Knex clients that correct the ones they extend. They depend on internal paths of the pinned Knex version; tests assert the statements
 * that are sent.
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { databaseErrorCode } from '../errors.js';
import type { Queryable } from '../types.js';

export interface RawConnection {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
}

export interface TransactionLike {
  readOnly?: boolean;
  begin(connection: RawConnection): Promise<unknown>;
  readonly trxClient: { query(connection: RawConnection, sql: string): Promise<unknown> };
}

export type ClientClass = { new (config: Knex.Config): KnexClient; readonly prototype: KnexClient };
interface KnexClient {
  transaction(...args: unknown[]): TransactionLike;
  positionBindings(sql: string): string;
  /** Of PostgreSQL without regard to `this`. */
  _query(this: void, connection: RawConnection, query: PgQuery): Promise<unknown>;
}

const require = createRequire(import.meta.url);
const BetterSqliteClient = require('knex/lib/dialects/better-sqlite3/index.js') as ClientClass;

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

/** Whether a connection or a transaction is of SQLite, and not of PostgreSQL. */
export function isSqlite(db: Queryable): boolean {
  return /sqlite/.test(String((db.client as { driverName: string }).driverName));
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

/** Which statements may be gathered: an insert into a table, whose rows are all in its one binding, or a read that locks nothing. */
export type Gathers = { insertInto: string } | 'read';

/** A statement as Knex hands it to its client, with numbered placeholders. */
export interface PgQuery {
  sql: string;
  bindings?: readonly Binding[];
  response?: PgResponse;
  gathers?: Gathers;
  /** What the driver gets beside the text and the bindings. */
  options?: { name: string };
}

export interface PgResponse {
  command: string;
  rowCount: number | null;
  rows: unknown[];
  fields?: readonly { name: string; dataTypeID: number }[];
}

interface Sender {
  acquireConnection(): Promise<RawConnection>;
  releaseConnection(connection: RawConnection): Promise<void>;
  query(
    connection: RawConnection,
    query: { sql: string; bindings: readonly Binding[]; gathers?: Gathers },
  ): Promise<{ response: unknown }>;
}

/**
 * Sends plain SQL, one binding per question mark, without the query builder, which takes longer than the database. Outside a transaction it
 * uses Knex's `raw`.
 */
async function send(q: Queryable, sql: string, bindings: readonly Binding[], gathers?: Gathers): Promise<unknown> {
  if (q.isTransaction !== true) return q.raw(sql, bindings);
  const client = q.client as Sender;
  const query = gathers === undefined ? { sql, bindings } : { sql, bindings, gathers };
  return (await client.query(await client.acquireConnection(), query)).response;
}

/** Reads that lock nothing and write nothing: PostgreSQL may get several of one transaction as one statement. */
const IS_READ = /^\s*select\b(?!.*\bfor\s+(?:update|share|no\s+key|key\s+share)\b)/is;

/** Sends plain SQL and returns its rows. */
export async function sendForRows<T>(q: Queryable, sql: string, bindings: readonly Binding[] = []): Promise<T[]> {
  return rawRows<T>(await send(q, sql, bindings, IS_READ.test(sql) ? 'read' : undefined));
}

/**
 * Reads over one connection, outside a transaction, so that PostgreSQL gets those of one turn as one statement, too. `work` gets what
 * `sendForRows` takes and nothing else.
 */
export async function onOneConnection<T>(q: Queryable, work: (one: Queryable) => Promise<T>): Promise<T> {
  if (q.isTransaction === true || isSqlite(q)) return work(q);
  const client = q.client as Sender;
  const connection = await client.acquireConnection();
  const sender: Pick<Sender, 'acquireConnection' | 'query'> = {
    acquireConnection: () => Promise.resolve(connection),
    query: (own, query) => client.query(own, query),
  };
  try {
    return await work({ isTransaction: true, client: sender } as unknown as Queryable);
  } finally {
    await client.releaseConnection(connection);
  }
}

/** Sends plain SQL that changes rows. Returns how many it changed. */
export async function sendChange(tx: Knex.Transaction, sql: string, bindings: readonly Binding[]): Promise<number> {
  return rawChanges(await send(tx, sql, bindings));
}

/** Sends an insert whose rows are all in its one binding; PostgreSQL may get it as one statement with others of its transaction. */
export async function sendRows(tx: Knex.Transaction, table: string, sql: string, rows: string): Promise<void> {
  const client = tx.client as unknown as Sender;
  await client.query(await client.acquireConnection(), { sql, bindings: [rows], gathers: { insertInto: table } });
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

/**
 * The items of a JSON list, which is the one binding, as rows with a column `value`, in SQL: of either length the statement is the same
 * text, which stays prepared.
 */
export const jsonItems = (q: Queryable): string => (isSqlite(q) ? 'json_each(?)' : 'json_array_elements(?::json)');

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
