/** Rows of one partition of the outbox as a whole: their hash, how many there are, and their states. */
import { createHash } from 'node:crypto';
import type { Hex } from '../../core/types.js';
import { sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import type { Queryable, Transaction } from '../types.js';

const PAGE = 500;

/** Called with each page of rows that are to be detached; throws PartitionError `NOT_VERIFIED` for one that is not right. */
export type CheckRows = (rows: readonly Stored<'outbox'>[]) => Promise<void>;

/** Hashes all rows, column by column, in the order of their hashes. */
export async function hashRows(q: Queryable, table: string, check: CheckRows): Promise<{ rows: number; digest: Hex }> {
  const hash = createHash('sha256');
  let rows = 0;
  for (let after = { hash: '', sent_ms: 0 }; ;) {
    const page = await sendForRows<Stored<'outbox'>>(
      q,
      `select * from ${table} where (hash, sent_ms) > (?, ?) order by hash, sent_ms limit ${PAGE}`,
      [after.hash, after.sent_ms],
    );
    const last = page.at(-1);
    if (last === undefined) return { rows, digest: `0x${hash.digest('hex')}` };
    await check(page);
    for (const row of page) hash.update(`${JSON.stringify(columnsOf(row))}\n`);
    rows += page.length;
    after = last;
  }
}

const columnsOf = (row: Stored<'outbox'>): unknown[] => [
  ...[row.hash, row.tx_key, row.signer, row.to_address, row.raw, row.nonce, row.sent_ms, row.finished],
  ...[row.valid_until_sec, row.max_fee_wei],
];

/** How many rows a table has. */
export async function countRows(q: Queryable, table: string): Promise<number> {
  const [found] = await sendForRows<{ count: number }>(q, `select count(*) as count from ${table}`);
  return found?.count ?? 0;
}

/** How many rows there are in each state. */
export async function countStates(q: Queryable, table: string): Promise<string> {
  const rows = await sendForRows<{ finished: number; count: number }>(
    q,
    `select finished, count(*) as count from ${table} group by finished order by finished`,
  );
  return JSON.stringify(rows);
}

/** Of rows that both have, the second gets the state that the first says. */
export async function copyStates(tx: Transaction, from: string, to: string): Promise<void> {
  await tx.raw(
    `update :to: as own set finished = other.finished from :from: as other
      where other.hash = own.hash and other.sent_ms = own.sent_ms and other.finished <> own.finished`,
    { from, to },
  );
}
