import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import fc from 'fast-check';
import { fcOptions } from '../../support/fc.js';
import { createAnswers } from './answers.js';
import { createReaders } from './readers.js';

const CONNECTIONS = 3;
const STATEMENTS = [
  'BEGIN;',
  'BEGIN IMMEDIATE;',
  'COMMIT;',
  'ROLLBACK',
  'select * from one order by id',
  'select * from `two` where id > ? order by id',
  'select one.id as id, two.value as value from one left join two on two.id = one.id order by one.id',
  'with both (id) as (select id from one union select id from two) select count(*) as count from both',
  'insert into one (id, value) values (?, ?)',
  'insert into "two" (id, value) values (?, ?)',
  'update one set value = value + 1 where id > ?',
  'delete from two where id > ?',
] as const;

interface Step {
  by: number;
  statement: number;
  value: number;
}

describe('answers that several processes share', () => {
  it('are what the database itself would answer, whatever others commit meanwhile', async function () {
    this.timeout(60_000);
    let known = 0;
    let read = 0;
    const step = fc.record({
      by: fc.nat(CONNECTIONS - 1),
      statement: fc.nat(STATEMENTS.length - 1),
      value: fc.nat(1),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 150 }), async (steps) => {
        const folder = mkdtempSync(join(tmpdir(), 'curvebook-answers-'));
        const readers = createReaders();
        try {
          const plain = await carriedOut(join(folder, 'plain'), steps, (connection, _query, send) => send(connection));
          const onKnown = (): void => void (known += 1);
          const readerOf = (connection: Database.Database): Database.Database => {
            read += 1;
            return readers.of(connection);
          };
          for (const options of [{ onKnown }, { onKnown, readerOf }]) {
            const shared = createAnswers<Database.Database>(options);
            const path = join(folder, 'readerOf' in options ? 'read' : 'shared');
            const answered = await carriedOut(path, steps, (connection, query, send) =>
              shared.of(connection, query, send),
            );
            expect(answered).to.deep.equal(plain);
          }
        } finally {
          readers.close();
          rmSync(folder, { recursive: true });
        }
      }),
      fcOptions(100),
    );
    expect(known).to.be.above(50);
    expect(read).to.be.above(50);
  });
});

type Send = (on: Database.Database) => Promise<unknown>;
type Query = { sql: string; bindings: readonly unknown[]; response?: unknown };

/** What each statement answers in turn, or how it fails. */
async function carriedOut(
  path: string,
  steps: readonly Step[],
  ask: (connection: Database.Database, query: Query, send: Send) => Promise<unknown>,
): Promise<unknown[]> {
  const connections = Array.from({ length: CONNECTIONS }, () => new Database(path, { timeout: 0 }));
  connections[0]!.exec(
    'pragma journal_mode = wal; create table one (id, value); create table two (id, value); insert into one values (0, 0)',
  );
  try {
    const answers: unknown[] = [];
    for (const { by, statement, value } of steps) {
      const connection = connections[by]!;
      const sql = STATEMENTS[statement]!;
      const bindings = Array<number>(sql.split('?').length - 1).fill(value);
      const query: Query = { sql, bindings };
      const send = async (on: Database.Database): Promise<unknown> => {
        const prepared = on.prepare(sql);
        query.response = prepared.reader ? prepared.all(bindings) : prepared.run(bindings).changes;
        return query;
      };
      await ask(connection, query, send).then(
        () => answers.push(query.response),
        (error: { code?: string }) => answers.push(error.code),
      );
    }
    return answers;
  } finally {
    for (const connection of connections) connection.close();
  }
}
