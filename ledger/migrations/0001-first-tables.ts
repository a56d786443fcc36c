/**
 * Tables of the logs and of their projections. Sequence numbers, blocks and times are bigint columns with values below 2^53, amounts
 * are text or numeric, flags are 0 or 1, addresses and hashes are lower-case hex in text.
 */
import type { Knex } from 'knex';
import { amount } from '../db/columns.js';
import type { Migration } from './tables.js';
import { amounts, ints, texts } from './tables.js';

export const firstTables: Migration = {
  name: '0001-first-tables',
  async up(db) {
    await createShared(db);
    await createOrderLog(db);
    await createOperatorLog(db);
    await createPublicationLog(db);
    await createScan(db);
    await createFills(db);
    await createBalances(db);
  },
  async down() {
    throw new Error('The first tables are never dropped; restore a backup or use another database');
  },
};

async function createShared(db: Knex): Promise<void> {
  await db.schema.createTable('meta', (table) => {
    texts(table, 'key', 'value');
    table.primary(['key']);
  });
  await db.schema.createTable('writers', (table) => {
    texts(table, 'log');
    ints(table, 'epoch');
    table.primary(['log']);
  });
}

async function createOrderLog(db: Knex): Promise<void> {
  await db.schema.createTable('order_log', (table) => {
    ints(table, 'order_seq', 'time_ms');
    texts(table, 'maker', 'kind', 'effects');
    table.text('signer');
    table.bigInteger('nonce');
    table.primary(['order_seq']);
    table.unique(['signer', 'nonce']);
  });
}

async function createOperatorLog(db: Knex): Promise<void> {
  await db.schema.createTable('operator_log', (table) => {
    ints(table, 'operator_seq', 'time_ms');
    texts(table, 'kind', 'note');
    table.text('maker');
    // The newest halt of the ledger that a resume knew of; a later halt stands.
    table.bigInteger('clears_halt_no');
    table.primary(['operator_seq']);
  });
}

async function createPublicationLog(db: Knex): Promise<void> {
  await db.schema.createTable('publications', (table) => {
    ints(table, 'market', 'seq', 'base_seq', 'cut_order_seq', 'cut_generation', 'cut_time_ms', 'fill_seq');
    amounts(db, table, 'ask_volume_units', 'bid_volume_units');
    texts(table, 'trims', 'snapshot_hash', 'ask_words', 'bid_words', 'words_hash', 'tx_key');
    ints(table, 'deadline_sec', 'prepared_ms');
    table.primary(['market', 'seq']);
    table.index(['tx_key']);
  });
  await db.schema.createTable('outbox', (table) => {
    // A replaced or repriced transaction keeps its nonce and gets a row of its own.
    texts(table, 'hash', 'tx_key', 'signer', 'to_address', 'raw');
    ints(table, 'nonce', 'sent_ms', 'finished');
    table.bigInteger('valid_until_sec');
    table.primary(['hash']);
    table.index(['signer', 'finished', 'nonce']);
  });
}

async function createScan(db: Knex): Promise<void> {
  await db.schema.createTable('generations', (table) => {
    ints(table, 'generation', 'from_block', 'to_block', 'block_timestamp_ms', 'scanned_ms');
    ints(table, 'observed_head', 'observed_head_timestamp_ms');
    texts(table, 'block_hash');
    table.primary(['generation']);
  });
  await db.schema.createTable('blocks', (table) => {
    ints(table, 'number', 'timestamp_sec', 'generation');
    texts(table, 'hash', 'parent_hash');
    table.primary(['number']);
  });
  await db.schema.createTable('markets', (table) => {
    ints(table, 'market', 'base_decimals', 'quote_decimals', 'max_ttl_sec', 'generation');
    texts(table, 'id', 'pair', 'base_symbol', 'base_address', 'quote_symbol', 'quote_address', 'tick_size', 'lot_size');
    amounts(db, table, 'lot_units', 'tick_lot_units');
    table.primary(['market']);
    table.unique(['id']);
  });
  await db.schema.createTable('custody_events', (table) => {
    ints(table, 'block_number', 'log_index', 'generation');
    texts(table, 'kind', 'maker', 'token', 'tx_hash');
    amounts(db, table, 'amount_units');
    amount(db, table, 'basis');
    table.bigInteger('ready_at_sec');
    table.primary(['tx_hash', 'log_index']);
    table.index(['generation']);
    table.index(['maker', 'token']);
  });
  await db.schema.createTable('posts_seen', (table) => {
    ints(table, 'market', 'seq', 'base_seq', 'deadline_sec', 'block_number', 'block_timestamp_sec', 'generation');
    amounts(db, table, 'snap_ask_units', 'snap_bid_units');
    texts(table, 'words_hash', 'tx_hash');
    table.primary(['market', 'seq']);
  });
  await db.schema.createTable('halts', (table) => {
    ints(table, 'halt_no', 'time_ms');
    texts(table, 'code', 'message');
    table.bigInteger('generation');
    table.primary(['halt_no']);
  });
}

async function createFills(db: Knex): Promise<void> {
  await db.schema.createTable('fills', (table) => {
    ints(table, 'market', 'fill_seq', 'curve_seq', 'block_number', 'log_index', 'timestamp_ms', 'generation');
    texts(table, 'side', 'taker', 'recipient', 'block_hash', 'tx_hash');
    amounts(db, table, 'base_units', 'quote_units', 'fee_units', 'input_fee_units', 'consumed_before_units');
    amounts(
      db,
      table,
      'residual_units',
      'rounding_units',
      'compression_residual_units',
      'operator_gain_units',
      'missing_base_units',
    );
    table.primary(['market', 'fill_seq']);
    table.unique(['tx_hash', 'log_index']);
  });
  await db.schema.createTable('fill_legs', (table) => {
    ints(table, 'market', 'fill_seq', 'leg_no');
    texts(table, 'maker');
    amounts(db, table, 'price_ticks', 'base_units', 'quote_units');
    table.primary(['market', 'fill_seq', 'leg_no']);
  });
  await db.schema.createTable('order_fills', (table) => {
    ints(table, 'market', 'fill_seq', 'oid', 'part_no', 'leg_no', 'tid', 'generation');
    texts(table, 'maker', 'side');
    amounts(db, table, 'price_ticks', 'base_units', 'start_base_units');
    table.primary(['market', 'fill_seq', 'oid']);
    table.unique(['tid']);
    table.index(['maker', 'generation']);
    table.index(['generation']);
  });
  await db.schema.createTable('market_progress', (table) => {
    ints(table, 'market', 'generation', 'fill_seq');
    amounts(db, table, 'ask_volume_units', 'bid_volume_units');
    table.primary(['market', 'generation']);
    table.index(['generation']);
  });
  await db.schema.createTable('snapshots', (table) => {
    ints(table, 'market', 'seq', 'generation');
    texts(table, 'payload');
    table.primary(['market', 'seq']);
  });
}

async function createBalances(db: Knex): Promise<void> {
  await db.schema.createTable('entries', (table) => {
    texts(table, 'ref', 'kind', 'account', 'token');
    ints(table, 'line', 'generation');
    amounts(db, table, 'amount_units');
    table.primary(['ref', 'line']);
    table.index(['account', 'token', 'generation']);
  });
  await db.schema.createTable('balances', (table) => {
    texts(table, 'account', 'token');
    ints(table, 'generation');
    amounts(db, table, 'balance_units', 'reserved_units', 'net_capital_units');
    table.primary(['account', 'token']);
  });
}
