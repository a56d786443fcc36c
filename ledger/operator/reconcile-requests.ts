/** Reconciliations that the operator asked for: rows of the operator log, carried out by the writer of the ledger log. */
import { z } from 'zod';
import type { Hex } from '../../core/types.js';
import { appendOperatorRow } from './operator-log.js';
import type { Db, Queryable } from '../types.js';

const requestSchema = z.object({
  /** What to take back; null when only the counters start again. */
  reversal: z
    .object({
      headGeneration: z.int().positive(),
      keptGeneration: z.int().nonnegative(),
      block: z.object({
        number: z.int().nonnegative(),
        hash: z
          .string()
          .regex(/^0x[0-9a-f]{64}$/)
          .transform((hash) => hash as Hex),
        timestampMs: z.int().nonnegative(),
      }),
      depth: z.int().nonnegative(),
    })
    .nullable(),
  /** Lets the net_capital counters start again behind it. */
  capitalOrigin: z.boolean(),
});

/** What `curvebook reconcile` asks the watcher for. */
export type ReconcileRequest = z.output<typeof requestSchema>;

/** Appends the request to the operator log and returns its number. */
export async function requestReconcile(db: Db, request: ReconcileRequest, timeMs: number): Promise<number> {
  const note = JSON.stringify(requestSchema.parse(request));
  const row = await appendOperatorRow(db, { timeMs, kind: 'reconcile', maker: null, note });
  return row.operatorSeq;
}

/** The newest request that was not carried out, null when there is none; older ones are void. */
export async function readReconcileRequest(q: Queryable): Promise<(ReconcileRequest & { operatorSeq: number }) | null> {
  const row = (await q('operator_log').where({ kind: 'reconcile' }).orderBy('operator_seq', 'desc').first()) as
    { operator_seq: number; note: string } | undefined;
  if (row === undefined || row.operator_seq <= (await lastCarriedOut(q))) return null;
  return { operatorSeq: row.operator_seq, ...requestSchema.parse(JSON.parse(row.note)) };
}

/** Number of the newest request that was carried out, 0 before the first. */
export async function lastCarriedOut(q: Queryable): Promise<number> {
  const reversed = (await q('reversals').max({ last: 'operator_seq' }).first()) as { last: number | null };
  const restarted = (await q('capital_origins').max({ last: 'operator_seq' }).first()) as { last: number | null };
  return Math.max(reversed.last ?? 0, restarted.last ?? 0);
}
