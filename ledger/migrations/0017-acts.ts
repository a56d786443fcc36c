/** When the chain was last scanned, and indexes by which the newest act of an executor is found. */
import type { Migration } from './tables.js';
import { ints } from './tables.js';

export const acts: Migration = {
  name: '0017-acts',
  async up(db) {
    await db.schema.createTable('scan_times', (table) => {
      ints(table, 'id', 'scanned_ms');
      table.primary(['id']);
    });
    for (const name of ['swap_attempts', 'swap_outcomes']) {
      await db.schema.alterTable(name, (table) => void table.index(['time_ms']));
    }
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
