/** Backs up a database into one file while writers go on, and restores a database from such a file. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import SqliteDatabase from 'better-sqlite3';
import { DatabaseError } from '../errors.js';
import type { Db } from '../types.js';
import { dropTables, openDb, schemaOf, withoutPassword } from './db.js';
import { SQLITE_BUSY_TIMEOUT_MS } from './dialects.js';

type BackupKind = 'sqlite' | 'pg';

/** Where a database is. */
interface Place {
  url: string;
  /** What programs are started with: PATH at least. */
  env: Readonly<Record<string, string>>;
}

/** Tells whether a restored database is right. */
type Check = (db: Db) => Promise<boolean>;

/** Never aborts. */
const NO_SIGNAL = new AbortController().signal;

/** First bytes of a backup file. */
const MAGIC: Readonly<Record<BackupKind, string>> = { sqlite: 'SQLite format 3\u0000', pg: 'PGDMP' };
/** Characters of a tool's error output that are kept. */
const MAX_COMPLAINT_CHARS = 2_000;

/**
 * Writes one consistent state of the database into a new file that its owner alone may read, whole or not at all; makes its folder. Returns its bytes. Throws
 * DatabaseError `FILE_EXISTS` for a file that is there, `TOOL_FAILED` when pg_dump is missing or fails, `BAD_DATABASE` for an SQLite file that is damaged,
 * and the signal's reason.
 */
export async function backUp(db: Db, place: Place, file: string, signal = NO_SIGNAL): Promise<number> {
  const taken = new DatabaseError('FILE_EXISTS', `${file} is there already; nothing is overwritten`);
  if (existsSync(file)) throw taken;
  mkdirSync(dirname(file), { recursive: true });
  const partial = createPartial(file);
  try {
    if (db.kind === 'sqlite') copySqlite(sqliteFile(place.url), partial);
    else
      await runTool(
        'pg_dump',
        ['--format=custom', '--no-owner', '--no-privileges', `--schema=${schemaOf(db)}`, `--file=${partial}`],
        place,
        signal,
      );
    await heed(signal);
    putInPlace(partial, file, taken);
  } finally {
    rmSync(partial, { force: true });
  }
  return statSync(file).size;
}

/**
 * Restores a backup into the empty database of `url`, which must be of the same kind. `check` gets the restored database; when it throws or
 * returns false, or the signal aborts, everything is removed again. Throws DatabaseError `BAD_BACKUP`, `BAD_DATABASE_URL`, `NOT_EMPTY`,
 * `TOOL_FAILED`, `BAD_DATABASE`, what `check` throws, and the signal's reason.
 */
export async function restore(file: string, place: Place, check: Check, signal = NO_SIGNAL): Promise<void> {
  const { url } = place;
  const kind: BackupKind = url.startsWith('sqlite:') ? 'sqlite' : 'pg';
  const found = kindOf(file);
  if (found !== kind) {
    const other =
      found === null
        ? 'is no backup'
        : `is one of ${found === 'pg' ? 'PostgreSQL' : 'SQLite'}, and DATABASE_URL names the other`;
    throw new DatabaseError('BAD_BACKUP', `${file} ${other}`);
  }
  await (kind === 'sqlite'
    ? restoreSqlite(file, sqliteFile(url), check, signal)
    : restorePg(file, place, check, signal));
}

async function restoreSqlite(file: string, target: string, check: Check, signal: AbortSignal): Promise<void> {
  if (['', ':memory:'].includes(target))
    throw new DatabaseError('BAD_DATABASE_URL', 'DATABASE_URL must name the file to restore into: sqlite:<path>');
  const taken = (part: string): DatabaseError =>
    new DatabaseError('NOT_EMPTY', `${target}${part} is there already; nothing is overwritten`);
  for (const part of ['', '-wal', '-shm']) if (existsSync(`${target}${part}`)) throw taken(part);
  mkdirSync(dirname(target), { recursive: true });
  const partial = createPartial(target);
  const remove = (): void => ['', '-wal', '-shm'].forEach((part) => rmSync(`${partial}${part}`, { force: true }));
  try {
    copySqlite(file, partial);
    await heed(signal);
    const db = await openDb(`sqlite:${partial}`);
    let isRight: boolean;
    try {
      isRight = await check(db);
    } finally {
      await db.close();
    }
    if (!isRight) return;
    await heed(signal);
    // Moves the write-ahead log into the file: the log's name does not match the file's final name.
    using(new SqliteDatabase(partial), (copy) => copy.pragma('wal_checkpoint(truncate)'));
    putInPlace(partial, target, taken(''));
  } finally {
    remove();
  }
}

async function restorePg(file: string, place: Place, check: Check, signal: AbortSignal): Promise<void> {
  const { url } = place;
  const db = await openDb(url);
  try {
    const schema = schemaOf(db);
    const { rows } = await db.knex.raw<{ rows: { tables: string }[] }>(
      'select count(*)::text as tables from pg_catalog.pg_tables where schemaname = ?',
      [schema],
    );
    if (rows[0]?.tables !== '0')
      throw new DatabaseError(
        'NOT_EMPTY',
        `schema ${schema} of ${withoutPassword(url)} has tables already; nothing is overwritten`,
      );
    const list = await runTool('pg_restore', ['--list', file], place, signal);
    const entries = list.split('\n').filter((line) => /^\d+;/.test(line));
    const foreign = entries.find(
      (line) =>
        / TABLE \S+ /.test(line) &&
        !['TABLE', 'TABLE DATA', 'TABLE ATTACH'].some((kind) => line.includes(` ${kind} ${schema} `)),
    );
    if (foreign !== undefined) {
      const [, other = '?'] = / TABLE (?:DATA |ATTACH )?(\S+) /.exec(foreign) ?? [];
      throw new DatabaseError(
        'BAD_BACKUP',
        `${file} is of schema ${other}; name it in DATABASE_URL (?schema=${other})`,
      );
    }
    await db.knex.raw('create schema if not exists ??', [schema]);
    await heed(signal);
    await restoreEntries(file, place, entries, signal);
    let isRight = false;
    try {
      await heed(signal);
      const said = await check(db);
      await heed(signal);
      isRight = said;
    } finally {
      if (!isRight) await dropTables(db);
    }
  } finally {
    await db.close();
  }
}

