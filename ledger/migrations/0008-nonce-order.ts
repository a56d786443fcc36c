import type { Migration } from './tables.js';

/**
 * The rule that a signer uses a nonce once, with the nonce first. Nonces are times, so that the rows of one commit are neighbours in
 * this index; ordered by signer, each maker's row changed a page of its own, and every commit wrote all of them.
 */
export const nonceOrder: Migration = {
  name: '0008-nonce-order',
  async up(db) {
    await db.schema.alterTable('order_log', (table) => {
      table.dropUnique(['signer', 'nonce']);
      table.unique(['nonce', 'signer']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
