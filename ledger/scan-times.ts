/** When the chain was last scanned with success: a scan that finds no new block adds no generation, and is a sign of life all the same. */
import type { Knex } from 'knex';
import { sendForRows } from './dialects.js';
import type { Queryable } from './types.js';

/** There is one row: it is no log. */
const ID = 1;

/** Notes a scan. Inside a transaction of the ledger log's writer. */
export async function noteScan(tx: Knex.Transaction, scannedMs: number): Promise<void> {
  await tx('scan_times').insert({ id: ID, scanned_ms: scannedMs }).onConflict('id').merge();
}

/** The newest scan that was noted, 0 before the first. Generations have their own times. */
export async function readNotedScan(q: Queryable): Promise<number> {
  const rows = await sendForRows<{ scanned_ms: number }>(q, 'select scanned_ms from scan_times');
  return rows[0]?.scanned_ms ?? 0;
}
