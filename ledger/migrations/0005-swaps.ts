/** Tables of the swap log (quotes, signed orders, attempts, outcomes), and of the settler's fills in the ledger log. */
import type { Knex } from 'knex';
import type { Migration } from './tables.js';
import { amounts, ints, texts } from './tables.js';

export const swaps: Migration = {
  name: '0005-swaps',
  async up(db) {
    await createSettledOrders(db);
    await createQuotes(db);
    await createOrders(db);
    await createExecution(db);
  },
  async down() {
    throw new Error('Logs are never dropped; restore a backup or use another database');
  },
};

async function createSettledOrders(db: Knex): Promise<void> {
  await db.schema.createTable('settled_orders', (table) => {
    texts(table, 'owner', 'recipient', 'token_in', 'token_out', 'tx_hash');
    amounts(db, table, 'nonce', 'amount_in_units', 'amount_out_units', 'fee_units');
    ints(table, 'fee_in_swap', 'block_number', 'log_index', 'generation');
    table.primary(['owner', 'nonce']);
    table.index(['generation']);
  });
}

async function createQuotes(db: Knex): Promise<void> {
  // One row per owner: how many Permit2 nonces it was given.
  await db.schema.createTable('swap_nonces', (table) => {
    texts(table, 'owner');
    ints(table, 'issued');
    table.primary(['owner']);
  });
  await db.schema.createTable('swap_quotes', (table) => {
    texts(table, 'id', 'owner', 'receiver', 'sell_token', 'buy_token', 'kind', 'preference', 'route', 'typed_data');
    amounts(db, table, 'sell_units', 'expected_sell_units', 'buy_units', 'min_buy_units', 'fee_units', 'nonce');
    ints(table, 'slippage_bps', 'valid_to_sec', 'created_ms', 'expires_ms');
    table.primary(['id']);
    table.unique(['owner', 'nonce']);
    table.index(['expires_ms']);
  });
}

async function createOrders(db: Knex): Promise<void> {
  await db.schema.createTable('swap_orders', (table) => {
    texts(table, 'id', 'quote_id', 'owner', 'signature');
    table.text('client_order_id');
    ints(table, 'created_ms');
    table.primary(['id']);
    table.unique(['quote_id']);
    table.unique(['owner', 'client_order_id']);
  });
  // Orders that may still be executed, so that nobody has to look through all that ever were.
  await db.schema.createTable('swap_pending', (table) => {
    texts(table, 'order_id');
    ints(table, 'created_ms', 'valid_to_sec');
    table.primary(['order_id']);
    table.index(['created_ms']);
  });
}

async function createExecution(db: Knex): Promise<void> {
  await db.schema.createTable('swap_attempts', (table) => {
    texts(table, 'order_id', 'result');
    ints(table, 'attempt_no', 'time_ms');
    // Of an attempt that was sent: its key in the outbox. Of one that was not: why.
    table.text('tx_key');
    table.text('code');
    table.text('message');
    table.primary(['order_id', 'attempt_no']);
    table.unique(['tx_key']);
  });
  await db.schema.createTable('swap_outcomes', (table) => {
    texts(table, 'order_id', 'status', 'code', 'message');
    ints(table, 'generation', 'time_ms');
    table.primary(['order_id']);
  });
}
