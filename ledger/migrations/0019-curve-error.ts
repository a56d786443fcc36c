import type { Migration } from './tables.js';

/** The most error that each curve could have: depth that it could not follow so closely was left out. Zero for publications without a limit. */
export const curveError: Migration = {
  name: '0019-curve-error',
  async up(db) {
    await db.schema.alterTable('publications', (table) =>
      table.bigInteger('max_error_milli_bps').notNullable().defaultTo(0),
    );
  },
  async down() {
    throw new Error('Publications are never dropped; restore a backup or use another database');
  },
};
