import type { Knex } from 'knex';
import { amount } from '../db/columns.js';
import { amounts, ints, texts, type Migration } from './tables.js';

/** What transactions of the settler and the executor cost, as is known of posts, and what all of them cost by day and market. */
export const gas: Migration = {
  name: '0029-gas',
  async up(db) {
    for (const name of ['settlement_costs', 'order_costs']) {
      await db.schema.createTable(name, (table) => {
        texts(table, 'signer', 'hash', 'tx_key');
        table.text('markets').notNullable().defaultTo('');
        ints(table, 'nonce', 'block_number', 'gas_used', 'succeeded', 'seen_ms');
        void amount(db, table, 'fee_wei').notNullable();
        table.primary(['signer', 'nonce']);
      });
    }
    await beginAfterHistory(db, 'settlement_costs', 'settle:');
    await beginAfterHistory(db, 'order_costs', 'order:');
    await db.schema.alterTable('post_costs', (table) => table.text('markets').notNullable().defaultTo(''));
    await db.raw(`
    update post_costs set markets = coalesce((
      select string_agg(cast(own.market as text), ',' order by own.market)
      from (select distinct market from publications where publications.tx_key = post_costs.tx_key) as own), '')`);
    await db.schema.createTable('gas_days', (table) => {
      texts(table, 'role');
      ints(table, 'market', 'day_ms');
      amounts(db, table, 'gas', 'fee_wei');
      table.primary(['role', 'market', 'day_ms']);
      table.index(['market', 'day_ms']);
    });
    await db('meta').insert({ key: 'stale_market_data', value: '0029' }).onConflict('key').ignore();
  },
  async down() {
    throw new Error('What transactions cost is nowhere else; restore a backup or use another database');
  },
};

/**
 * What was mined before is not metered: nobody knows any more when it was paid, and it would count as paid on the day of the upgrade. The newest used
 * nonce of a signer gets a row without a cost, which the meter goes on from.
 */
async function beginAfterHistory(db: Knex, name: string, keyPrefix: string): Promise<void> {
  const signers = db('outbox').where('tx_key', 'like', `${keyPrefix}%`).distinct('signer');
  const used = await db('outbox')
    .where({ finished: 1 })
    .whereIn('signer', signers)
    .groupBy('signer')
    .select('signer')
    .max<{ signer: string; nonce: number }[]>({ nonce: 'nonce' });
  const nothing = { hash: '0x', tx_key: '', block_number: 0, gas_used: 0, fee_wei: '0', succeeded: 0, seen_ms: 0 };
  for (const { signer, nonce } of used) await db(name).insert({ ...nothing, signer, nonce });
}
