/** Reconciliations that the operator asked for: rows of the operator log, carried out by the writer of the ledger log. */
import { z } from 'zod';
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { highest } from '../db/aggregates.js';
import { rebuildActivity } from '../accounts/rebuild.js';
import { readUnbackedClaim, unbackedMessage } from '../chain/claims.js';
import { insertHalt } from '../chain/halts.js';
import { readMarkets } from '../chain/markets.js';
import { restartCapital } from '../chain/operator-capital.js';
import { reverseGenerations, type ReversalRow } from '../chain/reversals.js';
import { rebuildMarketData } from '../market-data/rebuild.js';
import { rewindCompactedBook } from '../orders/rewinding.js';
import { appendOperatorRow } from './operator-log.js';
import type { Db, Queryable } from '../types.js';

const requestSchema = z.object({
  /** What to reverse; null when only the counters restart. */
  reversal: z
    .object({
      headGeneration: z.int().positive(),
      keptGeneration: z.int().nonnegative(),
      block: z.object({
        number: z.int().nonnegative(),
        hash: z.templateLiteral(['0x', z.string().regex(/^[0-9a-f]{64}$/)]),
        timestampMs: z.int().nonnegative(),
      }),
      depth: z.int().nonnegative(),
    })
    .nullable(),
  /** Also restarts the net_capital counters after it. */
  capitalOrigin: z.boolean(),
  /** Rebuilds what is derived from the fills (candles, positions, sums of accounts). */
  marketData: z.boolean().default(false),
});

/** What `curvebook reconcile` asks the watcher for. */
type ReconcileRequest = z.output<typeof requestSchema>;

/** `meta` key: the newest request that rebuilt what is derived from the fills. */
const DERIVED_BY = 'derived_by_operator_seq';

/** Appends the request to the operator log and returns its number. */
export async function requestReconcile(
  db: Db,
  request: z.input<typeof requestSchema>,
  timeMs: number,
): Promise<number> {
  const note = JSON.stringify(requestSchema.parse(request));
  const row = await appendOperatorRow(db, { timeMs, kind: 'reconcile', maker: null, note });
  return row.operatorSeq;
}

/** The newest request that was not carried out, null when there is none; older ones are void. */
export async function readReconcileRequest(q: Queryable): Promise<(ReconcileRequest & { operatorSeq: number }) | null> {
  const row = await q('operator_log').where({ kind: 'reconcile' }).orderBy('operator_seq', 'desc').first();
  if (row === undefined || row.operator_seq <= (await lastCarriedOut(q))) return null;
  return { operatorSeq: row.operator_seq, ...requestSchema.parse(JSON.parse(row.note)) };
}

/** Number of the newest request that was carried out, 0 before the first. */
export async function lastCarriedOut(q: Queryable): Promise<number> {
  const reversed = await highest(q('reversals'), 'operator_seq');
  const restarted = await highest(q('capital_origins'), 'operator_seq');
  const derived = await q<{ key: string; value: string }>('meta').where({ key: DERIVED_BY }).first('value');
  return Math.max(reversed ?? 0, restarted ?? 0, toSafeInt(derived?.value ?? '0'));
}

/**
 * Carries out a request, inside a transaction of the ledger log's writer. Where a claim is above its balance then, it also halts. Throws LedgerInvariantError when the ledger has changed since the
 * request.
 */
export async function carryOutReconcile(
  tx: Knex.Transaction,
  { reversal, capitalOrigin, marketData }: ReconcileRequest,
  by: { operatorSeq: number; timeMs: number; operator: Address },
): Promise<void> {
  // Before the reversal, because a reversal subtracts from the projections and needs them right.
  if (marketData) {
    await rebuildMarketData(tx);
    await rebuildActivity(tx);
    const value = String(by.operatorSeq);
    await tx('meta').insert({ key: DERIVED_BY, value }).onConflict('key').merge();
  }
  if (reversal !== null) {
    // Listings may be reversed, too.
    const markets = await readMarkets(tx);
    const reversed = await reverseGenerations(tx, reversal, by);
    await rewindCompactedBook(tx, markets);
    await haltIfUnbacked(tx, reversed, by);
  }
  if (capitalOrigin) await restartCapital(tx, by);
}

/**
 * What is left may have a claim without its balance whose halt was resumed, because it had been lowered in a block that is lost now. Scans look
 * at accounts that change, so it is looked for here.
 */
async function haltIfUnbacked(
  tx: Knex.Transaction,
  { generation }: ReversalRow,
  { timeMs, operator }: { timeMs: number; operator: Address },
): Promise<void> {
  const claim = await readUnbackedClaim(tx, operator);
  if (claim === null) return;
  await insertHalt(tx, { code: 'unbacked_claim', message: unbackedMessage(claim), timeMs, generation });
}
