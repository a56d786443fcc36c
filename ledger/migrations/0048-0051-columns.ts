import { amount } from '../db/columns.js';
import type { Migration } from './tables.js';

const COSTS = ['post_costs', 'settlement_costs', 'order_costs'] as const;

/** Why a transaction reverted stands with what it cost, and the newest one of a signer is found without reading the others. */
export const reverts: Migration = {
  name: '0048-reverts',
  async up(db) {
    for (const name of COSTS) {
      await db.schema.alterTable(name, (table) => table.text('revert_reason').nullable());
      await db.raw(`create index ${name}_reverted on ${name} (signer, nonce) where succeeded = 0 and hash <> '0x'`);
    }
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** By how much a curve is worse than its book, which is not served while a taker can execute it. */
export const postedErrors: Migration = {
  name: '0050-posted-errors',
  async up(db) {
    await db.schema.alterTable('publications', (table) => {
      table.bigInteger('ask_error_ppb').nullable();
      table.bigInteger('bid_error_ppb').nullable();
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** An order may give a partner a part of what it buys, and have a hash; its fill says what the partner was sent. */
export const partners: Migration = {
  name: '0049-partners',
  async up(db) {
    await db.schema.alterTable('swap_quotes', (table) => {
      table.text('partner').nullable();
      table.integer('partner_bps').notNullable().defaultTo(0);
      table.text('app_data').nullable();
    });
    await db.schema.alterTable('settled_orders', (table) => {
      table.text('partner').nullable();
      amount(db, table, 'partner_units').nullable();
      table.text('app_data').nullable();
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** The compacted book may be taken back to an earlier generation, and then says which cuts it does not give any more. */
export const cutGeneration: Migration = {
  name: '0051-cut-generation',
  async up(db) {
    await db.schema.alterTable('fold_position', (table) => {
      table.bigInteger('cut_generation').notNullable().defaultTo(0);
    });
    await db.raw('update fold_position set cut_generation = generation');
  },
  async down() {
    throw new Error('What was folded is nowhere else; restore a backup or use another database');
  },
};
