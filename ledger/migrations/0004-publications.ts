import type { Knex } from 'knex';
import { amount } from '../db/columns.js';
import type { Migration } from './tables.js';

/**
 * What a publication needs to be rebuilt to the byte: its kind, the block that it names, the makers that its cut left out, the knots of
 * each side and the version of the compression; and what its transactions cost.
 */
export const publicationRecords: Migration = {
  name: '0004-publications',
  async up(db: Knex) {
    await db.schema.alterTable('publications', (table) => {
      table.text('kind').notNullable().defaultTo('full');
      table.text('excluded').notNullable().defaultTo('[]');
      table.text('block_hash').notNullable().defaultTo('0x');
      for (const name of ['block_number', 'ask_knots', 'bid_knots', 'compression'])
        table.bigInteger(name).notNullable().defaultTo(0);
    });
    await db('publications').whereRaw('base_seq <> seq').update({ kind: 'touch' });
    await db.schema.alterTable('outbox', (table) => table.index(['tx_key']));
    await db.schema.createTable('post_costs', (table) => {
      for (const name of ['hash', 'signer', 'tx_key']) table.text(name).notNullable();
      for (const name of ['nonce', 'block_number', 'gas_used', 'succeeded', 'seen_ms'])
        table.bigInteger(name).notNullable();
      amount(db, table, 'fee_wei').notNullable();
      table.primary(['signer', 'nonce']);
      table.index(['signer', 'seen_ms']);
    });
  },
  async down() {
    throw new Error('Publications are never dropped; restore a backup or use another database');
  },
};
