/** What a reorganisation of the chain takes back, and what is needed to take it back exactly. */
import type { Knex } from 'knex';
import { amount } from '../db/columns.js';
import type { Migration } from './tables.js';
import { ints, texts } from './tables.js';

export const reversals: Migration = {
  name: '0007-reversals',
  async up(db) {
    await createReversals(db);
    await createChanges(db);
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

async function createReversals(db: Knex): Promise<void> {
  await db.schema.createTable('reversals', (table) => {
    ints(table, 'generation', 'kept_generation', 'from_block', 'to_block', 'depth', 'time_ms', 'operator_seq');
    ints(table, 'clears_halt_no');
    table.primary(['generation']);
  });
  // Rows of projections as they were before a reversal, one JSON object each.
  await db.schema.createTable('orphaned_rows', (table) => {
    ints(table, 'reversal', 'row_no', 'generation');
    texts(table, 'table_name', 'payload');
    table.primary(['reversal', 'row_no']);
    table.index(['table_name', 'generation']);
  });
  await db.schema.createTable('capital_origins', (table) => {
    ints(table, 'operator_seq', 'generation', 'block_number', 'time_ms');
    table.primary(['operator_seq']);
  });
}

async function createChanges(db: Knex): Promise<void> {
  // The counters of `balances` that entries do not explain, change by change.
  await db.schema.createTable('balance_changes', (table) => {
    ints(table, 'generation');
    texts(table, 'account', 'token');
    for (const name of ['reserved_delta_units', 'net_capital_delta_units']) amount(db, table, name).notNullable();
    table.primary(['generation', 'account', 'token']);
  });
  // Every state that a row of `claims` ever had.
  await db.schema.createTable('claim_changes', (table) => {
    ints(table, 'generation');
    texts(table, 'maker', 'token');
    for (const name of ['claim_units', 'basis', 'outstanding_units']) amount(db, table, name).notNullable();
    table.bigInteger('ready_at_sec');
    table.bigInteger('pending_since_block');
    table.primary(['maker', 'token', 'generation']);
    table.index(['generation']);
  });
  for (const claim of await db('claims').select()) await db('claim_changes').insert(claim);
  for (const row of await db('balances').select()) {
    await db('balance_changes').insert({
      generation: row.generation,
      account: row.account,
      token: row.token,
      reserved_delta_units: row.reserved_units,
      net_capital_delta_units: row.net_capital_units,
    });
  }
}
