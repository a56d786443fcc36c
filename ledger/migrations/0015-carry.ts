import type { Knex } from 'knex';
import type { Migration } from './tables.js';

/**
 * What the carry rule needs: how many leading segments of each side a post named as exact (none before posts named any), and which post a
 * touch prolongs, through all touches in between, since raised volumes stand on that post alone.
 */
export const carry: Migration = {
  name: '0015-carry',
  async up(db) {
    await db.schema.alterTable('publications', (table) => {
      for (const name of ['exact_ask_knots', 'exact_bid_knots']) table.bigInteger(name).notNullable().defaultTo(0);
    });
    await db.schema.alterTable('posts_seen', (table) => table.bigInteger('posted_seq').notNullable().defaultTo(0));
    await namePosts(db);
  },
  async down() {
    throw new Error('Publications are never dropped; restore a backup or use another database');
  },
};

/** The newest full or partial post of the market up to each row, in one pass over the table. */
async function namePosts(db: Knex): Promise<void> {
  await db.raw(`
    update posts_seen set posted_seq = coalesce(newest.posted, posts_seen.seq)
    from (
      select market, seq,
        max(case when base_seq = seq then seq end) over (partition by market order by seq) as posted
      from posts_seen
    ) as newest
    where newest.market = posts_seen.market and newest.seq = posts_seen.seq`);
}
