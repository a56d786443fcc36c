/** Small steps, one after the other. */
import { type Migration, amounts, ints, texts } from './tables.js';

/** Most that a stored transaction may bid, so that what replaces it after a restart keeps within it, too. */
export const outboxBounds: Migration = {
  name: '0035-outbox-bounds',
  async up(db) {
    await db.schema.alterTable('outbox', (table) => void table.text('max_fee_wei').nullable());
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** What mined transactions of signed orders cost, and what their fees were worth then. */
export const swapCosts: Migration = {
  name: '0036-swap-costs',
  async up(db) {
    await db.schema.createTable('swap_costs', (table) => {
      texts(table, 'tx_hash', 'order_id', 'token');
      ints(table, 'filled', 'time_ms');
      amounts(db, table, 'fee_wei', 'cost_wei');
      table.primary(['tx_hash']);
      table.index(['time_ms']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** Orders that their owners took back before anything was sent. */
export const swapCancellations: Migration = {
  name: '0037-swap-cancellations',
  async up(db) {
    await db.schema.createTable('swap_cancellations', (table) => {
      texts(table, 'order_id', 'signature');
      ints(table, 'time_ms');
      table.primary(['order_id']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
