import type { Migration } from './tables.js';
import { derivePairGains } from './pair-sums.js';

/** Swaps are found by their taker, signed orders by their transaction; sums by maker and taker name the owner of a signed order, not the settler. */
export const owners: Migration = {
  name: '0024-owners',
  async up(db) {
    await db.schema.alterTable('fills', (table) => table.index(['taker', 'block_number']));
    await db.schema.alterTable('settled_orders', (table) => {
      table.index(['tx_hash']);
      table.index(['owner', 'block_number']);
    });
    await db('pair_gains').delete();
    await derivePairGains(db, true);
  },
  async down() {
    throw new Error('Projections are rebuilt by no command; restore a backup or use another database');
  },
};
