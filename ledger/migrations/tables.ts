/** What migrations are made of: their type, and columns that may not be null, several at once. */
import type { Knex } from 'knex';
import { amount } from '../db/columns.js';

/** One step of the schema. A step that was released never changes; later steps alter what it made. */
export interface Migration {
  readonly name: string;
  up(db: Knex): Promise<void>;
  /** There is no way down: the logs are append-only, and a backup is the way back. */
  down(db: Knex): Promise<void>;
}

type Table = Knex.CreateTableBuilder;

/** Sequence numbers, blocks, times and flags. */
export function ints(table: Table, ...names: string[]): void {
  for (const name of names) table.bigInteger(name).notNullable();
}

/** Names, addresses, hashes and payloads. */
export function texts(table: Table, ...names: string[]): void {
  for (const name of names) table.text(name).notNullable();
}

/** Amounts, exact on both databases. */
export function amounts(db: Knex, table: Table, ...names: string[]): void {
  for (const name of names) amount(db, table, name).notNullable();
}
