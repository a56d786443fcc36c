import type { Migration } from './tables.js';

/** The client order id on each part of a fill: the order's own row is folded, and the gateway forgets closed orders. */
export const fillCloids: Migration = {
  name: '0012-fill-cloids',
  async up(db) {
    await db.schema.alterTable('order_fills', (table) => void table.text('cloid'));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
