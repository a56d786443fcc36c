/** Blocks of the ledger log: as the chain had them when they were scanned, without gaps. */
import { firstRow, readRows } from '../db/rows.js';
import type { Stored } from '../db/tables.js';
import type { Queryable, ScannedBlock } from '../types.js';

/** The newest blocks, highest first, at most `limit`. */
export async function newestBlocks(q: Queryable, limit: number): Promise<ScannedBlock[]> {
  const rows = await q('blocks').orderBy('number', 'desc').limit(limit).select();
  return rows.map(toBlock);
}

/** The block that the ledger has scanned at this height, null for none. */
export async function blockAt(q: Queryable, number: number): Promise<ScannedBlock | null> {
  const row = await firstRow(q, 'blocks', { where: { number } });
  return row === undefined ? null : toBlock(row);
}

/** The blocks that the ledger has scanned from one height to another, lowest first. */
export async function blocksBetween(q: Queryable, from: number, to: number): Promise<ScannedBlock[]> {
  if (to < from) return [];
  return (await readRows(q, 'blocks', { between: ['number', from, to], orderBy: ['number'] })).map(toBlock);
}

/** The first block that was scanned, null before the first scan. */
export async function oldestBlock(q: Queryable): Promise<ScannedBlock | null> {
  const [row] = await readRows(q, 'blocks', { orderBy: ['number'], limit: 1 });
  return row === undefined ? null : toBlock(row);
}

const toBlock = (row: Stored<'blocks'>): ScannedBlock => ({
  number: row.number,
  hash: row.hash,
  parentHash: row.parent_hash,
  timestampSec: row.timestamp_sec,
});
