import type { Knex } from 'knex';
import { amount } from '../db/columns.js';
import { amounts, ints, texts, type Migration } from './tables.js';

const FLOWS = ['fills', 'bought_base', 'bought_quote', 'sold_base', 'sold_quote'];
const BOOKS = ['curves', 'offered_ask', 'offered_bid'];
const FEES = ['fee_base', 'fee_quote', 'input_base', 'input_quote'];
const MARKOUTS = [1, 10, 60].flatMap((sec) => [`markout_${sec}`, `marked_${sec}`, `unmarked_${sec}`]);

/**
 * Sums by hour and day of what makers, takers and markets did, and the middle of each posted curve, which markouts are held against. `migrate`
 * derives what is there already.
 */
export const accounts: Migration = {
  name: '0028-accounts',
  async up(db) {
    await db.schema.alterTable('posts_seen', (table) => {
      void amount(db, table, 'middle_half_subticks').nullable();
      table.index(['market', 'block_timestamp_sec']);
    });
    await db.schema.alterTable('fills', (table) => table.index(['timestamp_ms']));
    const makers = [...FLOWS, 'parts', 'closed_quote', ...BOOKS, ...MARKOUTS];
    await createSums(db, 'maker_hours', { account: 'maker', period: 'hour_ms', sums: makers });
    const takers = [...FLOWS, ...FEES, 'slippage_quote', 'priced_quote'];
    await createSums(db, 'taker_days', { account: 'taker', period: 'day_ms', sums: takers });
    const markets = [...FLOWS, 'gain_quote', ...FEES, ...BOOKS];
    await createSums(db, 'market_hours', { account: null, period: 'hour_ms', sums: markets });
    await db('meta').insert({ key: 'stale_market_data', value: '0028' }).onConflict('key').ignore();
  },
  async down() {
    throw new Error('Projections are rebuilt by no command; restore a backup or use another database');
  },
};

interface Columns {
  account: string | null;
  period: string;
  sums: readonly string[];
}

async function createSums(db: Knex, name: string, { account, period, sums }: Columns): Promise<void> {
  const names = account === null ? [] : [account];
  await db.schema.createTable(name, (table) => {
    texts(table, ...names);
    ints(table, 'market', period);
    amounts(db, table, ...sums);
    table.primary([...names, 'market', period]);
    // A summary asks for a period of all accounts of a market.
    if (account !== null) table.index(['market', period]);
  });
}
