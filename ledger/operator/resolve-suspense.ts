/** Explains what is in suspense by what was stored since: publications and settlements that were imported from an archive. */
import { fromColumn } from '../db/columns.js';
import { isPrepared, readPostSeen, readPublication } from '../publications/publication-log.js';
import { rereadFrom, type ReversalRequest } from '../chain/reversals.js';
import { readCustodyEvent } from '../chain/claims.js';
import { explainSettlement } from '../settlements/settlement-log.js';
import { readSuspense, type SuspenseRow } from '../chain/suspense.js';
import type { Db, Queryable } from '../types.js';

/**
 * The reversal by which the chain is read again from the first item in suspense that is now explained, so that its fills are attributed to
 * their books; null when nothing in suspense can be explained. Call it after publications or settlements were imported, in no transaction.
 */
export async function suspenseExplained(db: Db): Promise<ReversalRequest | null> {
  let first: number | null = null;
  for (const row of await readSuspense(db.knex, { open: false })) {
    if (first !== null && row.blockNumber >= first) continue;
    if (await isExplained(db.knex, row)) first = row.blockNumber;
  }
  return first === null ? null : rereadFrom(db.knex, first);
}

async function isExplained(q: Queryable, row: SuspenseRow): Promise<boolean> {
  if (row.kind === 'settlement') return isSettlementKnown(q, row);
  if (row.kind === 'execution' || row.market === null || row.seq === null) return false;
  if (row.code !== 'unexplained_curve') return false;
  const seq = row.kind === 'curve' ? row.seq : await curveHit(q, row.market, row.seq);
  const [publication, seen] = [await readPublication(q, row.market, seq), await readPostSeen(q, row.market, seq)];
  return publication !== null && seen !== null && isPrepared(publication, seen);
}

async function curveHit(q: Queryable, market: number, fillSeq: number): Promise<number> {
  const row = await q('fills')
    .where({ market, fill_seq: fillSeq })
    .first<{ curve_seq: number } | undefined>('curve_seq');
  return row?.curve_seq ?? 0;
}

async function isSettlementKnown(q: Queryable, row: SuspenseRow): Promise<boolean> {
  const event = await readCustodyEvent(q, row.ref);
  if (event === undefined) return false;
  const { maker, token, amount_units: units, basis, tx_hash } = event;
  const amounts = { amountUnits: fromColumn(units), basis: basis === null ? null : fromColumn(basis) };
  return (await explainSettlement(q, { maker, token, ...amounts, txHash: tx_hash })) !== null;
}
