import { amounts, ints, texts, type Migration } from './tables.js';

/** What mined transactions of signed orders cost, and what their fees were worth then. */
export const swapCosts: Migration = {
  name: '0036-swap-costs',
  async up(db) {
    await db.schema.createTable('swap_costs', (table) => {
      texts(table, 'tx_hash', 'order_id', 'token');
      ints(table, 'filled', 'time_ms');
      amounts(db, table, 'fee_wei', 'cost_wei');
      table.primary(['tx_hash']);
      table.index(['time_ms']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
