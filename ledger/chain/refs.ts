/**
 * Names of postings. A posting is booked once; one that a reversal has reversed may be booked again, under its name with a number appended.
 */
import { LedgerInvariantError } from '../errors.js';
import { bookedByFills } from './fill-postings.js';
import { count } from '../db/aggregates.js';
import { chunks } from '../db/columns.js';
import { allOrFirstError, placeholders, sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';

const REVERSED = 'reversed:';

/** Name of the posting that reverses another one. */
export function reversedRef(ref: string): string {
  return `${REVERSED}${ref}`;
}

export function isReversedRef(ref: string): boolean {
  return ref.startsWith(REVERSED);
}

/** The name of a posting without the number of its booking. */
export function baseRef(ref: string): string {
  return ref.replace(/~\d+$/, '');
}

/** The names of one posting after so many reversals. */
function bookings(ref: string, reversals: number): string[] {
  return [ref, ...Array.from({ length: reversals }, (_, i) => `${ref}~${i + 2}`)];
}

/** The names to store new postings under. Throws LedgerInvariantError `ref_exists` for one that is booked and not reversed. */
export async function nameRefs(q: Queryable, refs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const distinct = [...new Set(refs)];
  const [booked, [byFill]] = await allOrFirstError([storedAmong(q, distinct), bookedByFills(q, distinct)]);
  if (byFill !== undefined) throw new LedgerInvariantError('ref_exists', `${byFill} is booked already`);
  // The first booking has the plain name, so a name without entries was never booked.
  if (booked.size === 0) return new Map(distinct.map((ref) => [ref, ref]));
  const reversals = await count(q('reversals'));
  const asked = [...booked].flatMap((ref) => bookings(ref, reversals)).flatMap((ref) => [ref, reversedRef(ref)]);
  const stored = await storedAmong(q, asked);
  const names = new Map<string, string>();
  for (const ref of distinct) {
    const free = bookings(ref, reversals).find((one) => !stored.has(one));
    const standing = bookings(ref, reversals).some((one) => stored.has(one) && !stored.has(reversedRef(one)));
    if (standing || free === undefined) throw new LedgerInvariantError('ref_exists', `${ref} is booked already`);
    names.set(ref, free);
  }
  return names;
}

/** Which of these names have entries. */
async function storedAmong(q: Queryable, refs: readonly string[]): Promise<Set<string>> {
  const stored = new Set<string>();
  for (const part of chunks(refs)) {
    const sql = `select ref from entries where ref in (${placeholders(part.length)}) and line = 0`;
    const rows = await sendForRows<{ ref: string }>(q, sql, part);
    for (const { ref } of rows) stored.add(ref);
  }
  return stored;
}
