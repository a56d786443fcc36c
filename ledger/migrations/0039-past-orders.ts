import type { Migration } from './tables.js';

/** Compacted orders are found by their client order ids. */
export const pastOrders: Migration = {
  name: '0039-past-orders',
  async up(db) {
    await db.schema.alterTable('folded_orders', (table) => {
      table.index(['cloid', 'maker'], 'folded_orders_cloid_index', { predicate: db.whereNotNull('cloid') });
    });
  },
  async down(db) {
    await db.schema.alterTable('folded_orders', (table) => table.dropIndex([], 'folded_orders_cloid_index'));
  },
};
