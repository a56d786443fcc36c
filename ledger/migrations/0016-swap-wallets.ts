/** Whose pending orders sell what, and the transactions of orders that reverted. */
import type { Migration } from './tables.js';
import { amounts, ints, texts } from './tables.js';

export const swapWallets: Migration = {
  name: '0016-swap-wallets',
  async up(db) {
    await db.schema.alterTable('swap_pending', (table) => {
      table.text('owner');
      table.text('sell_token');
      table.index(['owner', 'sell_token']);
    });
    const ofQuote = (column: string): string =>
      `(select quote.${column} from swap_orders placed join swap_quotes quote on quote.id = placed.quote_id where placed.id = swap_pending.order_id)`;
    await db.raw(`update swap_pending set owner = ${ofQuote('owner')}, sell_token = ${ofQuote('sell_token')}`);
    await db.schema.createTable('swap_reverts', (table) => {
      texts(table, 'tx_hash', 'order_id', 'owner');
      ints(table, 'block_number', 'time_ms');
      amounts(db, table, 'gas_used');
      table.primary(['tx_hash']);
      table.index(['owner', 'time_ms']);
      table.index(['time_ms']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
