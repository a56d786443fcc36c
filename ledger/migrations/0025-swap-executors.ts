import { ints, texts, type Migration } from './tables.js';

/** Whether executors can pay for transactions. */
export const swapExecutors: Migration = {
  name: '0025-swap-executors',
  async up(db) {
    await db.schema.createTable('swap_executors', (table) => {
      texts(table, 'signer');
      ints(table, 'funded', 'time_ms');
      table.primary(['signer']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
