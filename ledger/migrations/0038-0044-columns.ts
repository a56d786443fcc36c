import { texts, type Migration } from './tables.js';

/** Approvals by signature that orders brought along: calls of the token that is sold. */
export const swapPermits: Migration = {
  name: '0038-swap-permits',
  async up(db) {
    await db.schema.createTable('swap_permits', (table) => {
      texts(table, 'order_id', 'data');
      table.primary(['order_id']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** Compacted orders are found by their client order ids. */
export const pastOrders: Migration = {
  name: '0039-past-orders',
  async up(db) {
    await db.schema.alterTable('folded_orders', (table) => {
      table.index(['cloid', 'maker'], 'folded_orders_cloid_index', { predicate: db.whereNotNull('cloid') });
    });
  },
  async down(db) {
    await db.schema.alterTable('folded_orders', (table) => table.dropIndex([], 'folded_orders_cloid_index'));
  },
};

/** Transactions of orders of which no endpoint had a receipt are few among many, and asked for again. */
export const unknownCosts: Migration = {
  name: '0041-unknown-costs',
  async up(db) {
    await db.raw("create index order_costs_unknown on order_costs (signer, nonce) where hash = '0x'");
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/**
 * A fill says for whom it is booked, and needs no rows of its postings and legs; those that are there keep theirs. Fills are found by their generation.
 */
export const compactFills: Migration = {
  name: '0042-compact-fills',
  async up(db) {
    await db.schema.alterTable('fills', (table) => {
      table.text('booked_by');
      table.index(['generation']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/**
 * A maker's parts of fills are read by their time, of which an index is kept; the generations of a chain have the same order. An index that begins with an
 * address takes more than half of what the row itself does.
 */
export const oneIndexLess: Migration = {
  name: '0043-one-index-less',
  async up(db) {
    await db.schema.alterTable('order_fills', (table) => table.dropIndex(['maker', 'generation']));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** Requests of a claim are counted from the newest one on, and posts and settlements without a receipt are few among many. */
export const boundedCounts: Migration = {
  name: '0044-bounded-counts',
  async up(db) {
    await db.schema.alterTable('custody_events', (table) => {
      table.index(['maker', 'token', 'block_number', 'log_index']);
      table.dropIndex(['maker', 'token']);
    });
    for (const costs of ['post_costs', 'settlement_costs'])
      await db.raw(`create index ${costs}_unknown on ${costs} (signer, nonce) where hash = '0x'`);
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
