import type { Migration } from './tables.js';
import { amounts, ints, texts } from './tables.js';

/** What no stored book explains, what the operator decided of it, and from which block on a halt says that the chain is another. */
export const suspense: Migration = {
  name: '0020-suspense',
  async up(db) {
    await db.schema.createTable('suspense', (table) => {
      texts(table, 'item', 'kind', 'code', 'message', 'ref', 'tx_hash');
      ints(table, 'generation', 'block_number');
      table.bigInteger('market');
      table.bigInteger('seq');
      for (const name of ['maker', 'token', 'other_token']) table.text(name);
      amounts(db, table, 'units', 'other_units');
      table.primary(['item']);
      table.index(['generation']);
    });
    await db.schema.createTable('suspense_assignments', (table) => {
      texts(table, 'item', 'account');
      ints(table, 'generation', 'operator_seq');
      table.primary(['item']);
      table.index(['generation']);
    });
    await db.schema.alterTable('operator_log', (table) => void table.text('item'));
    await db.schema.alterTable('halts', (table) => void table.bigInteger('from_block'));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
