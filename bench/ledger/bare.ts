/** The inserts of a run of the ledger, in the same transactions, sent by a bare loop over the database's driver. */
import { createRequire } from 'node:module';
import type SqliteDatabase from 'better-sqlite3';
import pg from 'pg';
import { pgConnectionOf, schemaOf, PG_SESSION_SQL } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';

/** One statement as Knex sent it. */
interface Statement {
  sql: string;
  bindings: unknown[];
}

/** The statements that insert rows, one list per transaction. */
type Recording = Statement[][];

/** Records every insert that goes through `db` from now on. `take` returns the recorded ones and starts a new recording. */
export function recordInserts(db: Db): { take(): Recording } {
  let transactions: Recording = [];
  let open: Statement[] = [];
  db.knex.on('query', ({ sql, bindings }: { sql: string; bindings?: unknown[] }) => {
    if (/^begin/i.test(sql)) open = [];
    else if (/^insert/i.test(sql)) open.push({ sql, bindings: bindings ?? [] });
    else if (/^commit/i.test(sql) && open.length > 0) transactions.push(open);
  });
  return {
    take() {
      const taken = transactions;
      transactions = [];
      return taken;
    },
  };
}

/** A connection that only inserts. */
interface Bare {
  run(recording: Recording): Promise<void>;
  close(): Promise<void>;
}

/** Connects to the tables of `db`, whose commits are as durable as the ledger's; on SQLite the connection is that of `db` itself. */
export async function connectBare(db: Db): Promise<Bare> {
  return db.kind === 'sqlite' ? bareSqlite(db) : barePg(db);
}

async function bareSqlite(db: Db): Promise<Bare> {
  const { filename } = (db.knex.client as { config: { connection: { filename: string } } }).config.connection;
  const Database = createRequire(import.meta.url)('better-sqlite3') as typeof SqliteDatabase;
  const connection = new Database(filename);
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('fullfsync = ON');
  const statements = new Map<string, SqliteDatabase.Statement>();
  const prepared = (sql: string): SqliteDatabase.Statement => {
    const known = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, known);
    return known;
  };
  return {
    async run(recording) {
      for (const transaction of recording) {
        prepared('begin immediate').run();
        for (const { sql, bindings } of transaction) prepared(sql).run(...bindings);
        prepared('commit').run();
      }
    },
    close: async () => void connection.close(),
  };
}

async function barePg(db: Db): Promise<Bare> {
  const client = new pg.Client(pgConnectionOf(db));
  await client.connect();
  await client.query(PG_SESSION_SQL);
  await client.query(`set search_path to ${schemaOf(db)}`);
  return {
    async run(recording) {
      for (const transaction of recording) {
        await client.query('begin');
        for (const { sql, bindings } of transaction) await client.query(sql, bindings);
        await client.query('commit');
      }
    },
    close: () => client.end(),
  };
}
