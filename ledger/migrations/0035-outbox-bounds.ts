import type { Migration } from './tables.js';

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
