import { maySettle, settlementUnits } from '../../core/claim-state.js';
import type { PendingClaim } from '../../ledger/chain/claims.js';
import type { ClaimRow, OperatorRow, Settlement } from '../../ledger/types.js';
import type { Hex } from '../../core/types.js';
import { keccakText } from '../../core/hash.js';

/** What a settlement will say, before it is numbered and stored. */
export type PlannedSettlement = Pick<
  Settlement,
  'maker' | 'token' | 'amountUnits' | 'basis' | 'previousUnits' | 'preparedBy' | 'operatorSeq'
>;

interface PlanInput {
  /** Withdrawals with a ledger balance, in the order in which they are served. */
  funded: readonly PendingClaim[];
  /** Withdrawals without one. */
  unfunded: readonly PendingClaim[];
  /** The most that the maker can still be made to pay of the token with what is executable. */
  worstUnits(claim: PendingClaim): bigint;
  batchMax: number;
  /** How many settlements that raise no claim may still be sent. */
  emptyBudget: number;
}

/**
 * The settlements that may be sent now, one per maker and token: everything outstanding, clamped to the balance, as soon as what
 * takers can still execute fits beside it. Settlements that raise no claim only tidy up and cost the operator gas; they come last
 * and are limited, so that nobody without funds delays anybody with them.
 */
export function planSettlements(input: PlanInput): PlannedSettlement[] {
  const raises: PlannedSettlement[] = [];
  const empty: PlannedSettlement[] = [];
  for (const claim of [...input.funded, ...input.unfunded]) {
    const amountUnits = settlementUnits(claim.outstandingUnits, claim.balanceUnits);
    if (!maySettle(amountUnits, claim.balanceUnits, input.worstUnits(claim))) continue;
    const { maker, token, basis, claimUnits: previousUnits } = claim;
    const planned = {
      maker,
      token,
      amountUnits,
      basis,
      previousUnits,
      preparedBy: 'settler',
      operatorSeq: null,
    } as const;
    (amountUnits === previousUnits ? empty : raises).push(planned);
  }
  const batch = raises.slice(0, input.batchMax);
  return [...batch, ...empty.slice(0, Math.max(0, Math.min(input.batchMax - batch.length, input.emptyBudget)))];
}

/**
 * The lowering that the operator asked for, or null when the claim is not above that amount. It is sent whatever else is
 * outstanding: the custodian takes a lower amount on any version of the claim, and refuses a raise on a version that is not the present.
 */
export function planLowering(act: OperatorRow, claim: ClaimRow): PlannedSettlement | null {
  const { lower, operatorSeq } = act;
  if (lower === undefined || lower.amountUnits >= claim.claimUnits) return null;
  return {
    maker: claim.maker,
    token: claim.token,
    amountUnits: lower.amountUnits,
    basis: claim.basis,
    previousUnits: claim.claimUnits,
    preparedBy: 'operator',
    operatorSeq,
  };
}

/** How long a withdrawal waits after its settlement was refused that many times in a row: the first time not at all. */
export function backoffMs(refusals: number): number {
  return refusals <= 1 ? 0 : Math.min(2_000 * 2 ** (refusals - 2), 300_000);
}

const SETTLE_BATCH = keccakText('settleWithdrawBatch((address,address,uint256,uint256)[])').slice(0, 10);

const word = (value: bigint): string => value.toString(16).padStart(64, '0');

/** The call that settles a batch: an element that is stale or not covered by free liquidity is skipped, the others take effect. */
export function settleCalldata(
  settlements: readonly Pick<Settlement, 'maker' | 'token' | 'amountUnits' | 'basis'>[],
): Hex {
  const elements = settlements.map(
    ({ maker, token, amountUnits, basis }) =>
      word(BigInt(maker)) + word(BigInt(token)) + word(amountUnits) + word(basis),
  );
  return `${SETTLE_BATCH}${word(32n)}${word(BigInt(settlements.length))}${elements.join('')}` as Hex;
}

/** Gas of such a call, with room for first-time slots and for tokens behind proxies. */
export const settleGasLimit = (count: number): bigint => 120_000n + 110_000n * BigInt(count);
