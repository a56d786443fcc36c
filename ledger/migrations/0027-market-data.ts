import { amount } from '../db/columns.js';
import { amounts, ints, texts, type Migration } from './tables.js';

/**
 * Candles and positions by maker, and what each part of a fill was paid, what of it its maker earned by closing, and when. `migrate` derives
 * what is there already.
 */
export const marketData: Migration = {
  name: '0027-market-data',
  async up(db) {
    await db.schema.createTable('candles', (table) => {
      ints(table, 'market', 'interval_no', 'open_ms', 'trades');
      amounts(db, table, 'open_ticks', 'high_ticks', 'low_ticks', 'close_ticks', 'base_units', 'quote_units');
      table.primary(['market', 'interval_no', 'open_ms']);
    });
    await db.schema.createTable('maker_positions', (table) => {
      texts(table, 'maker');
      ints(table, 'market', 'parts', 'generation');
      amounts(db, table, 'bought_base_units', 'bought_quote_units', 'sold_base_units', 'sold_quote_units');
      amounts(db, table, 'realised_units');
      table.primary(['maker', 'market']);
      table.index(['market']);
    });
    await db.schema.alterTable('order_fills', (table) => {
      for (const name of ['quote_units', 'closed_units']) amount(db, table, name).notNullable().defaultTo('0');
      table.bigInteger('timestamp_ms').notNullable().defaultTo(0);
    });
    await db.schema.alterTable('order_fills', (table) => {
      table.index(['maker', 'timestamp_ms']);
      table.index(['maker', 'market', 'fill_seq']);
    });
    await db.schema.alterTable('fills', (table) => table.index(['taker', 'market', 'fill_seq']));
    await db('meta').insert({ key: 'stale_market_data', value: '0027' });
  },
  async down() {
    throw new Error('Projections are rebuilt by no command; restore a backup or use another database');
  },
};
