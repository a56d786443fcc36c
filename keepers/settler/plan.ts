import { isPrepaid, maySettle, settlementUnits } from '../../core/claim-state.js';
import { isPaid, type SettlePart } from '../../core/settle-gas.js';
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
  /** The most that executable curves can still make the maker pay of the token. */
  worstUnits(claim: PendingClaim): bigint;
  /** How many of the requests that wait for a settlement their maker paid a transaction for. */
  paidRequests(claim: PendingClaim): number;
  batchMax: number;
  /** How many settlements that raise no claim may still be sent. */
  emptyBudget: number;
}

/**
 * The settlements that may be sent now in one transaction, one per maker and token: everything outstanding, clamped to the balance, as soon as
 * the balance also covers what takers can still execute.
 *
 * Those that raise a claim from zero come first. Others ride along if their maker has made a request in a transaction of its own: that costs it
 * more than one further settlement costs the operator. Without any of the former they are sent once their requests together cost as much as the
 * transaction. Settlements that raise no claim only clear requests; they come last and are limited, so that makers without funds do not delay others.
 */
export function planSettlements(input: PlanInput): PlannedSettlement[] {
  const [prepaid, raises, unchanged]: [PlannedSettlement[], Gathered[], Gathered[]] = [[], [], []];
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
    if (isPrepaid(amountUnits, previousUnits)) prepaid.push(planned);
    else {
      const requests = input.paidRequests(claim);
      if (requests > 0) (amountUnits === previousUnits ? unchanged : raises).push({ planned, requests });
    }
  }
  const batch = prepaid.slice(0, input.batchMax);
  const waiting = [...raises, ...unchanged.slice(0, Math.max(0, input.emptyBudget))];
  const room = input.batchMax - batch.length;
  const riders = batch.length > 0 ? waiting.slice(0, room) : thatPay(waiting, room);
  return [...batch, ...riders.map(({ planned }) => planned)];
}

/** As many as pay for one transaction together, those with the most requests first, so that none holds back others that pay by themselves. */
function thatPay(waiting: readonly Gathered[], most: number): Gathered[] {
  const ranked = waiting.toSorted((a, b) => b.requests - a.requests).slice(0, most);
  while (ranked.length > 0 && !payForThemselves(ranked)) ranked.pop();
  const chosen = new Set(ranked);
  return waiting.filter((one) => chosen.has(one));
}

/** A settlement that waits until it is paid for, and the requests that pay for it. */
interface Gathered {
  planned: PlannedSettlement;
  requests: number;
}

function payForThemselves(riders: readonly Gathered[]): boolean {
  const parts = riders.map(({ planned: { token, amountUnits, previousUnits } }): SettlePart => {
    return { token, isRaise: amountUnits !== previousUnits };
  });
  const requests = riders.reduce((sum, one) => sum + one.requests, 0);
  return isPaid(parts, requests);
}

/**
 * The lowering that the operator asked for, or null when the claim is not above that amount. It is sent regardless of other outstanding
 * amounts: the custodian accepts a lower amount on any version of the claim, and refuses a raise on an outdated version.
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
