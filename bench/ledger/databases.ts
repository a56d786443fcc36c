/** Empty databases for measurements: files of SQLite, and schemas of the PostgreSQL that DATABASE_URL names. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, openDb } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';

/** One database with all tables; `drop` leaves nothing of it. */
interface BenchDb {
  db: Db;
  drop(): Promise<void>;
}

export interface Database {
  name: string;
  create(): Promise<BenchDb>;
}

const sqlite: Database = {
  name: 'SQLite',
  async create() {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-ledger-'));
    const db = await openDb(`sqlite:${join(folder, 'bench.sqlite')}`);
    await migrate(db);
    return {
      db,
      async drop() {
        await db.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

const postgres = (url: string): Database => ({
  name: 'PostgreSQL',
  async create() {
    const schema = `bench_${randomUUID().replaceAll('-', '')}`;
    const db = await openDb(url, { schema });
    await migrate(db);
    return {
      db,
      async drop() {
        await db.knex.raw('drop schema ?? cascade', [schema]);
        await db.close();
      },
    };
  },
});

/** SQLite, and PostgreSQL when DATABASE_URL names one; or `only` one of them, by name. Throws RangeError when there is none. */
export function databases(only?: string): Database[] {
  const url = process.env.DATABASE_URL;
  const all = url === undefined || url === '' ? [sqlite] : [sqlite, postgres(url)];
  const chosen = all.filter(({ name }) => only === undefined || name.toLowerCase().startsWith(only.toLowerCase()));
  if (chosen.length === 0) throw new RangeError(`no database for --database ${only}; PostgreSQL needs DATABASE_URL`);
  return chosen;
}
