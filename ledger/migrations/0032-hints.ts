/** PostgreSQL tells other processes that a log has grown; what was added they read themselves. */
import type { Migration } from './tables.js';

/** Tables whose new rows somebody waits for, and what is hinted at. */
export const HINTED_TABLES = {
  generations: 'ledger',
  halts: 'ledger',
  reversals: 'ledger',
  custody_events: 'claims',
  order_log: 'orders',
  operator_log: 'operator',
  swap_orders: 'swaps',
} as const;

/**
 * By triggers, so that a hint is part of the transaction that appends, whoever writes it, and is sent when that commits. PostgreSQL sends
 * equal ones of a transaction once. SQLite has nothing alike, and followers there poll.
 */
export const hints: Migration = {
  name: '0032-hints',
  async up(db) {
    if ((db.client as { dialect: string }).dialect !== 'postgresql') return;
    await db.raw(`create function hint_at_rows() returns trigger language plpgsql as $$
      begin
        perform pg_notify('curvebook_' || md5(tg_table_schema) || '_' || tg_argv[0], '');
        return null;
      end $$`);
    for (const [table, topic] of Object.entries(HINTED_TABLES)) {
      await db.raw(
        `create trigger hint_at_rows after insert on ?? for each statement execute procedure hint_at_rows('${topic}')`,
        [table],
      );
    }
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
