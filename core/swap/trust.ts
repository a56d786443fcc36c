/**
 * What the service risks for the orders of one owner, in gas. A transaction that reverts costs the service its gas, and its owner can bring
 * that about, alone or with a maker who takes its quotes away; so what it may burn is held against what the owner has spent. Nothing is
 * forgotten with time, since waiting is free.
 */
import { minBig } from '../amounts.js';

/** What the owner of an order pays for one fill at least, by its fee, and what a swap of its own takes. */
const EARNED_GAS = { fill: 160_000n, swap: 96_000n } as const;
/** Beyond this nothing is saved up: two of the dearest orders. */
const MOST_CREDIT_GAS = 700_000n;
/**
 * What a transaction for a key over one venue burns at most of what its owner does not pay for: Permit2 refuses it, or our curve does, before
 * anything has moved. Who moves a pool pays for a swap.
 */
const ONE_VENUE_GAS = 80_000n;

/**
 * What an owner did, or that a transaction for it reverted. Whether a trade came before it does not matter: that another address paid for the
 * trade tells neither that it is a stranger's nor that it was the cause.
 */
export type Dealing = { kind: 'fill' | 'swap' } | { kind: 'revert'; gasUsed: bigint };

/**
 * The gas that an owner has to its credit: what a new account is given for what it took to set it up, and each fill and each swap of its own,
 * less what its transactions have burnt. `dealings` are in the order of the chain.
 */
export function creditGas(newAccountGas: bigint, dealings: readonly Dealing[]): bigint {
  return dealings.reduce((credit, one) => {
    if (one.kind === 'revert') return credit - one.gasUsed;
    return minBig(credit + EARNED_GAS[one.kind], MOST_CREDIT_GAS);
  }, newAccountGas);
}

/** Reverts since the newest fill. */
function revertsSinceFill(dealings: readonly Dealing[]): number {
  const fillAt = dealings.findLastIndex(({ kind }) => kind === 'fill');
  return dealings.slice(fillAt + 1).filter(({ kind }) => kind === 'revert').length;
}

/** What counts of a transaction, once it is sent, too. */
export interface Sent {
  /** Number of venues that it trades with, our own curve among them. */
  venues: number;
  gasLimit: bigint;
  /** What comes before the trade and is burnt, too, if that fails: an approval by signature. Left out for nothing. */
  beforeGas?: bigint;
}

/** A transaction as it would be sent. */
export interface Risky extends Sent {
  /** Whether the owner's account has code, which can burn all the gas of a transaction. */
  isCode: boolean;
}

/** Gas that a transaction may burn for which nobody pays. One over several venues may be spoilt by the last of them. */
export const riskGas = ({ venues, gasLimit, isCode, beforeGas = 0n }: Risky): bigint =>
  isCode || venues > 1 ? gasLimit : minBig(gasLimit, ONE_VENUE_GAS + beforeGas);

/**
 * Whether another transaction may be sent for an owner of whom `underWay` may still revert: at once; when one that is under way did not; or
 * not before the owner paid for a fill or a swap. The credit covers what all of them could burn together. `maxReverts` bounds the reverts since the
 * newest fill, whatever the credit; a swap of the owner's own since the newest revert allows one more.
 */
export function mayRisk(
  dealings: readonly Dealing[],
  transaction: Risky,
  { underWay, maxReverts, newAccountGas }: { underWay: readonly Sent[]; maxReverts: number; newAccountGas: bigint },
): 'send' | 'wait' | 'refuse' {
  const hasSwapped = dealings.at(-1)?.kind === 'swap';
  const byCount = Math.max(maxReverts - revertsSinceFill(dealings), hasSwapped ? 1 : 0);
  const credit = creditGas(newAccountGas, dealings);
  const alone = riskGas(transaction);
  if (byCount <= 0 || alone > credit) return 'refuse';
  // With the code that the account has by now: an account may get some while transactions for its key are under way.
  const together = underWay.reduce((sum, one) => sum + riskGas({ ...one, isCode: transaction.isCode }), alone);
  return underWay.length < byCount && together <= credit ? 'send' : 'wait';
}
