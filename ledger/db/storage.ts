/** How large the database is, and what makes it grow. Bytes and rows are plain numbers, since they are no amounts of money. */
import { toSafeInt } from '../../core/amounts.js';
import { sendForRows } from './dialects.js';
import type { Db, Queryable } from '../types.js';

/** One kind of thing that the logs consist of. */
interface StorageShare {
  name: 'order rows' | 'publications' | 'scans' | 'fills' | 'checkpoints' | 'signed orders';
  /** How many there are, and how many of them came in the last 24 hours. */
  count: number;
  lastDay: number;
  /** Bytes of all tables that hold them, including indexes, divided by their number; 0 while there are none. */
  bytesEach: number;
  /** What the last 24 hours added: `lastDay` times `bytesEach`. Order rows are removed later by compaction, the others stay. */
  bytesLastDay: number;
}

export interface StorageReport {
  /** Of the whole database, free pages included. */
  bytes: number;
  shares: StorageShare[];
  /** Bytes of all tables in no share, including indexes: deposits and withdrawals, accounts, halts, orphans. */
  otherBytes: number;
}

const DAY_MS = 86_400_000;

/** What each share consists of, and by which table and time it is counted. */
export const SHARES: readonly {
  name: StorageShare['name'];
  tables: readonly string[];
  counted: string;
  timeMs: string;
}[] = [
  { name: 'order rows', tables: ['order_log'], counted: 'order_log', timeMs: 'time_ms' },
  {
    name: 'publications',
    tables: ['publications', 'outbox', 'post_costs', 'gas_days', 'posts_seen', 'seq_resets'],
    counted: 'publications',
    timeMs: 'prepared_ms',
  },
  { name: 'scans', tables: ['generations', 'blocks'], counted: 'generations', timeMs: 'scanned_ms' },
  {
    name: 'fills',
    tables: [
      'fills',
      'fill_legs',
      'order_fills',
      'market_progress',
      'snapshots',
      'entries',
      'balance_changes',
      'folded_orders',
      'candles',
      'maker_positions',
      'maker_hours',
      'taker_days',
      'market_hours',
    ],
    counted: 'fills',
    timeMs: 'timestamp_ms',
  },
  {
    name: 'checkpoints',
    tables: ['checkpoints', 'checkpoint_rows'],
    counted: 'checkpoints',
    timeMs: 'timestamp_ms',
  },
  {
    name: 'signed orders',
    tables: [
      'swap_quotes',
      'order_costs',
      'swap_orders',
      'swap_permits',
      'swap_pending',
      'swap_attempts',
      'swap_outcomes',
      'swap_fees',
      'swap_cancellations',
      'swap_nonces',
      'settled_orders',
    ],
    counted: 'swap_orders',
    timeMs: 'created_ms',
  },
];

/** Size of the whole database; cheap enough to be asked at each scrape. */
export async function databaseBytes(db: Db): Promise<number> {
  const sql =
    db.kind === 'pg'
      ? 'select pg_database_size(current_database()) as bytes'
      : 'select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()';
  const [row] = await sendForRows<{ bytes: number }>(db.reads, sql);
  return row?.bytes ?? 0;
}

/** Reads every table's size and counts rows, which takes a while on a large database: for a report, not for a request. */
export async function readStorage(db: Db, nowMs: number): Promise<StorageReport> {
  const sizes = await tableBytes(db);
  const shares: StorageShare[] = [];
  for (const { name, tables, counted, timeMs } of SHARES) {
    const count = await countRows(db.reads, counted);
    const lastDay = await countRows(db.reads, counted, [timeMs, nowMs - DAY_MS]);
    const bytes = tables.reduce((sum, table) => sum + (sizes.get(table) ?? 0), 0);
    const bytesEach = count === 0 ? 0 : Math.round(bytes / count);
    shares.push({ name, count, lastDay, bytesEach, bytesLastDay: lastDay * bytesEach });
  }
  const shared = new Set(SHARES.flatMap(({ tables }) => tables));
  const otherBytes = [...sizes].reduce((sum, [table, bytes]) => (shared.has(table) ? sum : sum + bytes), 0);
  return { bytes: await databaseBytes(db), shares, otherBytes };
}

async function countRows(q: Queryable, table: string, [column, since]: [string, number] = ['', 0]): Promise<number> {
  const query = q(table).count({ count: '*' });
  if (column !== '') void query.where(column, '>', since);
  const row = await query.first();
  return toSafeInt(BigInt(row?.['count'] ?? 0));
}

/** Bytes by table, its indexes and partitions included. */
export async function tableBytes(db: Db): Promise<Map<string, number>> {
  const sql =
    db.kind === 'pg'
      ? `select coalesce(whole.relname, own.relname) as name, sum(pg_total_relation_size(own.oid))::bigint as bytes from pg_class as own
         left join pg_class as whole on whole.oid = pg_partition_root(own.oid)
         where own.relkind = 'r' and own.relnamespace = current_schema()::regnamespace group by 1`
      : `select m.tbl_name as name, sum(s.pgsize) as bytes from dbstat s join sqlite_master m on m.name = s.name
         where s.aggregate = true group by m.tbl_name`;
  return new Map(
    (await sendForRows<{ name: string; bytes: number }>(db.reads, sql)).map((row) => [row.name, row.bytes]),
  );
}
