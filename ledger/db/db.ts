/** Opens the database that holds the logs: SQLite for one process with every role, PostgreSQL for roles apart. */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import knexModule from 'knex';
import type { Knex } from 'knex';
import type { Database as SqliteDatabase } from 'better-sqlite3';
import type pg from 'pg';
import { z } from 'zod';
import { addUnitsSum } from './aggregates.js';
import { SQLITE_BUSY_TIMEOUT_MS, SqliteClient, keepStatements } from './dialects.js';
import { PgClient, getTypeParser, watchNotices } from './pg-client.js';
import { DatabaseError, DatabaseUnreachableError, databaseErrorCode } from '../errors.js';
import { rebuildActivity } from '../accounts/rebuild.js';
import { rebuildMarketData, type RebuildProgress } from '../market-data/rebuild.js';
import { migrations } from '../migrations/index.js';
import type { Db, Queryable } from '../types.js';

interface OpenDbOptions {
  /** PostgreSQL only: schema that holds every table, created by `migrate`; the URL's `?schema=` otherwise, default `public`. */
  schema?: string;
  /** PostgreSQL only: most connections of this process, besides one per writer. */
  maxConnections?: number;
  /** Whether an SQLite file that is missing is created; true by default. */
  create?: boolean;
}

const ACQUIRE_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;
/** Advisory lock of `migrate`, one per PostgreSQL database: the bytes of "curv". */
const MIGRATE_LOCK = 0x63757276;

/** Error codes that a retry can't solve: no such database or role, a wrong password, a file that is no SQLite database. */
const PERMANENT = ['3D000', '28P01', '28000', 'SQLITE_NOTADB', 'SQLITE_CANTOPEN', 'SQLITE_READONLY', 'SQLITE_CORRUPT'];

/**
 * Opens `sqlite:<path>`, `sqlite::memory:`, or `postgres://...` and makes one round trip, so that a database that can't be reached
 * fails here. Throws DatabaseError `BAD_DATABASE_URL` for another URL, `DATABASE_MISSING` for a file that is not to be created,
 * `BAD_DATABASE` for what is no usable database and `UNSAFE_DATABASE` when commits would not be durable; else DatabaseUnreachableError.
 */
export async function openDb(url: string, options: OpenDbOptions = {}): Promise<Db> {
  const db = isPostgresUrl(url) ? openPg(url, options) : openSqlite(url, options);
  try {
    await db.knex.raw('select 1');
  } catch (error) {
    await db.close();
    if (error instanceof DatabaseError) throw error;
    const code = databaseErrorCode(error);
    const reason = messageOf(error);
    if (PERMANENT.includes(code))
      throw new DatabaseError('BAD_DATABASE', `The database ${withoutPassword(url)} can't be used: ${reason}`);
    const message = `The database ${withoutPassword(url)} does not answer: ${reason}`;
    throw new DatabaseUnreachableError(message, { cause: error });
  }
  return db;
}

/** When no address of a host accepts the connection, the error's own message is empty and those of its `errors` are not. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** A database's URL as messages may show it. */
export function withoutPassword(databaseUrl: string): string {
  return databaseUrl.replace(/^(\w+:\/\/[^:/@]*):[^@]*@/, '$1@');
}

/**
 * Brings the tables up to date in one transaction. Any number of processes may call it at once. Writers from before a change of the tables
 * can't write after it: their code does not know new columns and would leave defaults in them.
 */
export async function migrate(db: Db, onRebuild?: RebuildProgress): Promise<void> {
  await db.knex.transaction(async (tx) => {
    if (db.kind === 'pg') {
      await tx.raw('select pg_advisory_xact_lock(?)', [MIGRATE_LOCK]);
      await tx.raw('create schema if not exists ??', [schemaOf(db)]);
    }
    const config: Knex.MigratorConfig = {
      migrationSource: {
        getMigrations: async () => migrations.map((migration) => migration.name),
        getMigrationName: (name: string) => name,
        getMigration: async (name: string) => migrations.find((migration) => migration.name === name)!,
      },
    };
    const [completed, pending] = listSchema.parse(await tx.migrate.list(config));
    if (completed.length > 0 && (pending.length > 0 || (await hasStaleProjections(tx)))) await endWriters(db, tx);
    await tx.migrate.latest(config);
    // A migration that adds a projection leaves its first derivation to the projection's own code; the operator may request it, too.
    if (!(await hasStaleProjections(tx))) return;
    await tx('meta').where(STALE).delete();
    await rebuildMarketData(tx, onRebuild);
    await rebuildActivity(tx);
  });
}

/** What Knex says of migrations: those that were made, and those to come. */
const listSchema = z.tuple([z.array(z.unknown()), z.array(z.unknown())]);

const STALE = { key: 'stale_market_data' };
/** Whether projections have yet to be derived from the logs. */
export const hasStaleProjections = async (q: Queryable): Promise<boolean> =>
  (await q('meta').where(STALE).first('key')) !== undefined;

