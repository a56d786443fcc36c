/**
 * How many transactions the service risks for the orders of one owner. One that reverts costs the service its gas, and its owner can bring
 * that about, so what it may cost is held against what the owner has spent for it. Nothing is forgotten with time, since waiting is free.
 */

/** What an account with code may spoil, whose code can burn all the gas of a transaction. */
const CODE_REVERTS = 1;
/** Swaps that the owner paid for that make one revert good. */
const SWAPS_PER_REVERT = { key: 1, code: 2 } as const;

/** An owner's transactions that reverted, and what it did since. */
export interface Reverts {
  /** Since the newest fill of an order, which paid for its gas; all of them before the first. */
  sinceFill: number;
  /** Swaps that the owner sent since its newest revert. */
  swapsSince: number;
}

/**
 * Whether another transaction may be sent for an owner of whom `underWay` may still revert: at once; when one that is under way did not; or
 * not before the owner paid for a fill or a swap. `maxReverts` goes for a key; `isCode` says that the account has code.
 */
export function mayRisk(
  { sinceFill, swapsSince }: Reverts,
  { underWay, maxReverts, isCode }: { underWay: number; maxReverts: number; isCode: boolean },
): 'send' | 'wait' | 'refuse' {
  const byFill = (isCode ? CODE_REVERTS : maxReverts) - sinceFill;
  const bySwap = sinceFill > 0 && swapsSince >= SWAPS_PER_REVERT[isCode ? 'code' : 'key'] ? 1 : 0;
  const left = Math.max(byFill, bySwap);
  if (left <= 0) return 'refuse';
  return underWay < left ? 'send' : 'wait';
}
