/** Explains what is in suspense by what was stored since: publications and settlements that were imported from an archive. */
import { toSafeInt } from '../core/amounts.js';
import type { Address, Hex } from '../core/types.js';
import { fromColumn } from './columns.js';
import { isPrepared, readPostSeen, readPublication } from './publication-log.js';
import { requestReconcile } from './reconcile-requests.js';
import { rereadFrom } from './reversals.js';
import { explainSettlement } from './settlement-log.js';
import { readSuspense, type SuspenseRow } from './suspense.js';
import type { Db, Queryable } from './types.js';

/**
 * Asks the watcher to read the chain anew from the first item on that what is stored now explains, so that its fills are attributed to their
 * books. Call it after publications or settlements were imported, in no transaction; carrying it out takes a running watcher. Returns the
 * number of the operator's act, null when nothing in suspense can be explained.
 */
export async function resolveSuspense(db: Db, timeMs: number): Promise<number | null> {
  let first: number | null = null;
  for (const row of await readSuspense(db.knex, { open: false })) {
    if (first !== null && row.blockNumber >= first) continue;
    if (await isExplained(db.knex, row)) first = row.blockNumber;
  }
  const reversal = first === null ? null : await rereadFrom(db.knex, first);
  return reversal === null ? null : requestReconcile(db, { reversal, capitalOrigin: false }, timeMs);
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
  const [, txHash, logIndex] = row.ref.split(':');
  const event = (await q('custody_events')
    .where({ tx_hash: txHash, log_index: toSafeInt(BigInt(logIndex ?? '')) })
    .first()) as
    { maker: Address; token: Address; amount_units: string; basis: string | null; tx_hash: Hex } | undefined;
  if (event === undefined) return false;
  const { maker, token, amount_units: units, basis, tx_hash } = event;
  const amounts = { amountUnits: fromColumn(units), basis: basis === null ? null : fromColumn(basis) };
  return (await explainSettlement(q, { maker, token, ...amounts, txHash: tx_hash })) !== null;
}
