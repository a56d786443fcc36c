/**
 * How many transactions the service risks for the orders of one owner. One that reverts costs the service its gas, and its owner can bring
 * that about, so what it may cost is never more than what the owner has spent for it.
 */

/** What a new owner may spoil: an approval of Permit2 and the tokens sent to the account cost more than one revert. */
const UNPROVEN_REVERTS = 1;
/** What a swap that the owner paid for makes good: it costs more than one revert. */
const REVERTS_PER_SWAP = 1;

/** An owner's reverted transactions, none of which is ever forgotten but by what the owner did since. */
export interface Reverts {
  /** Since the newest fill of an order, which paid for its gas; all of them before the first. */
  sinceFill: number;
  /** Whether an order of the owner was ever filled. */
  hasFill: boolean;
  /** Since the newest swap that the owner sent, null when it never sent one. */
  sinceSwap: number | null;
}

/**
 * Whether another transaction may be sent for an owner of whom `underWay` may still revert: at once, when one that is under way did not, or
 * not before the owner paid for a fill or a swap. `maxReverts` goes for an owner whose orders were filled.
 */
export function mayRisk(reverts: Reverts, underWay: number, maxReverts: number): 'send' | 'wait' | 'refuse' {
  const { sinceFill, hasFill, sinceSwap } = reverts;
  const byFill = (hasFill ? maxReverts : UNPROVEN_REVERTS) - sinceFill;
  const bySwap = sinceSwap === null ? 0 : REVERTS_PER_SWAP - sinceSwap;
  const left = Math.max(byFill, bySwap);
  if (left <= 0) return 'refuse';
  return underWay < left ? 'send' : 'wait';
}
