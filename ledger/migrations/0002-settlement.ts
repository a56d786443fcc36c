/** Claims and taker fees as projections of the ledger log, the settlement log with its checkpoints, and lowerings asked for by the operator. */
import type { Knex } from 'knex';
import { amount } from '../db/columns.js';
import type { Migration } from './tables.js';
import { amounts, ints, texts } from './tables.js';

export const settlementTables: Migration = {
  name: '0002-settlement',
  async up(db) {
    await createProjections(db);
    await createSettlementLog(db);
    await db.schema.alterTable('custody_events', (table) => {
      // The prepared settlement that explains a WithdrawSettled.
      table.bigInteger('settlement_no');
      table.index(['settlement_no']);
    });
    await db.schema.alterTable('operator_log', (table) => {
      table.text('token');
      amount(db, table, 'amount_units');
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

async function createProjections(db: Knex): Promise<void> {
  await db.schema.createTable('claims', (table) => {
    texts(table, 'maker', 'token');
    amounts(db, table, 'claim_units', 'basis', 'outstanding_units');
    table.bigInteger('ready_at_sec');
    table.bigInteger('pending_since_block');
    ints(table, 'generation');
    table.primary(['maker', 'token']);
    table.index(['pending_since_block']);
  });
  await db.schema.createTable('taker_fees', (table) => {
    texts(table, 'taker', 'token');
    amounts(db, table, 'accrued_units');
    ints(table, 'generation');
    table.primary(['taker', 'token']);
  });
  await db.schema.alterTable('balances', (table) => {
    table.index(['generation']);
  });
}

async function createSettlementLog(db: Knex): Promise<void> {
  await db.schema.createTable('checkpoints', (table) => {
    ints(table, 'checkpoint_seq', 'generation', 'block_number', 'timestamp_ms', 'leaf_count');
    texts(table, 'block_hash', 'root', 'ack_fill_seqs');
    table.primary(['checkpoint_seq']);
  });
  // Only the rows that a checkpoint changed: a checkpoint is the newest row of each account and token up to its number.
  await db.schema.createTable('checkpoint_rows', (table) => {
    texts(table, 'account', 'token');
    ints(table, 'checkpoint_seq');
    amounts(db, table, 'balance_units', 'reserved_units');
    table.primary(['account', 'token', 'checkpoint_seq']);
    table.index(['checkpoint_seq']);
  });
  await db.schema.createTable('settlements', (table) => {
    ints(table, 'settlement_no', 'cut_generation', 'cut_block', 'checkpoint_seq', 'prepared_ms');
    texts(table, 'maker', 'token', 'tx_key', 'prepared_by');
    amounts(db, table, 'amount_units', 'basis', 'previous_units');
    table.bigInteger('operator_seq');
    table.primary(['settlement_no']);
    table.index(['maker', 'token']);
    table.index(['tx_key']);
    table.index(['prepared_ms']);
  });
  await db.schema.createTable('settlement_outcomes', (table) => {
    ints(table, 'settlement_no', 'time_ms');
    texts(table, 'outcome');
    table.primary(['settlement_no']);
  });
}
