import { ints, texts, type Migration } from './tables.js';

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