/** Raises every epoch. On PostgreSQL this also blocks every take-over of a log until the transaction ends. */
async function endWriters(db: Db, tx: Knex.Transaction): Promise<void> {
  if (db.kind === 'pg') await tx.raw('lock table writers in exclusive mode');
  await tx('writers').increment('epoch', 1);
}

/**
 * Makes a database ready for a deployment: brings the tables up to date and ties them to it. Another deployment's is left as it is.
 * Throws DatabaseError `DEPLOYMENT_MISMATCH`.
 */
export async function prepareDb(db: Db, deploymentId: string, onRebuild?: RebuildProgress): Promise<void> {
  const bound = await boundDeployment(db);
  if (bound !== null && bound !== deploymentId) throw deploymentMismatch(bound, deploymentId);
  await migrate(db, onRebuild);
  await bindDeployment(db, deploymentId);
}

/**
 * PostgreSQL only: drops every table of the schema, whatever it holds, and the function of their triggers, so that `migrate` can make them
 * again. The caller must make sure that the contents are not needed.
 */
export async function dropTables(db: Db): Promise<void> {
  const rows = await db.knex.raw<{ rows: { tablename: string }[] }>(
    'select tablename from pg_catalog.pg_tables where schemaname = ?',
    [schemaOf(db)],
  );
  // A partition goes with the table that it is of.
  for (const { tablename } of rows.rows)
    await db.knex.raw('drop table if exists ??.?? cascade', [schemaOf(db), tablename]);
  await db.knex.raw('drop function if exists ??.hint_at_rows()', [schemaOf(db)]);
}

/** Of the schema that holds them. */
export const tablesOf = (db: Db): Knex.SchemaBuilder =>
  db.kind === 'pg' ? db.knex.schema.withSchema(schemaOf(db)) : db.knex.schema;

/** The deployment that the database is tied to; null for one without our tables, or that was never tied to any. */
export async function boundDeployment(db: Db): Promise<string | null> {
  if (!(await tablesOf(db).hasTable('meta'))) return null;
  return readDeploymentId(db.knex).catch((error: unknown) => {
    if (error instanceof DatabaseError && error.code === 'DEPLOYMENT_UNBOUND') return null;
    throw error;
  });
}

/**
 * Ties the database to one deployment permanently: the first call stores the id, a call with another id throws DatabaseError
 * `DEPLOYMENT_MISMATCH`. Keepers call it before they read or write anything else.
 */
export async function bindDeployment(db: Db, deploymentId: string): Promise<void> {
  const bound = await db.knex.transaction(async (tx) => {
    await tx('meta').insert({ key: 'deployment_id', value: deploymentId }).onConflict('key').ignore();
    return readDeploymentId(tx);
  });
  if (bound !== deploymentId) throw deploymentMismatch(bound, deploymentId);
}

export function deploymentMismatch(bound: string, deploymentId: string): DatabaseError {
  return new DatabaseError(
    'DEPLOYMENT_MISMATCH',
    `This database belongs to deployment ${bound}, not ${deploymentId}; use the database of this deployment or an empty one`,
  );
}

/** The deployment that the database is tied to. Throws DatabaseError `DEPLOYMENT_UNBOUND` before `bindDeployment`. */
export async function readDeploymentId(q: Queryable): Promise<string> {
  const row = await q<{ key: string; value: string }>('meta').where({ key: 'deployment_id' }).first('value');
  if (row === undefined) throw new DatabaseError('DEPLOYMENT_UNBOUND', 'This database is not tied to a deployment yet');
  return row.value;
}

/** Runs several reads that must see one and the same state, while writers go on. */
export async function readTx<T>(db: Db, read: (tx: Knex.Transaction) => Promise<T>): Promise<T> {
  const config: Knex.TransactionConfig =
    db.kind === 'pg' ? { readOnly: true, isolationLevel: 'repeatable read' } : { readOnly: true };
  return db.reads.transaction(read, config);
}

/** Settings of a connection of its own, outside the pool. PostgreSQL only. */
export function pgConnectionOf(db: Db): pg.ClientConfig {
  const { pipeline: _, ...own } = (db.knex.client as { config: { connection: pg.ClientConfig } }).config.connection;
  return own;
}

/** Schema that holds the tables. PostgreSQL only. */
export function schemaOf(db: Db): string {
  return (db.knex.client as { config: { searchPath: string[] } }).config.searchPath[0]!;
}

/**
 * Session settings for writing money: durable commits, dead peers are noticed, and a stuck transaction is ended so that it can't hold a
 * lock for ever.
 */
export const PG_SESSION_SQL = `
  select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local');
  set tcp_keepalives_idle = 5;
  set tcp_keepalives_interval = 2;
  set tcp_keepalives_count = 3;
  set idle_in_transaction_session_timeout = '60s';
  set default_transaction_isolation = 'read committed'`;

/** Silences Knex: it prints stacks on standard output, which is for results, and also rejects with the same errors. */
const SILENT: Knex.Logger = { warn: () => {}, error: () => {}, deprecate: () => {}, debug: () => {} };

function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:\/\//.test(url);
}

