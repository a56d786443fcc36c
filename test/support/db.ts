import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDb, schemaOf } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';
import { dropSchema, dropSpareSchemas, giveBackSchema, takeSchema } from './databases/spare-schemas.js';
import { copyTemplate } from './databases/template.js';

/** Opens a database of its own, gone after the test. */
export type OpenTestDb = () => Promise<Db>;

/**
 * Declares the tests of `declare` once for SQLite, in a file, and once for PostgreSQL, in a schema of its own, when DATABASE_URL
 * names a server. `name` is that of the database.
 */
export function forEachDatabase(declare: DeclareTests): void {
  onSqlite(declare);
  forPostgresDatabase(declare);
}

/** For what only PostgreSQL does. Without a server `npm test` leaves files that call it out, and says so. */
export function forPostgresDatabase(declare: DeclareTests): void {
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

/**
 * Whether a suite of `forEachDatabase` has, on this database, the tests that no database decides as well: on the one that `forOneDatabase` takes,
 * and on both in `npm run test:deep`.
 */
export const hasEveryTest = (name: string): boolean =>
  !isOneEnough() || name === (postgresUrl() === null ? 'SQLite' : 'PostgreSQL');

/** `open`: with every table and no row; `openBare`: without a table, for what is about migrating or about a first start. */
type DeclareTests = (name: string, open: OpenTestDb, openBare: OpenTestDb) => void;

function postgresUrl(): string | null {
  const url = process.env.DATABASE_URL ?? '';
  return url === '' ? null : url;
}

function onSqlite(declare: DeclareTests): void {
  describe('on SQLite', () => {
    const undo: Undo = [];
    const openWith = (prepare: (file: string) => Promise<void>) => async () => {
      const folder = mkdtempSync(join(tmpdir(), 'curvebook-db-'));
      const file = join(folder, 'test.sqlite');
      await prepare(file);
      const db = await openDb(`sqlite:${file}`);
      undo.push(async () => {
        await db.close();
        rmSync(folder, { recursive: true, force: true });
      });
      return db;
    };
    declare(
      'SQLite',
      openWith(copyTemplate),
      openWith(() => Promise.resolve()),
    );
    closeAfterEach(undo);
  });
}

function onPostgres(declare: DeclareTests): void {
  const url = postgresUrl()!;
  describe('on PostgreSQL', () => {
    const undo: Undo = [];
    const openWith = (prepare: (db: Db) => Promise<void>, remove: (db: Db) => Promise<void>) => async () => {
      const db = await openDb(url, { schema: `test_${randomUUID().replaceAll('-', '')}` });
      undo.push(async () => {
        await remove(db);
        await db.close();
      });
      await prepare(db);
      return db;
    };
    declare(
      'PostgreSQL',
      openWith(takeSchema, giveBackSchema),
      openWith(async (db) => void (await db.knex.raw('create schema ??', [schemaOf(db)])), dropSchema),
    );
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

/** Closes after each test what the suite opened, the newest first. It is declared last, so that hooks which stop users of the databases run before. */
function closeAfterEach(undo: Undo): void {
  afterEach(async () => {
    for (let last = undo.pop(); last !== undefined; last = undo.pop()) await last();
  });
}

// Within Mocha, and unless other processes of the run still take them.
if (typeof after === 'function' && process.env.TRANSPILED === undefined && postgresUrl() !== null) {
  after('drop spare schemas', () => dropSpareSchemas(postgresUrl()!));
}
