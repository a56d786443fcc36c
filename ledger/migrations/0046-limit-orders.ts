import type { Migration } from './tables.js';

/** A limit order waits for a price, up to 30 days, and takes no turn from orders that were quoted for now. */
export const limitOrders: Migration = {
  name: '0046-limit-orders',
  async up(db) {
    for (const name of ['swap_quotes', 'swap_pending'])
      await db.schema.alterTable(name, (table) => table.integer('is_limit').notNullable().defaultTo(0));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
