/**
 * Knex clients that close gaps in the ones they extend. They lean on paths inside the pinned Knex; tests assert what is sent.
 */
import { createRequire } from 'node:module';
import type { Knex } from 'knex';

interface RawConnection {
  inTransaction?: boolean;
}

interface TransactionLike {
  readOnly?: boolean;
  begin(connection: RawConnection): Promise<unknown>;
  query(connection: RawConnection, sql: string): Promise<unknown>;
}

type ClientClass = { new (config: Knex.Config): KnexClient };
interface KnexClient {
  transaction(...args: unknown[]): TransactionLike;
  _query(connection: RawConnection, query: { sql: string; response?: { command?: string } }): Promise<unknown>;
}

const require = createRequire(import.meta.url);
const BetterSqliteClient = require('knex/lib/dialects/better-sqlite3/index.js') as ClientClass;
const PostgresClient = require('knex/lib/dialects/postgres/index.js') as ClientClass;

/**
 * SQLite with write transactions that take the write lock when they begin. A deferred BEGIN takes it at the first write, by when
 * what was read may be stale, and then fails with SQLITE_BUSY whatever the timeout is. Read-only transactions stay deferred.
 */
export class SqliteClient extends BetterSqliteClient {
  override transaction(...args: unknown[]): TransactionLike {
    const transaction = super.transaction(...args);
    transaction.begin = async (connection) => {
      // A COMMIT that failed for lack of space leaves the only connection inside its transaction.
      if (connection.inTransaction === true) await transaction.query(connection, 'ROLLBACK;');
      return transaction.query(connection, transaction.readOnly === true ? 'BEGIN;' : 'BEGIN IMMEDIATE;');
    };
    return transaction;
  }
}

/** PostgreSQL answers COMMIT of a failed transaction with success and the word ROLLBACK; here that is an error. */
export class PgClient extends PostgresClient {
  override async _query(
    connection: RawConnection,
    query: { sql: string; response?: { command?: string } },
  ): Promise<unknown> {
    const answer = await super._query(connection, query);
    if (/^COMMIT\b/i.test(query.sql) && query.response?.command === 'ROLLBACK') {
      throw Object.assign(new Error('The transaction had failed and was rolled back at COMMIT'), { code: '25P02' });
    }
    return answer;
  }
}
