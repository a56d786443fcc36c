/** Small steps, one after the other. */
import type { Migration } from './tables.js';
import { amount } from '../db/columns.js';

/**
 * The rule that a signer uses a nonce once, with the nonce first. Nonces are times, so that the rows of one commit are neighbours in
 * this index; ordered by signer, each maker's row changed a page of its own, and every commit wrote all of them.
 */
export const nonceOrder: Migration = {
  name: '0008-nonce-order',
  async up(db) {
    await db.schema.alterTable('order_log', (table) => {
      table.dropUnique(['signer', 'nonce']);
      table.unique(['nonce', 'signer']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

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

/**
 * Trade ids need not be unique: makers deduplicate by them together with their address, nothing is looked up by one, and of their 53 bits
 * two may be equal by chance, which must not keep a fill from being booked. Being random they made each commit write a page of the index
 * per part of a fill, the more the longer the history.
 */
export const tradeIds: Migration = {
  name: '0011-trade-ids',
  async up(db) {
    await db.schema.alterTable('order_fills', (table) => {
      table.dropUnique(['tid']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** The client order id on each part of a fill: the order's own row is folded, and the gateway forgets closed orders. */
export const fillCloids: Migration = {
  name: '0012-fill-cloids',
  async up(db) {
    await db.schema.alterTable('order_fills', (table) => void table.text('cloid'));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** Which settlement an act of the operator led to is asked each second, for each lowering that was ever asked for. */
export const lowerings: Migration = {
  name: '0013-lowerings',
  async up(db) {
    await db.schema.alterTable('settlements', (table) => table.index(['operator_seq']));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

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