/** Restores everything but the schema itself, in one transaction. */
async function restoreEntries(
  file: string,
  place: Place,
  entries: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-restore-'));
  try {
    const list = join(folder, 'list');
    writeFileSync(list, entries.filter((line) => !/^\d+; \d+ \d+ (SCHEMA|COMMENT - SCHEMA) /.test(line)).join('\n'));
    const options = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges', `--use-list=${list}`];
    const database = decodeURIComponent(new URL(place.url).pathname.slice(1));
    await runTool('pg_restore', [...options, `--dbname=${database}`, file], place, signal);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Copies one state of an SQLite file in one read transaction, which blocks no writer. SQLite's page-by-page backup would start again after
 * each write and never end on a busy ledger. The copy needs no write-ahead log.
 */
function copySqlite(from: string, to: string): void {
  try {
    using(
      new SqliteDatabase(from, { readonly: true, fileMustExist: true, timeout: SQLITE_BUSY_TIMEOUT_MS }),
      (source) => source.prepare('vacuum into ?').run(to),
    );
    const said = using(new SqliteDatabase(to, { readonly: true }), (copy): unknown =>
      copy.pragma('integrity_check(1)', { simple: true }),
    );
    if (said !== 'ok') throw new DatabaseError('BAD_DATABASE', `${from} is damaged: ${String(said)}`);
  } catch (error) {
    if (error instanceof DatabaseError) throw error;
    throw new DatabaseError(
      'BAD_DATABASE',
      `${from} can't be copied: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function using<T>(file: SqliteDatabase.Database, run: (file: SqliteDatabase.Database) => T): T {
  try {
    return run(file);
  } finally {
    file.close();
  }
}

function kindOf(file: string): BackupKind | null {
  if (!existsSync(file)) throw new DatabaseError('BAD_BACKUP', `there is no file ${file}`);
  if (!statSync(file).isFile()) throw new DatabaseError('BAD_BACKUP', `${file} is no file`);
  const start = Buffer.alloc(16);
  const descriptor = openSync(file, 'r');
  readSync(descriptor, start, 0, start.length, 0);
  closeSync(descriptor);
  const kinds: readonly BackupKind[] = ['sqlite', 'pg'];
  return kinds.find((kind) => start.toString('latin1').startsWith(MAGIC[kind])) ?? null;
}

/**
 * An empty file beside `file`, which its owner alone may read and nobody else writes: whoever makes the same file at the same time has
 * another one. Both SQLite and pg_dump write into it as it is.
 */
function createPartial(file: string): string {
  const partial = `${file}.${randomUUID()}.partial`;
  closeSync(openSync(partial, 'wx', 0o600));
  return partial;
}

/**
 * Throws the signal's reason when it has aborted. Copies of SQLite run without a pause, so a signal of the operating system that came
 * meanwhile is only told once the event loop has gone round.
 */
async function heed(signal: AbortSignal): Promise<void> {
  for (let round = 0; round < 2; round++) await setImmediate();
  signal.throwIfAborted();
}

/** Makes the file durable and gives it its name, or throws `taken` where a file with that name exists. */
function putInPlace(partial: string, file: string, taken: DatabaseError): void {
  const descriptor = openSync(partial, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
  try {
    linkSync(partial, file);
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') throw taken;
    throw error;
  }
  rmSync(partial);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

const sqliteFile = (url: string): string => url.replace(/^sqlite:/, '');

/**
 * Runs one of PostgreSQL's programs. Its connection is set by environment variables, so that no process list shows the password. Returns
 * its output. When the signal aborts it is ended, and its reason thrown.
 */
function runTool(
  program: 'pg_dump' | 'pg_restore',
  args: readonly string[],
  { url, env }: Place,
  signal: AbortSignal,
): Promise<string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const given = {
    PGHOST: decodeURIComponent(hostname),
    PGPORT: port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
    PGSSLMODE: searchParams.get('sslmode') ?? '',
  };
  const environment = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
  return new Promise((resolve, reject) => {
    // Detached, so that Ctrl-C on a terminal reaches it by our signal alone.
    const child = spawn(program, args, {
      env: { ...env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const end = (): void => void child.kill();
    signal.addEventListener('abort', end);
    let output = '';
    let complaint = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(0, MAX_COMPLAINT_CHARS);
    });
    const refuse = (why: string): void => reject(new DatabaseError('TOOL_FAILED', `${program}: ${why}`));
    child.once('error', () =>
      refuse("can't be started; install PostgreSQL's client programs, of the server's version or newer"),
    );
    child.once('close', (code) => {
      signal.removeEventListener('abort', end);
      // What has ended well counts, so that the caller knows of what it restored.
      if (code === 0) resolve(output);
      else if (signal.aborted) reject(signal.reason as Error);
      else refuse(complaint.trim() || `ended with ${code}`);
    });
  });
}
