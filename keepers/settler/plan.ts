import { toSafeInt, wordOf } from '../../core/amounts.js';
import { isFree, maySettle, settlementUnits } from '../../core/claim-state.js';
import { settleGas, type SettlePart } from '../../core/settle-gas.js';
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
  batchMax: number;
  /** How many settlements that raise no claim may still be sent. */
  emptyBudget: number;
}

/**
 * The settlements that may be sent now in one transaction, one per maker and token: everything outstanding, clamped to the balance, as soon as
 * the balance also covers what takers can still execute.
 *
 * Those that are sent whatever was paid come first (`isFree`). Others ride along if their maker has paid for what they add. Without any of the former they
 * are sent once what was paid for them together covers the transaction. Settlements that raise no claim only clear requests; they come last and
 * are limited, so that makers without funds do not delay others.
 */
export function planSettlements(input: PlanInput): PlannedSettlement[] {
  const [free, raises, unchanged]: [Gathered[], Gathered[], Gathered[]] = [[], [], []];
  for (const claim of [...input.funded, ...input.unfunded]) {
    const amountUnits = settlementUnits(claim.outstandingUnits, claim.balanceUnits);
    if (!maySettle(amountUnits, claim.balanceUnits, input.worstUnits(claim))) continue;
    const { maker, token, basis, claimUnits: previousUnits, paidGas } = claim;
    const planned = {
      maker,
      token,
      amountUnits,
      basis,
      previousUnits,
      preparedBy: 'settler',
      operatorSeq: null,
    } as const;
    const isRaise = amountUnits !== previousUnits;
    const gathered = { planned, part: { token, isRaise }, paidGas };
    (isFree(amountUnits, claim) ? free : isRaise ? raises : unchanged).push(gathered);
  }
  const batch = free.slice(0, input.batchMax);
  const waiting = [...raises, ...unchanged.slice(0, Math.max(0, input.emptyBudget))];
  const riders = batch.length > 0 ? thatRideAlong(batch, waiting, input.batchMax) : thatPay(waiting, input.batchMax);
  return [...batch, ...riders].map(({ planned }) => planned);
}

/** A settlement, as it counts, and what its maker has paid. */
interface Gathered {
  planned: PlannedSettlement;
  part: SettlePart;
  paidGas: bigint;
}

/** Those that pay for what they add to a transaction that is sent anyway. */
function thatRideAlong(batch: readonly Gathered[], waiting: readonly Gathered[], batchMax: number): Gathered[] {
  const riders: Gathered[] = [];
  const parts = batch.map(({ part }) => part);
  for (const one of waiting) {
    if (parts.length >= batchMax) break;
    if (one.paidGas < settleGas([one.part], parts)) continue;
    riders.push(one);
    parts.push(one.part);
  }
  return riders;
}

/** As many as pay for one transaction together, those that were paid most for first, so that none holds back others that pay by themselves. */
function thatPay(waiting: readonly Gathered[], most: number): Gathered[] {
  const ranked = waiting.toSorted((a, b) => toSafeInt(b.paidGas - a.paidGas)).slice(0, most);
  while (ranked.length > 0 && !payForThemselves(ranked)) ranked.pop();
  const chosen = new Set(ranked);
  return waiting.filter((one) => chosen.has(one));
}

function payForThemselves(riders: readonly Gathered[]): boolean {
  const paidGas = riders.reduce((sum, one) => sum + one.paidGas, 0n);
  return paidGas >= settleGas(riders.map(({ part }) => part));
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

/** The call that settles a batch: an element that is stale or not covered by free liquidity is skipped, the others take effect. */
export function settleCalldata(
  settlements: readonly Pick<Settlement, 'maker' | 'token' | 'amountUnits' | 'basis'>[],
): Hex {
  const elements = settlements.map(
    ({ maker, token, amountUnits, basis }) => wordOf(maker) + wordOf(token) + wordOf(amountUnits) + wordOf(basis),
  );
  return `${SETTLE_BATCH}${wordOf(32n)}${wordOf(BigInt(settlements.length))}${elements.join('')}` as Hex;
}

/** Gas of such a call, with room for first-time slots and for tokens behind proxies. */
export const settleGasLimit = (count: number): bigint => 120_000n + 110_000n * BigInt(count);
