/** Small steps, one after the other. */
import { type Migration, amounts, ints, texts } from './tables.js';
import { derivePairGains } from './pair-sums.js';

/** When the chain was last scanned, and indexes by which the newest act of an executor is found. */

export const acts: Migration = {
  name: '0017-acts',
  async up(db) {
    await db.schema.createTable('scan_times', (table) => {
      ints(table, 'id', 'scanned_ms');
      table.primary(['id']);
    });
    for (const name of ['swap_attempts', 'swap_outcomes']) {
      await db.schema.alterTable(name, (table) => void table.index(['time_ms']));
    }
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/** What fills brought the operator by maker and taker, from the first fill on. */
export const pairGains: Migration = {
  name: '0018-pair-gains',
  async up(db) {
    await db.schema.createTable('pair_gains', (table) => {
      texts(table, 'pair', 'maker', 'taker', 'token', 'loss_key');
      ints(table, 'fills', 'legs', 'generation');
      amounts(db, table, 'quote_units', 'gain_units');
      table.primary(['pair']);
      table.index(['token', 'loss_key']);
    });
    await derivePairGains(db, false);
  },
  async down() {
    throw new Error('Projections are rebuilt by no command; restore a backup or use another database');
  },
};

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

/** Swaps are found by their taker, signed orders by their transaction; sums by maker and taker name the owner of a signed order, not the settler. */
export const owners: Migration = {
  name: '0024-owners',
  async up(db) {
    await db.schema.alterTable('fills', (table) => table.index(['taker', 'block_number']));
    await db.schema.alterTable('settled_orders', (table) => {
      table.index(['tx_hash']);
      table.index(['owner', 'block_number']);
    });
    await db('pair_gains').delete();
    await derivePairGains(db, true);
  },
  async down() {
    throw new Error('Projections are rebuilt by no command; restore a backup or use another database');
  },
};

/** Whether executors can pay for transactions. */
export const swapExecutors: Migration = {
  name: '0025-swap-executors',
  async up(db) {
    await db.schema.createTable('swap_executors', (table) => {
      texts(table, 'signer');
      ints(table, 'funded', 'time_ms');
      table.primary(['signer']);
    });
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

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