function openSqlite(url: string, { create = true }: OpenDbOptions): Db {
  const filename = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (filename === undefined) {
    throw new DatabaseError(
      'BAD_DATABASE_URL',
      'The database URL must be sqlite:<path>, sqlite::memory: or postgres://<host>/<database>',
    );
  }
  if (!create && !existsSync(filename)) {
    throw new DatabaseError('DATABASE_MISSING', `There is no database ${filename}; curvebook serve creates it`);
  }
  if (filename !== ':memory:') mkdirSync(dirname(filename), { recursive: true });
  const root = sqliteKnex(filename, prepareSqlite);
  // A database in memory exists on one connection only.
  const reads = filename === ':memory:' ? root : sqliteKnex(filename, prepareReads);
  return closable('sqlite', root, reads, async () => void (await root.raw('pragma wal_checkpoint(truncate)')));
}

/** One connection, opened when it is first used. */
function sqliteKnex(filename: string, prepare: (connection: SqliteDatabase) => void): Knex {
  return knexModule.knex({
    client: SqliteClient as unknown as typeof Knex.Client,
    log: SILENT,
    // Values of a statement that failed, signatures among them, stay out of messages and logs.
    compileSqlOnError: false,
    connection: { filename },
    useNullAsDefault: true,
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: {
      min: 1,
      max: 1,
      afterCreate: (connection: SqliteDatabase, done: (error: unknown, connection: SqliteDatabase) => void) => {
        try {
          prepare(connection);
          addUnitsSum(connection);
          keepStatements(connection);
          done(null, connection);
        } catch (error) {
          done(error, connection);
        }
      },
    },
  });
}

/** The journal mode is set on the database by the writing connection; with it reads never wait for writes. */
function prepareReads(connection: SqliteDatabase): void {
  connection.pragma(`busy_timeout = ${SQLITE_BUSY_TIMEOUT_MS}`);
  connection.pragma('query_only = ON');
  connection.pragma('cache_size = -16000');
}

function prepareSqlite(connection: SqliteDatabase): void {
  connection.pragma(`busy_timeout = ${SQLITE_BUSY_TIMEOUT_MS}`);
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('fullfsync = ON');
  connection.pragma('foreign_keys = ON');
  // Checkpoint SQLite's write-ahead log less often, so that a page that many commits change is copied once.
  connection.pragma('wal_autocheckpoint = 8000');
  connection.pragma('cache_size = -32000');
  const journal: unknown = connection.pragma('journal_mode', { simple: true });
  const synchronous: unknown = connection.pragma('synchronous', { simple: true });
  const durable = synchronous === 2 && (journal === 'wal' || connection.memory);
  if (!durable) {
    throw new DatabaseError(
      'UNSAFE_DATABASE',
      `SQLite runs with journal_mode=${String(journal)}, synchronous=${String(synchronous)}`,
    );
  }
}

function openPg(url: string, options: OpenDbOptions): Db {
  const parsed = parsePgUrl(url);
  const schema = options.schema ?? parsed.searchParams.get('schema') ?? 'public';
  if (!SCHEMA_NAME.test(schema)) {
    throw new DatabaseError(
      'BAD_DATABASE_URL',
      `Schema names are lower-case letters, digits and _: ${JSON.stringify(schema)}`,
    );
  }
  parsed.searchParams.delete('schema');
  const root = knexModule.knex({
    client: PgClient as unknown as typeof Knex.Client,
    compileSqlOnError: false,
    log: SILENT,
    connection: {
      connectionString: parsed.toString(),
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'curvebook',
      // Statements that are sent together share a round trip; statements that wait for each other are unaffected.
      pipeline: true,
      types: { getTypeParser },
    } as unknown as Knex.PgConnectionConfig,
    searchPath: [schema],
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: {
      min: 0,
      max: options.maxConnections ?? 10,
      afterCreate: (connection: pg.Client, done: (error: unknown, connection: pg.Client) => void) => {
        watchNotices(connection);
        connection.query(PG_SESSION_SQL, (error) => done(error, connection));
      },
    },
  });
  return closable('pg', root, root, async () => {});
}

function parsePgUrl(url: string): URL {
  try {
    return new URL(url);
  } catch {
    // The URL itself stays out of the message: it may hold a password.
    throw new DatabaseError('BAD_DATABASE_URL', 'The PostgreSQL URL is malformed');
  }
}

const closers = new WeakMap<Db, Set<() => Promise<void>>>();

/** Registers `work` to run when `db` closes, while its connections are still open. Returns a function that removes it. */
export function beforeClose(db: Db, work: () => Promise<void>): () => void {
  const works = closers.get(db) ?? new Set();
  closers.set(db, works.add(work));
  return () => void works.delete(work);
}

function closable(kind: Db['kind'], root: Knex, reads: Knex, last: () => Promise<void>): Db {
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    for (const work of closers.get(db) ?? []) await work();
    if (reads !== root) await reads.destroy();
    // Optional, for a faster next start: committed data is durable with or without it.
    await last().catch(() => {});
    await root.destroy();
  };
  const db: Db = { kind, knex: root, reads, close: () => (closed ??= close()) };
  return db;
}
