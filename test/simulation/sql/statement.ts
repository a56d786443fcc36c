/** What a statement is, by its text: the same few texts come thousands of times. */
export interface StatementText {
  readonly isBegin: boolean;
  readonly isCommit: boolean;
  readonly isRollback: boolean;
  /** Inserts, updates or deletes. */
  readonly isWrite: boolean;
  /** Asks, inside the transaction of a log's owner, whether it is the owner still. */
  readonly isFence: boolean;
  /** The table that it inserts into, in lower case. */
  readonly insertsInto: string | null;
  /** What a trace calls it. */
  readonly label: string;
}

const INSERTS = /^\s*(?:insert|replace)\b[^(]*?\binto ["`]?(\w+)/i;
/** More texts than the backend has; those with the name of a savepoint are all different. */
const MOST_KEPT = 5_000;

const known = new Map<string, StatementText>();

/** Reads a statement's text, once for each text. */
export function statementOf(sql: string): StatementText {
  let statement = known.get(sql);
  if (statement === undefined) {
    if (known.size >= MOST_KEPT) known.clear();
    known.set(sql, (statement = read(sql)));
  }
  return statement;
}

const read = (sql: string): StatementText => ({
  isBegin: /^\s*begin\b/i.test(sql),
  isCommit: /^\s*commit\b/i.test(sql),
  isRollback: /^\s*rollback\b/i.test(sql),
  isWrite: /^\s*(?:insert|update|delete)\b/i.test(sql),
  isFence: /^update writers set epoch = \? where log = \? and epoch = \?/.test(sql),
  insertsInto: INSERTS.exec(sql)?.[1]?.toLowerCase() ?? null,
  label: sql.slice(0, 60).replace(/trx\d+/, 'trx'),
});
