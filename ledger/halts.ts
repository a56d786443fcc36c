import type { Knex } from 'knex';
import type { Queryable } from './types.js';

/** A durable integrity halt. `generation` is the one that it was committed with, null when it was found between scans. */
export interface Halt {
  haltNo: number;
  code: string;
  message: string;
  generation: number | null;
  timeMs: number;
}

/** Makes a halt durable, inside a transaction of the ledger log's writer. It stands until the operator resumes or reconciles. */
export async function insertHalt(
  tx: Knex.Transaction,
  halt: { code: string; message: string; timeMs: number; generation?: number },
): Promise<void> {
  await tx('halts').insert({
    halt_no: (await lastHaltNo(tx)) + 1,
    time_ms: halt.timeMs,
    code: halt.code,
    message: halt.message,
    generation: halt.generation ?? null,
  });
}

/** The first halt that no resume and no reversal has cleared, which is the cause of those after it; null when there is none. */
export async function readHalt(q: Queryable): Promise<Halt | null> {
  const row = (await q('halts')
    .where('halt_no', '>', await lastClearedHalt(q))
    .orderBy('halt_no')
    .first()) as
    { halt_no: number; time_ms: number; code: string; message: string; generation: number | null } | undefined;
  if (row === undefined) return null;
  return { haltNo: row.halt_no, code: row.code, message: row.message, generation: row.generation, timeMs: row.time_ms };
}

/** Number of the newest halt that a resume or a reversal has put an end to, 0 for none. */
export async function lastClearedHalt(q: Queryable): Promise<number> {
  const resumed = (await q('operator_log').max({ last: 'clears_halt_no' }).first()) as { last: number | null };
  const reversed = (await q('reversals').max({ last: 'clears_halt_no' }).first()) as { last: number | null };
  return Math.max(resumed.last ?? 0, reversed.last ?? 0);
}

/** Number of the newest halt, 0 when there never was one. */
export async function lastHaltNo(q: Queryable): Promise<number> {
  const row = (await q('halts').max({ last: 'halt_no' }).first()) as { last: number | null };
  return row.last ?? 0;
}
