/** Faults of the database: statements that wait or fail, commits that fail before or after they took effect, crashes at any of them. */
import { SqliteClient } from '../../ledger/db/dialects.js';
import { createAnswers } from './speed/answers.js';
import { createReaders } from './speed/readers.js';
import { createFences } from './sql/fences.js';
import type { HintBoard } from './sql/hints.js';
import { statementOf, type StatementText } from './sql/statement.js';
import { never, type Actor } from './scheduler.js';
import { nameOf, strikes, type Simulation } from './world.js';

interface Connection {
  readonly inTransaction: boolean;
  readonly open: boolean;
  /** Path of its database. */
  readonly name: string;
  prepare(sql: string): { get(...bindings: unknown[]): unknown };
  exec(sql: string): unknown;
  close(): unknown;
}
type Query = { sql: string; bindings?: readonly unknown[]; response?: unknown };
type Send = (connection: Connection, query: Query) => Promise<unknown>;

const broken = (what: string): Error => Object.assign(new Error(`disk I/O error ${what}`), { code: 'SQLITE_IOERR' });

/** The returned function closes every connection that was opened since and is open still: of those who live when a simulation ends. */
export function rememberConnections(): () => void {
  const prototype = SqliteClient.prototype as unknown as { acquireRawConnection(): Promise<Connection> };
  const { acquireRawConnection } = prototype;
  const opened = new Set<Connection>();
  prototype.acquireRawConnection = function () {
    const made = acquireRawConnection.call(this);
    void made.then(
      (connection) => opened.add(connection),
      () => undefined,
    );
    return made;
  };
  return () => {
    Reflect.deleteProperty(prototype, 'acquireRawConnection');
    for (const connection of opened) if (connection.open) connection.close();
  };
}

/** Has every statement of a process pass through the simulation; the returned function ends that. `committed` hears of the tables with new rows. */
export function installDatabaseFaults(
  world: Simulation,
  hints: HintBoard,
  committed: (tables: ReadonlySet<string>) => void,
): () => void {
  const prototype = SqliteClient.prototype as unknown as { _query: Send };
  const original = prototype._query;
  const { scheduler, record } = world;
  const owners = new WeakMap<Connection, Actor>();
  const readers = createReaders();
  /** Of each database: the one that is promoted is not what the lost one was. */
  const answersIn = new Map<string, ReturnType<typeof createAnswers<Connection>>>();
  function answersOf({ name }: Connection): ReturnType<typeof createAnswers<Connection>> {
    let answers = answersIn.get(name);
    if (answers === undefined) answersIn.set(name, (answers = createAnswers<Connection>({ readerOf: readers.of })));
    return answers;
  }
  const fences = createFences(world);
  /** Tables with rows that an open transaction has added. */
  const grown = new WeakMap<Connection, Set<string>>();
  /** Connections whose session was ended from outside, and whether that ended a transaction. */
  const severed = new WeakMap<Connection, boolean>();

  /** A process that dies leaves no transaction open; one that is stopped has its session ended. */
  function own(connection: Connection, actor: Actor): void {
    owners.set(connection, actor);
    actor.onDeath.push(() => {
      if (connection.open) connection.close();
    });
    actor.onSevered.push((survive) => {
      if (!connection.open) return;
      // Whoever takes a log over ends the session that keeps a row of it; of the others the fence alone is left.
      if (survive && !connection.inTransaction) return;
      severed.set(connection, connection.inTransaction);
      if (connection.inTransaction) connection.exec('ROLLBACK');
    });
  }

  function noteInsert(connection: Connection, { isBegin, insertsInto }: StatementText): void {
    if (isBegin) grown.delete(connection);
    if (insertsInto === null) return;
    const tables = grown.get(connection) ?? new Set();
    grown.set(connection, tables.add(insertsInto));
  }

  async function query(this: unknown, connection: Connection, sent: Query): Promise<unknown> {
    const actor = scheduler.current();
    if (actor === undefined) return original.call(this, connection, sent);
    if (actor.isDead) return never();
    if (!owners.has(connection)) own(connection, actor);
    const where = nameOf(actor);
    const { sql } = sent;
    const statement = statementOf(sql);
    const { isBegin, isCommit, isRollback } = statement;
    if (strikes(world, isCommit ? 'crashBeforeCommit' : 'crashAtStatement', where)) {
      scheduler.kill(actor);
      return never();
    }
    if (strikes(world, 'dbSlow', where)) await scheduler.sleep(world.decisions.int('dbSlowMs', 1, 300));
    if (actor.isDead) return never();
    // Also of a statement that was on its way when the session was ended.
    const endedTransaction = severed.get(connection);
    if (endedTransaction !== undefined) {
      // Whatever is still sent of a transaction fails with its session; without it each statement would be carried out by itself. After a commit
      // that failed nothing more is sent of it.
      if (!endedTransaction || isBegin || isCommit || isRollback) severed.delete(connection);
      throw broken('after its session was ended');
    }
    if (isBegin && strikes(world, 'dbFailBegin', where)) throw broken('at the beginning');
    if (!isCommit && !isRollback && connection.inTransaction && strikes(world, 'dbFailStatement', where))
      throw broken('in a statement');
    if (isCommit && strikes(world, 'dbFailBeforeCommit', where)) {
      connection.exec('ROLLBACK');
      throw broken('before the commit');
    }
    if (isCommit) fences.committing(connection, where);
    const answer = await answersOf(connection).of(connection, sent, (on) => original.call(this, on, sent));
    noteInsert(connection, statement);
    fences.sent(connection, sent);
    hints.sent(connection, sql);
    record.trace(() => `${scheduler.nowMs()} ${where} ${statement.label}`);
    if (!isCommit) return answer;
    committed(grown.get(connection) ?? new Set());
    grown.delete(connection);
    if (strikes(world, 'crashAfterCommit', where)) {
      scheduler.kill(actor);
      return never();
    }
    if (strikes(world, 'dbFailAfterCommit', where)) throw broken('after the commit');
    return answer;
  }

  prototype._query = query;
  return () => {
    prototype._query = original;
    readers.close();
  };
}
