import type { Migration } from './tables.js';
import { ints, texts } from './tables.js';

/** A market's numbers can be given back by its owner, so that two curves may have the same one: each belongs to the era between two resets. */
export const seqResets: Migration = {
  name: '0026-seq-resets',
  async up(db) {
    await db.schema.createTable('seq_resets', (table) => {
      ints(table, 'market', 'era', 'seq', 'fill_seq', 'block_number', 'log_index', 'generation');
      texts(table, 'tx_hash');
      table.primary(['market', 'era']);
    });
    await db.schema.alterTable('posts_seen', (table) => table.bigInteger('era').notNullable().defaultTo(0));
    await db.schema.alterTable('posts_seen', (table) => table.dropPrimary());
    await db.schema.alterTable('posts_seen', (table) => {
      table.primary(['market', 'era', 'seq']);
      table.index(['market', 'seq']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
