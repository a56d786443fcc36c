import type { Knex } from 'knex';
import type { Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A durable integrity halt. `generation` is the one that it was committed with, null when it was found between scans. */
export interface Halt {
  haltNo: number;
  code: string;
  message: string;
  generation: number | null;
  /** `canonical_mismatch` only: the first block of ours that the chain no longer has, as far as was seen. */
  fromBlock: number | null;
  timeMs: number;
}

/**
 * Halts that stop quotes, posts and settlements, and not the reading of the chain: what they found is booked as it was, what nothing explains
 * to nobody. Every other one stops that, too, for the ledger can't tell what comes after it.
 */
export const FOLLOWED_HALTS: ReadonlySet<string> = new Set([
  'unexplained_curve',
  'unexplained_raise',
  'unexplained_settlement',
  'unexplained_execution',
  'carry_mismatch',
  'missing_depth',
  'operator_loss',
  'unbacked_claim',
]);

/** Makes a halt durable, inside a transaction of the ledger log's writer. It stands until the operator resumes or reconciles. */
export async function insertHalt(
  tx: Knex.Transaction,
  halt: { code: string; message: string; timeMs: number; generation?: number; fromBlock?: number },
): Promise<void> {
  // While the chain is followed, the same would be found with every block.
  if (FOLLOWED_HALTS.has(halt.code) && (await readHalts(tx)).some(({ code }) => code === halt.code)) return;
  await tx('halts').insert({
    halt_no: (await lastHaltNo(tx)) + 1,
    time_ms: halt.timeMs,
    code: halt.code,
    message: halt.message,
    generation: halt.generation ?? null,
    from_block: halt.fromBlock ?? null,
  });
}

/**
 * The halt that stands: of those that no resume and no reversal has cleared the first that stops the reading of the chain, else the first,
 * which is the cause of those after it. Null when there is none.
 */
export async function readHalt(q: Queryable): Promise<Halt | null> {
  const halts = await readHalts(q);
  return halts.find(({ code }) => !FOLLOWED_HALTS.has(code)) ?? halts[0] ?? null;
}

/**
 * Every halt that no resume and no reversal has cleared, oldest first. A resume clears all that were durable then; a reversal those of them that
 * were found between scans, or by a generation that it took back.
 */
export async function readHalts(q: Queryable): Promise<Halt[]> {
  const resumed = (await q('operator_log').max({ last: 'clears_halt_no' }).first()) as { last: number | null };
  const rows = await q('halts')
    .where('halt_no', '>', resumed.last ?? 0)
    .orderBy('halt_no')
    .select();
  if (rows.length === 0) return [];
  const reversals = await q('reversals')
    .where('clears_halt_no', '>=', rows[0]!.halt_no)
    .select<{ kept_generation: number; clears_halt_no: number }[]>('kept_generation', 'clears_halt_no');
  const isOver = (halt: Stored<'halts'>): boolean =>
    reversals.some(
      (one) =>
        halt.halt_no <= one.clears_halt_no && (halt.generation === null || halt.generation > one.kept_generation),
    );
  return rows
    .filter((halt) => !isOver(halt))
    .map(({ halt_no: haltNo, time_ms: timeMs, code, message, generation, from_block: fromBlock }) => ({
      ...{ haltNo, code, message, generation, fromBlock, timeMs },
    }));
}

/** First block that the chain has lost, as far as the watcher saw, while nobody reconciled; null for none. */
export async function readLostFrom(q: Queryable): Promise<number | null> {
  const blocks = (await readHalts(q)).flatMap(({ fromBlock }) => (fromBlock === null ? [] : [fromBlock]));
  return blocks.length === 0 ? null : Math.min(...blocks);
}

/** Number of the newest halt, 0 when there never was one. */
export async function lastHaltNo(q: Queryable): Promise<number> {
  const row = (await q('halts').max({ last: 'halt_no' }).first()) as { last: number | null };
  return row.last ?? 0;
}
