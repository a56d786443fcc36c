/**
 * Answers of the database that several processes ask for before anything changes in the tables that they are of: polls, for the most part. They
 * are what the database would answer again, so that only the time which that takes is saved.
 */
interface Connection {
  readonly inTransaction: boolean;
  readonly open: boolean;
  prepare(sql: string): { get(...bindings: unknown[]): unknown };
}
interface Query {
  sql: string;
  bindings?: readonly unknown[];
  response?: unknown;
}
type Row = Record<string, unknown>;

interface Answers<C extends Connection> {
  /** The query with its response, of the database itself unless it is known. `send` carries it out on the connection that it is given. */
  of(connection: C, query: Query, send: Send<C>): Promise<unknown>;
}
type Send<C> = (connection: C) => Promise<unknown>;

interface AnswersOptions<C extends Connection> {
  /** Called with each answer that is known, and whose connection sees what it is of; null when any other one does. */
  onKnown?: (query: Query, known: readonly Row[], seenBy: C | null) => void;
  /**
   * A connection to the database of another one, which never begins a transaction. What is read as of the newest commit is read by it, for all: it has
   * its statements prepared and its pages at hand.
   */
  readerOf?: (connection: C) => C;
}

/** A commit counts up; each table knows the last one that changed it. */
interface Table {
  changed: number;
}
/** What a statement is, by its text. */
interface Statement {
  kind: 'read' | 'write' | 'begin' | 'begin immediate' | 'commit' | 'rollback' | 'other';
  tables: readonly Table[];
  /** Of a read, by its bindings, for as long as none of its tables changes. */
  answers: Map<string, readonly Row[]>;
  since: number;
}
interface Transaction {
  /** The newest commit that it sees; null until its first read decides that. */
  version: number | null;
  wrote: Set<Table>;
  /** It changed what no table's name says. */
  wroteAll: boolean;
}

