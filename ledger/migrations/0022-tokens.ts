import { amount } from '../db/columns.js';
import type { Migration } from './tables.js';
import { ints, texts } from './tables.js';

/**
 * What was found wrong with tokens, and what tokens said of themselves when they were listed. Of markets that were listed before, nobody
 * knows any more at which block that was read, nor the symbol as it was.
 */
export const tokens: Migration = {
  name: '0022-tokens',
  async up(db) {
    await db.schema.createTable('token_findings', (table) => {
      ints(table, 'finding_no', 'generation', 'block_number', 'time_ms');
      texts(table, 'token', 'cause', 'state', 'code', 'message');
      table.bigInteger('agreed_block');
      amount(db, table, 'agreed_units');
      amount(db, table, 'difference_units');
      table.primary(['finding_no']);
      table.index(['token', 'cause', 'finding_no']);
    });
    await db.schema.alterTable('markets', (table) => {
      table.text('base_said');
      table.text('quote_said');
      table.bigInteger('read_block');
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
