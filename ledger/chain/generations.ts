/** Rows of `generations`: one per committed scan of the chain. Every other row of the ledger log names its generation. */
import { sendForRows } from '../db/dialects.js';
import type { GenerationRow, Queryable } from '../types.js';
import type { Knex } from 'knex';
import type { Stored } from '../db/tables.js';

/** The newest generation, null before the first. */
export async function lastGeneration(q: Queryable): Promise<GenerationRow | null> {
  const rows = await sendForRows<Stored<'generations'>>(
    q,
    'select * from generations order by generation desc limit 1',
  );
  return toGeneration(rows[0]);
}

/** One generation, null when it is not committed. */
export async function readGeneration(q: Queryable, generation: number): Promise<GenerationRow | null> {
  return toGeneration(await q('generations').where({ generation }).first());
}

function toGeneration(row: Stored<'generations'> | undefined): GenerationRow | null {
  if (row === undefined) return null;
  return {
    generation: row.generation,
    fromBlock: row.from_block,
    toBlock: row.to_block,
    blockHash: row.block_hash,
    blockTimestampMs: row.block_timestamp_ms,
    scannedMs: row.scanned_ms,
    observedHead: row.observed_head,
    observedHeadTimestampMs: row.observed_head_timestamp_ms,
  };
}

/**
 * `scan_times` has one row: when the chain was last scanned with success. A scan that finds no new block adds no generation, so only this
 * row shows that the watcher is alive.
 */
const SCAN_TIMES_ID = 1;

/** Notes a scan. Inside a transaction of the ledger log's writer. */
export async function noteScan(tx: Knex.Transaction, scannedMs: number): Promise<void> {
  await tx('scan_times').insert({ id: SCAN_TIMES_ID, scanned_ms: scannedMs }).onConflict('id').merge();
}

/** The newest scan that was noted, 0 before the first. Generations have their own times. */
export async function readNotedScan(q: Queryable): Promise<number> {
  const rows = await sendForRows<{ scanned_ms: number }>(q, 'select scanned_ms from scan_times');
  return rows[0]?.scanned_ms ?? 0;
}