const READS = /^\s*(?:select|with)\b/i;
const WRITES = /^\s*(?:insert|update|delete)\b/i;
const BEGINS = /^\s*begin\b/i;
/** The first read of a connection decides what its transaction sees. */
const SEES = 'select 1 from sqlite_master limit 1';
const NAMED = /\b(?:from|join|into|update)\s+["`]?(\w+)/gi;

function kindOf(sql: string): Statement['kind'] {
  if (READS.test(sql)) return /^\s*with\b/i.test(sql) && /\b(?:insert|update|delete)\b/i.test(sql) ? 'write' : 'read';
  if (WRITES.test(sql)) return 'write';
  if (BEGINS.test(sql)) return /immediate/i.test(sql) ? 'begin immediate' : 'begin';
  if (/^\s*commit\b/i.test(sql)) return 'commit';
  return /^\s*rollback\s*;?\s*$/i.test(sql) ? 'rollback' : 'other';
}

/** Null for values that have no text of their own. */
function keyOf(bindings: readonly unknown[] | undefined): string | null {
  if (bindings === undefined || bindings.length === 0) return '';
  if (bindings.some((one) => typeof one === 'object' && one !== null)) return null;
  return bindings.map((one) => `${typeof one} ${String(one)}`).join('\0');
}

const copied = (rows: readonly Row[]): Row[] => rows.map((row) => ({ ...row }));

/** For all connections to one database: every change must pass through `of`. */
export function createAnswers<C extends Connection>({ onKnown, readerOf }: AnswersOptions<C> = {}): Answers<C> {
  const statements = new Map<string, Statement>();
  const tables = new Map<string, Table>();
  const transactions = new WeakMap<Connection, Transaction>();
  /** Those whose connection has not read yet: it must before anything is committed, to see what they saw. */
  const waiting = new Map<Connection, Transaction>();
  let version = 0;
  /** The last commit that may have changed any table. */
  let allChanged = 0;

  function tableOf(name: string): Table {
    let table = tables.get(name);
    if (table === undefined) tables.set(name, (table = { changed: 0 }));
    return table;
  }

  function statementOf(sql: string): Statement {
    let statement = statements.get(sql);
    if (statement === undefined) {
      const names = new Set([...sql.matchAll(NAMED)].map(([, name]) => name!.toLowerCase()));
      statement = { kind: kindOf(sql), tables: [...names].map(tableOf), answers: new Map(), since: 0 };
      statements.set(sql, statement);
    }
    return statement;
  }

  /** The last commit that changed anything that a statement reads. What is known from before it is forgotten. */
  function lastChange(statement: Statement): number {
    let last = allChanged;
    for (const { changed } of statement.tables) if (changed > last) last = changed;
    if (last > statement.since) {
      statement.answers.clear();
      statement.since = last;
    }
    return last;
  }

  /** Statements are carried out as they are sent: what is read after that, before the sender hears of it, is of the new version. */
  function change(wrote: ReadonlySet<Table>, isAll: boolean, send: () => Promise<unknown>): Promise<unknown> {
    for (const [connection, transaction] of waiting)
      if (connection.open && connection.inTransaction && transactions.get(connection) === transaction)
        connection.prepare(SEES).get();
    waiting.clear();
    version += 1;
    if (isAll) allChanged = version;
    for (const table of wrote) table.changed = version;
    return send();
  }

  async function read(connection: C, query: Query, statement: Statement, send: Send<C>): Promise<unknown> {
    const { inTransaction } = connection;
    const transaction = inTransaction ? transactions.get(connection) : undefined;
    if (inTransaction && transaction === undefined) return send(connection);
    if (transaction !== undefined) {
      if (transaction.wroteAll || statement.tables.some((table) => transaction.wrote.has(table)))
        return send(connection);
      if (transaction.version === null) {
        transaction.version = version;
        waiting.set(connection, transaction);
      }
    }
    const isCurrent = lastChange(statement) <= (transaction?.version ?? version);
    const key = isCurrent ? keyOf(query.bindings) : null;
    if (key === null) {
      waiting.delete(connection);
      return send(connection);
    }
    const rows = statement.answers.get(key);
    if (rows !== undefined) {
      onKnown?.(query, rows, waiting.has(connection) ? null : connection);
      query.response = copied(rows);
      return query;
    }
    if (readerOf === undefined) waiting.delete(connection);
    const { since } = statement;
    const before = version;
    const sent = await send(readerOf === undefined ? connection : readerOf(connection));
    const { response } = query;
    // Others go on as soon as the statement is carried out.
    if (Array.isArray(response) && before === version && since === statement.since)
      statement.answers.set(key, copied(response as Row[]));
    return sent;
  }

  async function of(connection: C, query: Query, carryOut: Send<C>): Promise<unknown> {
    const send = (): Promise<unknown> => carryOut(connection);
    const statement = statementOf(query.sql);
    const { kind } = statement;
    if (kind === 'read') return read(connection, query, statement, carryOut);
    if (kind === 'begin' || kind === 'begin immediate') {
      const sent = await send();
      waiting.delete(connection);
      // Nobody else commits while it has the lock.
      const sees = kind === 'begin immediate' ? version : null;
      transactions.set(connection, { version: sees, wrote: new Set(), wroteAll: false });
      return sent;
    }
    const transaction = transactions.get(connection);
    if (kind === 'commit' || kind === 'rollback') {
      waiting.delete(connection);
      transactions.delete(connection);
      const { wrote, wroteAll } = transaction ?? { wrote: new Set<Table>(), wroteAll: true };
      return kind === 'rollback' || (!wroteAll && wrote.size === 0) ? send() : change(wrote, wroteAll, send);
    }
    if (connection.inTransaction && transaction !== undefined) {
      if (kind === 'write') for (const table of statement.tables) transaction.wrote.add(table);
      else transaction.wroteAll = true;
      return send().catch((error: unknown) => {
        // Whether it has decided what the transaction sees, only the connection knows.
        transaction.wroteAll = true;
        throw error;
      });
    }
    return change(new Set(statement.tables), kind !== 'write', send);
  }

  return { of };
}
