/**
 * Statements of one transaction that are handed over in the same turn of the event loop, sent to PostgreSQL as one: a statement costs this
 * process more than its rows do. Inserts become parts of a `with` clause, reads become columns of one row, as text that is read with the
 * parsers which the driver has for the types of their columns, so that values are the same as when each is sent alone.
 */
import { createHash } from 'node:crypto';
import type { Binding, Gathers, PgQuery, PgResponse } from './dialects.js';

/** Sends one statement alone, and puts the answer into it. */
type Send = (query: PgQuery) => Promise<unknown>;
type ParserOf = (typeOid: number) => (text: string) => unknown;

interface Column {
  name: string;
  parse: (text: string) => unknown;
}

/** How the rows of a read look: its columns, and all of them as text, as SQL. */
interface Shape {
  columns: readonly Column[];
  cells: string;
}

interface Waiting {
  readonly query: PgQuery;
  readonly ended: PromiseWithResolvers<unknown>;
}

interface Gathered {
  readonly inserts: Map<string, Waiting>;
  readonly reads: Waiting[];
  bindings: number;
}

/** Statements of one connection that wait for the end of this turn. */
export interface Gathering {
  /** Keeps a statement until `flush`. Resolves with the statement and its answer, rejects when the statement that it became part of fails. */
  add(query: PgQuery, gathers: Gathers): Promise<unknown>;
  /** Sends all that waits; any other statement must be sent after it, so that the order of all stays. */
  flush(): void;
}

/** PostgreSQL takes 65,535 bindings per statement. */
const MAX_BINDINGS = 10_000;
const MAX_READS = 50;
/** An array in a row of JSON would end a little before PostgreSQL's 1,664 columns; no table comes near. */
const MAX_COLUMNS = 1_000;
/** Its cast to text drops spaces at the end, which the driver keeps. */
const PADDED_TEXT = 1042;

/** Columns of the answers of reads, by text, learnt when each is first sent alone; null where they can't be gathered. Cleared when full. */
const shapes = new Map<string, Shape | null>();
const MAX_SHAPES = 1_000;

export function createGathering(send: Send, parserOf: ParserOf): Gathering {
  let gathered: Gathered = { inserts: new Map(), reads: [], bindings: 0 };

  function flush(): void {
    const { inserts, reads } = gathered;
    if (inserts.size + reads.length === 0) return;
    gathered = { inserts: new Map(), reads: [], bindings: 0 };
    if (inserts.size > 0) sendInserts([...inserts.values()]);
    const known = reads.filter(({ query }) => (shapes.get(query.sql) ?? null) !== null);
    if (known.length > 1) sendReads(known);
    for (const one of reads) if (known.length < 2 || !known.includes(one)) sendAlone(one);
  }

  function sendInserts(inserts: readonly Waiting[]): void {
    const one = insertsAsOne(inserts.map(({ query }) => query));
    settle(inserts, send(one), ({ query }) => Object.assign(query, { response: one.response }));
  }

  function sendReads(reads: readonly Waiting[]): void {
    const known = reads.map(({ query }) => shapes.get(query.sql)!);
    const one = readsAsOne(
      reads.map(({ query }) => query),
      known,
    );
    const answer = send(one);
    // Columns may have changed since; the next time each is sent alone.
    answer.catch(() => reads.forEach(({ query }) => shapes.delete(query.sql)));
    settle(reads, answer, ({ query }, i) => {
      const lists = (one.response!.rows[0] as Record<string, (string | null)[][] | null>)[`r${i + 1}`] ?? [];
      const rows = lists.map((cells) => rowOf(cells, known[i]!.columns));
      return Object.assign(query, { response: { command: 'SELECT', rowCount: rows.length, rows } });
    });
  }

  function sendAlone(one: Waiting): void {
    settle([one], send(one.query), ({ query }) => {
      if (!shapes.has(query.sql)) {
        if (shapes.size >= MAX_SHAPES) shapes.clear();
        shapes.set(query.sql, shapeOf(query.response!, parserOf));
      }
      return query;
    });
  }

  return {
    flush,
    add(query, gathers) {
      const isInsert = gathers !== 'read';
      const count = query.bindings?.length ?? 0;
      const isFull = gathered.bindings + count > MAX_BINDINGS || gathered.reads.length === MAX_READS;
      // A read sees what was inserted before it, and no insert waits behind a read: each change of the kind ends a statement.
      if (
        isFull ||
        (isInsert ? gathered.reads.length > 0 || gathered.inserts.has(gathers.insertInto) : gathered.inserts.size > 0)
      )
        flush();
      const one: Waiting = { query, ended: Promise.withResolvers<unknown>() };
      gathered.bindings += count;
      if (isInsert) gathered.inserts.set(gathers.insertInto, one);
      else gathered.reads.push(one);
      return one.ended.promise;
    },
  };
}

