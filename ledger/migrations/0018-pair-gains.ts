import type { Migration } from './tables.js';
import { derivePairGains } from './pair-sums.js';
import { amounts, ints, texts } from './tables.js';

/** What fills brought the operator by maker and taker, from the first fill on. */
export const pairGains: Migration = {
  name: '0018-pair-gains',
  async up(db) {
    await db.schema.createTable('pair_gains', (table) => {
      texts(table, 'pair', 'maker', 'taker', 'token', 'loss_key');
      ints(table, 'fills', 'legs', 'generation');
      amounts(db, table, 'quote_units', 'gain_units');
      table.primary(['pair']);
      table.index(['token', 'loss_key']);
    });
    await derivePairGains(db, false);
  },
  async down() {
    throw new Error('Projections are rebuilt by no command; restore a backup or use another database');
  },
};
