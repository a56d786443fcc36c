import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDb, schemaOf } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';

/** Opens an empty database without tables, gone after the test. */
export type OpenTestDb = () => Promise<Db>;

/**
 * Declares the tests of `declare` once for SQLite, in a file, and once for PostgreSQL, in a schema of its own, when DATABASE_URL
 * names a server. `name` is that of the database.
 */
export function forEachDatabase(declare: DeclareTests): void {
  onSqlite(declare);
  if (postgresUrl() !== null) onPostgres(declare);
}

/**
 * The same once, for what no database decides: on PostgreSQL when DATABASE_URL names a server, else on SQLite. `npm run test:deep` takes
 * both.
 */
export function forOneDatabase(declare: DeclareTests): void {
  if (isOneEnough()) (postgresUrl() === null ? onSqlite : onPostgres)(declare);
  else forEachDatabase(declare);
}

/** Whether a suite that storage does not decide runs on one database alone. */
export const isOneEnough = (): boolean => process.env.RUNS === undefined || process.env.RUNS === '1';

type DeclareTests = (name: string, open: OpenTestDb) => void;

function postgresUrl(): string | null {
  const url = process.env.DATABASE_URL ?? '';
  return url === '' ? null : url;
}

function onSqlite(declare: DeclareTests): void {
  describe('on SQLite', () => {
    const undo: Undo = [];
    declare('SQLite', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'curvebook-db-'));
      const db = await openDb(`sqlite:${join(folder, 'test.sqlite')}`);
      undo.push(async () => {
        await db.close();
        rmSync(folder, { recursive: true, force: true });
      });
      return db;
    });
    closeAfterEach(undo);
  });
}

function onPostgres(declare: DeclareTests): void {
  const url = postgresUrl()!;
  describe('on PostgreSQL', () => {
    const undo: Undo = [];
    declare('PostgreSQL', async () => {
      const schema = `test_${randomUUID().replaceAll('-', '')}`;
      const root = await openDb(url);
      await root.knex.raw('create schema ??', [schema]);
      await root.close();
      const db = await openDb(url, { schema });
      undo.push(async () => {
        await db.knex.raw('drop schema ?? cascade', [schema]);
        await db.close();
      });
      return db;
    });
    closeAfterEach(undo);
  });
}

/** Where a test's database is, for another connection or process. */
export function locationOf(db: Db): { url: string; schema?: string } {
  if (db.kind === 'pg') return { url: process.env.DATABASE_URL!, schema: schemaOf(db) };
  const { filename } = (db.knex.client as { config: { connection: { filename: string } } }).config.connection;
  return { url: `sqlite:${filename}` };
}

type Undo = (() => Promise<void>)[];

/** What a suite opened is closed after each of its tests, the newest first; declared last, so that what uses it is stopped before. */
function closeAfterEach(undo: Undo): void {
  afterEach(async () => {
    for (let last = undo.pop(); last !== undefined; last = undo.pop()) await last();
  });
}