/** Tells each statement its own part of an answer, or the error that they share. */
function settle(waiting: readonly Waiting[], answer: Promise<unknown>, of: (one: Waiting, i: number) => PgQuery): void {
  answer.then(
    () => {
      for (const [i, one] of waiting.entries()) {
        try {
          one.ended.resolve(of(one, i));
        } catch (error) {
          one.ended.reject(error);
        }
      }
    },
    (error: Error) => {
      for (const [i, { ended }] of waiting.entries()) ended.reject(i === 0 ? error : copyOf(error));
    },
  );
}

/** Knex puts the text of the statement in front of an error's message, so each statement has an error of its own. */
const copyOf = (error: Error): Error =>
  Object.create(Object.getPrototypeOf(error) as object, Object.getOwnPropertyDescriptors(error)) as Error;

const PLACEHOLDER = /\$\d+/;

/** Statement texts cut at their placeholders, which are numbered from one in order. Cleared when full. */
const pieces = new Map<string, readonly string[]>();

/** A statement's text whose placeholders begin after so many others. */
function after(sql: string, count: number): string {
  if (count === 0) return sql;
  const known = pieces.get(sql) ?? sql.split(PLACEHOLDER);
  if (pieces.size >= MAX_SHAPES) pieces.clear();
  pieces.set(sql, known);
  return known.reduce((text, piece, i) => `${text}$${count + i}${piece}`);
}

/**
 * Names of long texts, which each connection has PostgreSQL parse once; made of the texts, so that no two statements have the same one. Only
 * of inserts: the plan of a read may depend on its values, and that of an insert on nothing.
 */
const names = new Map<string, string>();
const MAX_NAMES = 50;

/** Inserts into different tables: none reads what another writes. */
function insertsAsOne(inserts: readonly PgQuery[]): PgQuery {
  const texts = inserts.map(({ sql }, i) => after(sql, i));
  const last = texts.pop()!;
  const bindings = inserts.flatMap(({ bindings }) => bindings!);
  if (texts.length === 0) return { sql: last, bindings };
  const sql = `with ${texts.map((text, i) => `i${i + 1} as (${text})`).join(', ')} ${last}`;
  if (!names.has(sql) && names.size < MAX_NAMES)
    names.set(sql, createHash('sha256').update(sql).digest('hex').slice(0, 32));
  const name = names.get(sql);
  return name === undefined ? { sql, bindings } : { sql, bindings, options: { name } };
}

/** Each read becomes a list of lists of text, in its own order. */
function readsAsOne(reads: readonly PgQuery[], known: readonly Shape[]): PgQuery {
  const bindings: Binding[] = [];
  const lists = reads.map(({ sql, bindings: own = [] }, i) => {
    const text = `(select json_agg(array[${known[i]!.cells}]) from (${after(sql, bindings.length)}) as r) as r${i + 1}`;
    bindings.push(...own);
    return text;
  });
  return { sql: `select ${lists.join(', ')}`, bindings };
}

function shapeOf({ command, fields = [] }: PgResponse, parserOf: ParserOf): Shape | null {
  const distinct = new Set(fields.map(({ name }) => name));
  const isGathered =
    command === 'SELECT' &&
    distinct.size === fields.length &&
    fields.length > 0 &&
    fields.length <= MAX_COLUMNS &&
    fields.every(({ name, dataTypeID }) => dataTypeID !== PADDED_TEXT && !name.includes('"'));
  if (!isGathered) return null;
  return {
    columns: fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) })),
    cells: fields.map(({ name }) => `r."${name}"::text`).join(', '),
  };
}

function rowOf(cells: readonly (string | null)[], columns: readonly Column[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [i, { name, parse }] of columns.entries()) {
    const cell = cells[i]!;
    row[name] = cell === null ? null : parse(cell);
  }
  return row;
}
