import { texts, type Migration } from './tables.js';

/** Approvals by signature that orders brought along: calls of the token that is sold. */
export const swapPermits: Migration = {
  name: '0038-swap-permits',
  async up(db) {
    await db.schema.createTable('swap_permits', (table) => {
      texts(table, 'order_id', 'data');
      table.primary(['order_id']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
