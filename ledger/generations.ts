/** Rows of `generations`, the spine of the ledger log. */
import type { Hex } from '../core/types.js';
import { sendForRows } from './dialects.js';
import type { GenerationRow, Queryable } from './types.js';

export interface StoredGeneration {
  generation: number;
  from_block: number;
  to_block: number;
  block_hash: string;
  block_timestamp_ms: number;
  scanned_ms: number;
  observed_head: number;
  observed_head_timestamp_ms: number;
}

/** The newest generation, null before the first. */
export async function lastGeneration(q: Queryable): Promise<GenerationRow | null> {
  const rows = await sendForRows<StoredGeneration>(q, 'select * from generations order by generation desc limit 1');
  return toGeneration(rows[0]);
}

/** One generation, null when it is not committed. */
export async function readGeneration(q: Queryable, generation: number): Promise<GenerationRow | null> {
  return toGeneration((await q('generations').where({ generation }).first()) as StoredGeneration | undefined);
}

function toGeneration(row: StoredGeneration | undefined): GenerationRow | null {
  if (row === undefined) return null;
  return {
    generation: row.generation,
    fromBlock: row.from_block,
    toBlock: row.to_block,
    blockHash: row.block_hash as Hex,
    blockTimestampMs: row.block_timestamp_ms,
    scannedMs: row.scanned_ms,
    observedHead: row.observed_head,
    observedHeadTimestampMs: row.observed_head_timestamp_ms,
  };
}
