import type { Knex } from 'knex';
import { isSqlite } from '../db/dialects.js';
import { amounts, ints, texts, type Migration } from './tables.js';

/**
 * What fees of signed orders were worth when they were filled. What their transactions cost is in `order_costs` alone, with the transfers that took
 * the place of some; and an attempt says whether our curve is a part of its route, so that gas for pools alone is no market's.
 */
export const swapFees: Migration = {
  name: '0040-swap-fees',
  async up(db) {
    await db.schema.createTable('swap_fees', (table) => {
      texts(table, 'tx_hash', 'order_id', 'token');
      ints(table, 'time_ms');
      amounts(db, table, 'fee_wei');
      table.primary(['tx_hash']);
    });
    await carryOver(db);
    await db.schema.dropTable('swap_costs');
    await db.schema.alterTable('swap_attempts', (table) => table.bigInteger('on_curve').notNullable().defaultTo(1));
    await db.schema.alterTable('order_costs', (table) => table.index(['seen_ms']));
    await db.schema.alterTable('outbox', (table) => table.index(['signer', 'nonce']));
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};

/**
 * Fees as they are; costs that the meter of all transactions has not come to are noted by it. Of what it has come to, the reverts that were not held
 * against their owners yet are from now on: nothing comes back to them.
 */
async function carryOver(db: Knex): Promise<void> {
  await db.raw(`
    insert into swap_fees (tx_hash, order_id, token, time_ms, fee_wei)
    select tx_hash, order_id, token, time_ms, fee_wei from swap_costs where filled = 1`);
  await db.raw(`
    insert into swap_reverts (tx_hash, order_id, owner, block_number, time_ms, gas_used)
    select cost.hash, placed.id, placed.owner, cost.block_number, cost.seen_ms, cast(cost.gas_used as ${isSqlite(db) ? 'text' : 'numeric'})
    from order_costs as cost
    join swap_attempts as attempt on attempt.tx_key = cost.tx_key
    join swap_orders as placed on placed.id = attempt.order_id
    where cost.succeeded = 0 and cost.gas_used > 0
    on conflict (tx_hash) do nothing`);
}
