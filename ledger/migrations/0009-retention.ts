/** What rows of the order log leave behind when they are folded: the state after the last of them, and the orders that stay known. */
import type { Knex } from 'knex';
import type { Migration } from './tables.js';
import { amounts, ints, texts } from './tables.js';

export const retention: Migration = {
  name: '0009-retention',
  async up(db) {
    await db.schema.createTable('fold_position', (table) => {
      // One row, with id 1. The state includes the order log up to order_seq and the ledger log up to generation.
      ints(table, 'id', 'order_seq', 'generation', 'oid', 'time_ms');
      table.primary(['id']);
    });
    await db.schema.createTable('folded_orders', (table) => {
      ints(table, 'oid', 'market', 'placed_ms', 'has_fill');
      texts(table, 'maker', 'side', 'tif', 'state');
      amounts(db, table, 'price_ticks', 'size_lots', 'filled_units');
      table.text('cloid');
      table.bigInteger('closed_ms');
      table.primary(['oid']);
      table.index(['maker', 'closed_ms']);
      table.index(['state']);
    });
    await createAccounts(db);
    await db.schema.alterTable('order_fills', (table) => table.index(['oid']));
    await db.schema.alterTable('publications', (table) => table.index(['deadline_sec']));
  },
  async down() {
    throw new Error('What was folded is nowhere else; restore a backup or use another database');
  },
};

async function createAccounts(db: Knex): Promise<void> {
  await db.schema.createTable('folded_signers', (table) => {
    texts(table, 'signer', 'nonces');
    table.primary(['signer']);
  });
  await db.schema.createTable('folded_makers', (table) => {
    texts(table, 'maker');
    for (const name of ['last_action_ms', 'armed_ms', 'trigger_day']) table.bigInteger(name);
    ints(table, 'trigger_count');
    table.primary(['maker']);
  });
  await db.schema.createTable('folded_agents', (table) => {
    texts(table, 'address', 'master', 'name');
    ints(table, 'since_ms', 'valid_until_ms', 'approved_seq', 'is_live');
    table.primary(['address']);
    table.index(['master']);
  });
}
