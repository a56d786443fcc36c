/**
 * The life of a withdrawal, per maker and token, as the custodian's events leave it. `outstandingUnits` is what has been requested and
 * neither paid nor dropped; it is not available to the maker's orders.
 */
import { maxBig, minBig, MAX_U128 } from './amounts.js';
import { PAID_GAS_MAX, addGas, settleGas } from './settle-gas.js';

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
   * Part of the claim without a request on this chain: it was settled for requests that a reorganisation removed. It covers the next
   * requests.
   */
  advanceUnits: bigint;
  /** Block of the oldest request that no settlement has covered; null when there is none. */
  pendingSinceBlock: number | null;
  /** Gas that the maker has paid since the last settlement, for requests that it does not cover and for executions; at most `PAID_GAS_MAX`. */
  paidGas: bigint;
}

/** Without any request. */
export const NO_CLAIM: ClaimState = {
  claimUnits: 0n,
  basis: 0n,
  readyAtSec: null,
  outstandingUnits: 0n,
  advanceUnits: 0n,
  pendingSinceBlock: null,
  paidGas: 0n,
};

/** Requests that a settlement does not cover, because they were mined after its cut. */
export interface LaterRequests {
  units: bigint;
  /** Block of the first of them; null when there is none. */
  sinceBlock: number | null;
  /** What the maker paid for them. */
  paidGas: bigint;
}

/** A sum that saturates at 2^128 - 1: anybody may choose the amounts of requests. */
export function addSaturating(a: bigint, b: bigint): bigint {
  return minBig(a + b, MAX_U128);
}

/** After WithdrawRequested. Any amount is added, less the part that an advance covers; a request that it covers whole has been settled. */
export function afterRequest(
  state: ClaimState,
  { units, paidGas }: { units: bigint; paidGas: bigint },
  blockNumber: number,
): ClaimState {
  const covered = minBig(units, state.advanceUnits);
  return {
    ...state,
    outstandingUnits: addSaturating(state.outstandingUnits, units - covered),
    advanceUnits: state.advanceUnits - covered,
    pendingSinceBlock: covered === units ? state.pendingSinceBlock : (state.pendingSinceBlock ?? blockNumber),
    paidGas: covered === units ? state.paidGas : addGas(state.paidGas, paidGas),
  };
}

/**
 * After WithdrawSettled: the settled amount replaces everything that the settlement looked at, and what it did not cover of that is dropped
 * for good. Requests mined after its cut stay, less the part that an advance covers. An equal amount leaves the claim's version (`basis`)
 * unchanged.
 *
 * What the maker paid is used up by it, but for requests after its cut. A settlement that takes back of a claim, or falls short of requests that another
 * one had covered, is not the maker's doing: the next one is paid for.
 *
 * `lost` means that the settlement's cut is in blocks that the chain no longer has. Then it can't be known which of the present requests it
 * covers, so its amount counts against all of them, and no request is paid twice.
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
  const isTakenBack = settled.units < state.claimUnits;
  if (settled.lost) {
    const isShort = askedUnits > settled.units;
    const shortGas = state.pendingSinceBlock === null ? PAID_GAS_MAX : state.paidGas;
    return {
      ...claim,
      outstandingUnits: maxBig(askedUnits, settled.units),
      advanceUnits: maxBig(settled.units - askedUnits, 0n),
      pendingSinceBlock: isShort ? (state.pendingSinceBlock ?? settled.blockNumber) : null,
      paidGas: isTakenBack ? PAID_GAS_MAX : isShort ? shortGas : 0n,
    };
  }
  // An advance covers requests before the cut first, then those after it.
  const earlierUnits = maxBig(askedUnits - later.units, 0n);
  const aheadUnits = state.advanceUnits === 0n ? 0n : maxBig(settled.units - earlierUnits, 0n);
  const coveredUnits = minBig(aheadUnits, later.units);
  return {
    ...claim,
    outstandingUnits: addSaturating(settled.units, later.units - coveredUnits),
    advanceUnits: aheadUnits - coveredUnits,
    pendingSinceBlock: coveredUnits === later.units ? null : later.sinceBlock,
    paidGas: isTakenBack ? PAID_GAS_MAX : coveredUnits === later.units ? 0n : later.paidGas,
  };
}

/**
 * After WithdrawExecuted: the claim was paid in full and is zero, including any advance. Requests that no settlement has covered stay
 * outstanding.
 */
export function afterExecution(state: ClaimState, { units, paidGas }: { units: bigint; paidGas: bigint }): ClaimState {
  return {
    ...state,
    claimUnits: 0n,
    basis: state.basis + 1n,
    readyAtSec: null,
    outstandingUnits: maxBig(state.outstandingUnits - units, 0n),
    advanceUnits: 0n,
    paidGas: addGas(state.paidGas, paidGas),
  };
}

/** The amount that a settlement writes: everything outstanding, at most the ledger balance; zero for a negative balance. */
export function settlementUnits(outstandingUnits: bigint, balanceUnits: bigint): bigint {
  return maxBig(minBig(outstandingUnits, balanceUnits), 0n);
}

/**
 * Whether a settlement may be sent: the maker can pay its claim and whatever takers can still take on executable curves. `worstUnits` is
 * the most that they can still make it pay of the token.
 */
export function maySettle(settledUnits: bigint, balanceUnits: bigint, worstUnits: bigint): boolean {
  return worstUnits <= balanceUnits - settledUnits || worstUnits === 0n;
}

/**
 * Whether a settlement is sent whatever its maker has paid: the first that raises its claim, which took a deposit or a trade, and one that takes a
 * claim back. What makers paid since the last settlement must pay for any other.
 */
export const isFree = (
  settledUnits: bigint,
  { claimUnits, basis }: Pick<ClaimState, 'claimUnits' | 'basis'>,
): boolean => settledUnits < claimUnits || (basis === 0n && settledUnits > claimUnits);

/** What its maker must have paid for a pending withdrawal to be settled by itself; 0 for one that is settled whatever was paid. */
export function neededGas(claim: ClaimState & { token: string; balanceUnits: bigint }): bigint {
  const units = settlementUnits(claim.outstandingUnits, claim.balanceUnits);
  return isFree(units, claim) ? 0n : settleGas([{ token: claim.token, isRaise: units !== claim.claimUnits }]);
}

/**
 * How soon after a settlement the same claim may be settled again. There is a pace because a request costs its maker less gas than its
 * settlement costs the operator.
 */
export interface SettlePace {
  /** From one settlement of a claim to the next. */
  intervalMs: number;
  /** The same when the next raises the claim by less than `smallBps` of the balance behind it; not below `intervalMs`. */
  smallIntervalMs: number;
  smallBps: number;
}

/** The longest wait between two settlements of a claim. */
export const longestWaitMs = (pace: SettlePace): number => Math.max(pace.intervalMs, pace.smallIntervalMs);

/**
 * When a pending withdrawal may be settled at the earliest, in ms; 0 for at once. `lastMs` is when its claim was settled last, null for
 * never. A settlement that lowers the claim is never delayed, and one that takes the rest of the balance never counts as small.
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
