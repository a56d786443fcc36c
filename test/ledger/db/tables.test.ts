import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type TypeScript from 'typescript';
import { MAKER_HOURS, MARKET_HOURS, TAKER_DAYS } from '../../../ledger/accounts/tables.js';
import { forEachDatabase } from '../../support/db.js';

const ts = createRequire(import.meta.url)('typescript') as typeof TypeScript;

/** Columns by table, each with whether it may be null, as `interface Tables` declares them. */
function declaredTables(): Map<string, Map<string, boolean>> {
  const tables = new Map<string, Map<string, boolean>>();
  for (const path of ['../../../ledger/db/tables.ts', '../../../ledger/chain/tables.ts']) {
    const text = readFileSync(new URL(path, import.meta.url), 'utf8');
    const visit = (node: TypeScript.Node): void => {
      if (!ts.isInterfaceDeclaration(node) || node.name.text !== 'Tables') return ts.forEachChild(node, visit);
      for (const table of node.members) {
        if (!ts.isPropertySignature(table) || !table.type || !ts.isTypeLiteralNode(table.type)) continue;
        const columns = table.type.members.filter(ts.isPropertySignature);
        tables.set(
          table.name.getText(),
          new Map(columns.map((one) => [one.name.getText(), /\bnull\b/.test(one.type?.getText() ?? '')])),
        );
      }
    };
    visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  }
  for (const { name, text, whole, sums } of [MAKER_HOURS, TAKER_DAYS, MARKET_HOURS])
    tables.set(name, new Map([...text, ...whole, ...sums].map((column) => [column, false])));
  return tables;
}

describe('row types', () => {
  forEachDatabase((_name, open) => {
    it('have the columns that migrations made, of every table', async () => {
      const db = await open();
      const sql =
        db.kind === 'pg'
          ? `select table_name as "table", column_name as "column", is_nullable = 'YES' as nullable
             from information_schema.columns where table_schema = current_schema()`
          : `select t.name as "table", c.name as "column", c."notnull" = 0 and c.pk = 0 as nullable
             from sqlite_master t join pragma_table_info(t.name) c where t.type = 'table'`;
      const answer = await db.knex.raw<unknown>(sql);
      const rows = (Array.isArray(answer) ? answer : (answer as { rows: unknown[] }).rows) as {
        table: string;
        column: string;
        nullable: boolean | number;
      }[];
      const ours = rows.filter(({ table }) => !/^(knex|sqlite)_/.test(table));
      const stored = ours.map(({ table, column, nullable }) => `${table}.${column}${nullable ? '?' : ''}`);
      const declared = [...declaredTables()].flatMap(([table, columns]) =>
        [...columns].map(([column, nullable]) => `${table}.${column}${nullable ? '?' : ''}`),
      );
      const lacks = (all: readonly string[], others: readonly string[]): string[] =>
        all.filter((one) => !others.includes(one));
      // Declared in ledger/db/tables.ts and ledger/chain/tables.ts.
      expect(lacks(stored, declared), 'stored and not declared so').to.deep.equal([]);
      expect(lacks(declared, stored), 'declared and not stored so').to.deep.equal([]);
    });
  });
});
