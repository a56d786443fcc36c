import { PAID_GAS_MAX } from '../../core/settle-gas.js';
import { toSafeInt } from '../../core/amounts.js';
import type { Migration } from './tables.js';

/**
 * Each event of a withdrawal says what it counts towards a settlement, and each claim what was paid since its last one. Of events from before that
 * nothing is said, and their claims count as paid for.
 */
export const paidGas: Migration = {
  name: '0045-paid-gas',
  async up(db) {
    await db.schema.alterTable('custody_events', (table) => table.integer('paid_gas'));
    for (const name of ['claims', 'claim_changes'])
      await db.schema.alterTable(name, (table) => {
        table.integer('paid_gas').notNullable().defaultTo(toSafeInt(PAID_GAS_MAX));
      });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** A limit order waits for a price, up to 30 days, and takes no turn from orders that were quoted for now. */
export const limitOrders: Migration = {
  name: '0046-limit-orders',
  async up(db) {
    for (const name of ['swap_quotes', 'swap_pending'])
      await db.schema.alterTable(name, (table) => table.integer('is_limit').notNullable().defaultTo(0));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
