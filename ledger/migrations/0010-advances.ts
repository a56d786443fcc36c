import type { Migration } from './tables.js';
import { amount } from '../db/columns.js';

/** What a claim holds beyond the requests of the present chain, after a reorganisation took requests back and left their settlement. */
export const advances: Migration = {
  name: '0010-advances',
  async up(db) {
    for (const name of ['claims', 'claim_changes']) {
      await db.schema.alterTable(name, (table) => {
        amount(db, table, 'advance_units').notNullable().defaultTo('0');
      });
    }
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
