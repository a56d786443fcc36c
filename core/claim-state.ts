/**
 * The life of a withdrawal, per maker and token, as the custodian's events leave it. `outstandingUnits` is what has been
 * requested and neither paid nor dropped; it is reserved out of the maker's inventory.
 */
import { maxBig, minBig, MAX_U128 } from './amounts.js';

export interface ClaimState {
  /** The settled claim as it stands on-chain; 0 for none. */
  claimUnits: bigint;
  /** Version of the claim on-chain: how often it was raised, lowered or executed. */
  basis: bigint;
  /** When the claim can be executed; null without a claim. */
  readyAtSec: number | null;
  /** Never below claimUnits, never above 2^128 - 1. */
  outstandingUnits: bigint;
  /**
   * Part of the claim that nobody has asked for on this chain: it was settled for requests that a reorganisation took back. The next
   * requests are covered by it.
   */
  advanceUnits: bigint;
  /** Block of the oldest request that no settlement has covered; null when none waits. */
  pendingSinceBlock: number | null;
}

/** Nobody ever asked for anything. */
export const NO_CLAIM: ClaimState = {
  claimUnits: 0n,
  basis: 0n,
  readyAtSec: null,
  outstandingUnits: 0n,
  advanceUnits: 0n,
  pendingSinceBlock: null,
};

/** Requests that one settlement did not look at, because they were mined after its cut. */
export interface LaterRequests {
  units: bigint;
  /** Block of the first of them; null when there is none. */
  sinceBlock: number | null;
}

/** Sum of amounts that strangers choose: it saturates at 2^128 - 1. */
export function addSaturating(a: bigint, b: bigint): bigint {
  return minBig(a + b, MAX_U128);
}

/** After WithdrawRequested. The amount is added, whoever asks and whatever it is, but for what was settled in advance. */
export function afterRequest(state: ClaimState, units: bigint, blockNumber: number): ClaimState {
  const covered = minBig(units, state.advanceUnits);
  return {
    ...state,
    outstandingUnits: addSaturating(state.outstandingUnits, units - covered),
    advanceUnits: state.advanceUnits - covered,
    pendingSinceBlock: covered === units ? state.pendingSinceBlock : (state.pendingSinceBlock ?? blockNumber),
  };
}

/**
 * After WithdrawSettled: the settled amount replaces everything that the settlement looked at, and what it did not cover of that is
 * dropped for good. Requests mined after its cut stay, but for what was settled in advance. An equal amount leaves the claim's version as it
 * is.
 *
 * `lost` means that the settlement looked at blocks that the chain no longer has. Then nobody knows which of the present requests it
 * covers, so it counts against all of them by its amount, and nothing is asked for twice.
 */
export function afterSettlement(
  state: ClaimState,
  settled: { units: bigint; readyAtSec: number | null; blockNumber: number; lost: boolean },
  later: LaterRequests,
): ClaimState {
  const claim = {
    claimUnits: settled.units,
    basis: settled.units === state.claimUnits ? state.basis : state.basis + 1n,
    readyAtSec: settled.units === 0n ? null : settled.readyAtSec,
  };
  const askedUnits = state.outstandingUnits - state.advanceUnits;
  if (settled.lost) {
    const isShort = askedUnits > settled.units;
    return {
      ...claim,
      outstandingUnits: maxBig(askedUnits, settled.units),
      advanceUnits: maxBig(settled.units - askedUnits, 0n),
      pendingSinceBlock: isShort ? (state.pendingSinceBlock ?? settled.blockNumber) : null,
    };
  }
  // An advance that stands goes first to the requests before the cut, and what it has left then to those after it.
  const earlierUnits = maxBig(askedUnits - later.units, 0n);
  const aheadUnits = state.advanceUnits === 0n ? 0n : maxBig(settled.units - earlierUnits, 0n);
  const coveredUnits = minBig(aheadUnits, later.units);
  return {
    ...claim,
    outstandingUnits: addSaturating(settled.units, later.units - coveredUnits),
    advanceUnits: aheadUnits - coveredUnits,
    pendingSinceBlock: coveredUnits === later.units ? null : later.sinceBlock,
  };
}

/** After WithdrawExecuted: the claim was paid whole and is gone, asked for or not. Requests that wait go on waiting. */
export function afterExecution(state: ClaimState, units: bigint): ClaimState {
  return {
    ...state,
    claimUnits: 0n,
    basis: state.basis + 1n,
    readyAtSec: null,
    outstandingUnits: maxBig(state.outstandingUnits - units, 0n),
    advanceUnits: 0n,
  };
}

/** What a settlement writes: everything outstanding, clamped to the ledger balance; zero without a balance. */
export function settlementUnits(outstandingUnits: bigint, balanceUnits: bigint): bigint {
  return maxBig(minBig(outstandingUnits, balanceUnits), 0n);
}

/**
 * Whether a settlement may be sent: whatever takers still do with the curves that are executable, the maker can pay both them
 * and its claim. `worstUnits` is the most that it can still be made to pay of the token.
 */
export function maySettle(settledUnits: bigint, balanceUnits: bigint, worstUnits: bigint): boolean {
  return worstUnits <= balanceUnits - settledUnits || worstUnits === 0n;
}

/** How soon after a settlement the same claim is settled again: a request costs its maker less gas than its settlement costs the operator. */
export interface SettlePace {
  /** From one settlement of a claim to the next. */
  intervalMs: number;
  /** The same when the next raises the claim by less than `smallBps` of the balance behind it; not below `intervalMs`. */
  smallIntervalMs: number;
  smallBps: number;
}

/** The longest that one settlement of a claim holds up the next. */
export const longestWaitMs = (pace: SettlePace): number => Math.max(pace.intervalMs, pace.smallIntervalMs);

/**
 * When a pending withdrawal may be settled at the earliest, in ms; 0 for at once. `lastMs` is when its claim was settled last, null for never.
 * What takes a claim back waits for nothing, and what takes the rest of the balance never counts as small.
 */
export function settlesFromMs(
  claim: Pick<ClaimState, 'claimUnits' | 'outstandingUnits'> & { balanceUnits: bigint },
  lastMs: number | null,
  pace: SettlePace,
): number {
  const { claimUnits, outstandingUnits, balanceUnits } = claim;
  const units = settlementUnits(outstandingUnits, balanceUnits);
  if (lastMs === null || units < claimUnits) return 0;
  const isRest = units > claimUnits && units === balanceUnits;
  const isSmall = (units - claimUnits) * 10_000n < BigInt(pace.smallBps) * balanceUnits || units === claimUnits;
  return lastMs + (isSmall && !isRest ? longestWaitMs(pace) : pace.intervalMs);
}
