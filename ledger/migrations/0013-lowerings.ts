import type { Migration } from './tables.js';

/** Which settlement an act of the operator led to is asked each second, for each lowering that was ever asked for. */
export const lowerings: Migration = {
  name: '0013-lowerings',
  async up(db) {
    await db.schema.alterTable('settlements', (table) => table.index(['operator_seq']));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
