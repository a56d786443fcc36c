import type { Knex } from 'knex';
import type { Queryable } from '../types.js';
import { highest } from '../db/aggregates.js';
import { sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';

/** A durable halt because of a contradiction. `generation` is the one that it was committed with, null when it was found between scans. */
export interface Halt {
  haltNo: number;
  code: string;
  message: string;
  generation: number | null;
  /** `canonical_mismatch` only: the first scanned block that the chain no longer has, as far as the watcher saw. */
  fromBlock: number | null;
  timeMs: number;
}

/**
 * Halts that stop quotes, posts and settlements, but not the reading of the chain: what they found is booked, and what nothing explains
 * goes to the suspense account. Every other halt stops reading, too, because the ledger can't book what comes after it.
 */
export const FOLLOWED_HALTS: ReadonlySet<string> = new Set([
  'unexplained_curve',
  'unexplained_raise',
  'unexplained_settlement',
  'unexplained_execution',
  'carry_mismatch',
  'missing_depth',
  'uncovered_fill',
  'operator_loss',
  'unbacked_claim',
]);

/** Makes a halt durable, inside a transaction of the ledger log's writer. It stands until the operator resumes or reconciles. */
export async function insertHalt(
  tx: Knex.Transaction,
  halt: { code: string; message: string; timeMs: number; generation?: number; fromBlock?: number },
): Promise<void> {
  // While the chain is read on, every block would repeat the same finding.
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
 * The halt in effect: of those that no resume and no reversal has cleared, the first that stops the reading of the chain, else the first of
 * all, which is the cause of later ones. Null when there is none.
 */
export async function readHalt(q: Queryable): Promise<Halt | null> {
  const halts = await readHalts(q);
  return halts.find(({ code }) => !FOLLOWED_HALTS.has(code)) ?? halts[0] ?? null;
}

/**
 * Every halt that no resume and no reversal has cleared, oldest first. A resume clears all that were durable at that time; a reversal
 * clears those that were found between scans, or by a generation that it reversed.
 */
export async function readHalts(q: Queryable): Promise<Halt[]> {
  const rows = await sendForRows<Stored<'halts'>>(q, STANDING_HALTS);
  return rows.map(({ halt_no: haltNo, time_ms: timeMs, code, message, generation, from_block: fromBlock }) => ({
    ...{ haltNo, code, message, generation, fromBlock, timeMs },
  }));
}

/** Plain SQL: every role runs this query often, and building it takes longer than running it. */
const STANDING_HALTS = `select halt_no, time_ms, code, message, generation, from_block from halts
  where halt_no > coalesce((select max(clears_halt_no) from operator_log), 0) and not exists (
    select 1 from reversals where reversals.clears_halt_no >= halts.halt_no
      and (halts.generation is null or halts.generation > reversals.kept_generation)
  ) order by halt_no`;

/** First block that the chain has lost, as far as the watcher saw, until the operator reconciles; null for none. */
export async function readLostFrom(q: Queryable): Promise<number | null> {
  const blocks = (await readHalts(q)).flatMap(({ fromBlock }) => (fromBlock === null ? [] : [fromBlock]));
  return blocks.length === 0 ? null : Math.min(...blocks);
}

/** Number of the newest halt, 0 when there never was one. */
export async function lastHaltNo(q: Queryable): Promise<number> {
  return (await highest(q('halts'), 'halt_no')) ?? 0;
}
