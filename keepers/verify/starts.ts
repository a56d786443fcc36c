/** Checks the makers' base balances before each of their parts of a fill (`startPosition`), which fills report. */
import type { Address } from '../../core/types.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { groupBy } from '../../ledger/db/lists.js';
import { accountKey, fillRef } from '../../ledger/chain/invariants.js';
import { baseRef } from '../../ledger/chain/refs.js';
import type { Queryable } from '../../ledger/types.js';
import { readPartsWithMarket } from '../../ledger/views/audit.js';
import { same } from './verification.js';

/** One order's part of a fill that stands. */
type StoredStart = Awaited<ReturnType<typeof readPartsWithMarket>>[number];

/** Names the parts of a fill; another booking of it, that was taken back, had others. */
export const startKey = (generation: number, ref: string): string => `${generation}:${baseRef(ref)}`;

/** The parts of a page of generations, by `startKey`. */
export async function readStarts(
  q: Queryable,
  { from, to }: { from: number; to: number },
): Promise<Map<string, StoredStart[]>> {
  const rows = await readPartsWithMarket(q, { from, to });
  return groupBy(rows, (row) => startKey(row.generation, fillRef(row, row.fill_seq)));
}

/** The refs of one generation as they were booked: deposits and executions, fills in the order of the chain, and the rest. */
export function inBookingOrder(refs: readonly string[], fills: readonly string[]): string[] {
  const places = new Map(fills.map((ref, i) => [ref, i]));
  const rank = (ref: string): number => {
    if (/^(deposited|executed):/.test(ref)) return -1;
    return ref.startsWith('fill:') ? (places.get(baseRef(ref)) ?? fills.length) : fills.length + 1;
  };
  return [...refs].sort((a, b) => rank(a) - rank(b));
}

/** Compares the parts of one fill with the balances before it. */
export function checkStarts(parts: readonly StoredStart[], balances: ReadonlyMap<string, bigint>): void {
  const running = new Map<Address, bigint>();
  for (const part of parts) {
    const { maker, base_address: token } = part;
    const start = running.get(maker) ?? balances.get(accountKey({ account: maker, token })) ?? 0n;
    same('postings', `what ${maker} had before order ${part.oid} was filled`, fromColumn(part.start_base_units), start);
    const units = fromColumn(part.base_units);
    running.set(maker, part.side === 'ask' ? start - units : start + units);
  }
}
