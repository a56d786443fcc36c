import type { Migration } from './tables.js';

/**
 * Trade ids need not be unique: makers deduplicate by them together with their address, nothing is looked up by one, and of their 53 bits
 * two may be equal by chance, which must not keep a fill from being booked. Being random they made each commit write a page of the index
 * per part of a fill, the more the longer the history.
 */
export const tradeIds: Migration = {
  name: '0011-trade-ids',
  async up(db) {
    await db.schema.alterTable('order_fills', (table) => {
      table.dropUnique(['tid']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
