/**
 * Names of postings. A posting is booked once; one that a reorganisation took back may be booked again, under its name with a number.
 */
import { LedgerInvariantError } from './errors.js';
import { chunks } from './columns.js';
import type { Queryable } from './types.js';

const REVERSED = 'reversed:';

/** Name of the posting that takes another one back. */
export function reversedRef(ref: string): string {
  return `${REVERSED}${ref}`;
}

export function isReversedRef(ref: string): boolean {
  return ref.startsWith(REVERSED);
}

/** The name of an event's posting, whichever booking of it this is. */
export function baseRef(ref: string): string {
  return ref.replace(/~\d+$/, '');
}

/** The names of one posting after so many reversals. */
function bookings(ref: string, reversals: number): string[] {
  return [ref, ...Array.from({ length: reversals }, (_, i) => `${ref}~${i + 2}`)];
}

/**
 * The names to store new postings under. Throws LedgerInvariantError `ref_exists` for one that is booked and was not taken back.
 * `reversals` is how many there have been.
 */
export async function nameRefs(
  q: Queryable,
  refs: readonly string[],
  reversals: number,
): Promise<ReadonlyMap<string, string>> {
  const distinct = [...new Set(refs)];
  const stored = new Set<string>();
  const asked = distinct.flatMap((ref) => bookings(ref, reversals)).flatMap((ref) => [ref, reversedRef(ref)]);
  for (const part of chunks(reversals === 0 ? distinct : asked)) {
    const rows = await q<{ ref: string }>('entries').whereIn('ref', part).distinct('ref');
    for (const { ref } of rows) stored.add(ref);
  }
  const names = new Map<string, string>();
  for (const ref of distinct) {
    const free = bookings(ref, reversals).find((one) => !stored.has(one));
    const standing = bookings(ref, reversals).some((one) => stored.has(one) && !stored.has(reversedRef(one)));
    if (standing || free === undefined) throw new LedgerInvariantError('ref_exists', `${ref} is booked already`);
    names.set(ref, free);
  }
  return names;
}
