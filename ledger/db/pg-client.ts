/**
 * The Knex client for PostgreSQL, which corrects the one that it extends. It depends on internal paths of the pinned Knex version; tests
 * assert the statements that are sent.
 */
import { createRequire } from 'node:module';
import type { Knex } from 'knex';
import pg from 'pg';
import { toSafeInt } from '../../core/amounts.js';
import type { ClientClass, PgQuery, RawConnection, TransactionLike } from './dialects.js';
import { createGathering, type Gathering } from './pg-gather.js';

const require = createRequire(import.meta.url);
const PostgresClient = require('knex/lib/dialects/postgres/index.js') as ClientClass;

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
 * longer than anything else that sending a statement does. `last` sends what was gathered until then.
 */
function holdWrites(connection: PgConnection, last: () => void): void {
  if (held.has(connection)) return;
  held.add(connection);
  const stream = connection.connection?.stream;
  stream?.cork?.();
  process.nextTick(() => {
    held.delete(connection);
    last();
    stream?.uncork?.();
  });
}

const gatherings = new WeakMap<object, Gathering>();

/** Holds the connection and nothing of the transaction that first used it. */
function gatheringOf(connection: RawConnection): Gathering {
  const known = gatherings.get(connection);
  if (known !== undefined) return known;
  const send = PostgresClient.prototype._query;
  const made = createGathering((query) => send(connection, query), getTypeParser);
  gatherings.set(connection, made);
  return made;
}

/** int8 as a checked JS integer; numeric stays text, which is exact. */
export function getTypeParser(oid: number, format: 'text' | 'binary' = 'text'): (value: string) => unknown {
  const isInt8 = oid === (pg.types.builtins.INT8 as number) && format === 'text';
  return isInt8 ? toSafeInt : (pg.types.getTypeParser(oid, format) as (value: string) => unknown);
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

  override async _query(connection: RawConnection & PgConnection, query: PgQuery): Promise<unknown> {
    const gathering = gatheringOf(connection);
    holdWrites(connection, gathering.flush);
    if (query.gathers !== undefined) return gathering.add(query, query.gathers);
    gathering.flush();
    const answer = await super._query(connection, query);
    if (/^COMMIT\b/i.test(query.sql) && query.response?.command === 'ROLLBACK') {
      throw new RolledBackError();
    }
    // The caller then treats the commit as undecided, and reads back after a commit that does wait for replicas.
    if (unreplicated.delete(connection) && /^COMMIT\b/i.test(query.sql)) throw new UnreplicatedError();
    return answer;
  }
}
