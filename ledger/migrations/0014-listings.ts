import type { Migration } from './tables.js';

/** Which market a delisting or its end names, as a number of its own rather than in the note, which is for what the operator writes. */
export const listings: Migration = {
  name: '0014-listings',
  async up(db) {
    await db.schema.alterTable('operator_log', (table) => void table.bigInteger('market'));
    await db.raw("update operator_log set market = cast(note as bigint), note = '' where kind in ('delist', 'relist')");
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
