/**
 * What the service risks for the orders of one owner, in gas. A transaction that reverts costs the service its gas, and its owner can cause
 * that, alone or together with a maker who cancels orders. So the gas that an owner's transactions may burn is limited by what the owner
 * has spent. Time restores no credit, since waiting is free.
 */
import { ceilDiv, minBig } from '../amounts.js';
import { DEFAULT_GAS, PLACE_CHECKS, checksGasOf, gasOf, moreChecks, type GasModel } from './pricing.js';
import { callsIn, venuesIn } from './paths.js';

/** Gas that an owner earns: by a fill, whose fee pays for at least this much, and by a transaction with swaps of its own, which takes this much or more. */
const EARNED_GAS = { fill: 160_000n, swap: 96_000n } as const;
/** Highest credit: about two of the most expensive orders. */
const MOST_CREDIT_GAS = 700_000n;
/**
 * Most gas that a reverting transaction on our curve alone burns, for an owner without code: Permit2 or our curve refuses it before any
 * token is moved. Where the owner's funds or approval are gone, the token refuses it later, and it burns up to 35,000 more. That takes a
 * transaction of the owner's own, which costs the owner more than what is burnt beyond.
 */
const OWN_GAS = 80_000n;
/**
 * Most gas that a checked transaction burns where what it relies on has changed, for an owner whether with code by then or not: its data and
 * what is asked about the owner, for each place what is asked about that, and an approval that fails. Whatever spoils it otherwise costs more.
 */
const CHECKED_GAS = { order: 62_000n, place: 15_000n, permit: 17_000n, moreCheck: 12_000n } as const;

/**
 * A fill or swap of an owner, or a reverted transaction for it. Whether a trade of another address preceded a revert does not matter: the
 * owner may control that address, and the trade need not be the cause.
 */
export type Dealing = { kind: 'fill' | 'swap' } | { kind: 'revert'; gasUsed: bigint };

/**
 * An owner's credit in gas: what a new account starts with, plus each fill and each swap of its own, less what its reverted transactions
 * have burnt. `dealings` are in the order of the chain.
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

/** The parts of a transaction that decide its risk, before and after it is sent. */
export interface Sent {
  /** Number of venues that it trades with, our own curve among them. */
  venues: number;
  /** How many of them are pools, or our own curve as a leg of a path, which reverts as late as pools do. */
  pools: number;
  gasLimit: bigint;
  /** Gas of what runs before the trade and is burnt with it: an approval by signature. Default: zero. */
  beforeGas?: bigint;
  /** Whether it looks first whether what it relies on is as it was. Default: false. */
  isChecked?: boolean;
  /** How many conditions it looks at. Default: as many as places usually have. */
  checks?: number;
}

/** A transaction as it would be sent. */
export interface Risky extends Sent {
  /** Whether the owner's account has code, which can burn all the gas of a transaction. */
  isCode: boolean;
  /** Whether the settler checks what a transaction relies on; one that was deployed before it could does not. Default: false. */
  canCheck?: boolean;
}

/**
 * Gas that a transaction may burn. One that is not checked can burn all of it: a price change of a pool makes it revert only at its end, and
 * an owner without code may get some before it is mined. Where the settler can check nothing, that an account gets code is left out.
 */
export function riskGas({
  venues,
  pools,
  gasLimit,
  isCode,
  beforeGas = 0n,
  isChecked = false,
  checks = 0,
  canCheck = false,
}: Risky): bigint {
  if (isChecked) {
    const permit = beforeGas > 0n ? CHECKED_GAS.permit : 0n;
    const more = BigInt(Math.max(checks - PLACE_CHECKS * venues, 0)) * CHECKED_GAS.moreCheck;
    return minBig(gasLimit, CHECKED_GAS.order + BigInt(venues) * CHECKED_GAS.place + more + permit);
  }
  return canCheck || isCode || pools > 0 ? gasLimit : minBig(gasLimit, OWN_GAS + beforeGas);
}

/**
 * With a settler that can't check: whether an owner without reverts may have one transaction over a single pool, while nothing else of it is
 * under way: to make it revert one must pay for a trade in that pool. So a new account may begin with a pool; if that reverts, the service
 * loses once, more than the account and the trade cost the owner.
 */
const isFirstPool = (
  dealings: readonly Dealing[],
  credit: bigint,
  { venues, pools, isCode, canCheck = false, beforeGas = 0n }: Omit<Risky, 'gasLimit'>,
): boolean =>
  !canCheck &&
  venues === 1 &&
  pools === 1 &&
  !isCode &&
  credit >= OWN_GAS + beforeGas &&
  dealings.every(({ kind }) => kind !== 'revert');

/** Limits of the risk for an owner, besides its dealings. */
interface Limits {
  /**
   * Most reverts since the newest fill, whatever the credit. Once they are used up, a swap of the owner's own since the newest revert
   * allows one more.
   */
  maxReverts: number;
  newAccountGas: bigint;
}

/** How many transactions may be under way or revert before the owner has to pay for a fill or a swap again. */
function revertsLeft(dealings: readonly Dealing[], maxReverts: number): number {
  const hasSwapped = dealings.at(-1)?.kind === 'swap';
  return Math.max(maxReverts - revertsSinceFill(dealings), hasSwapped ? 1 : 0);
}

/**
 * Whether another transaction may be sent for an owner whose transactions `underWay` may still revert: `send` now; `wait` until one that is
 * under way has succeeded; `refuse` until the owner has paid for a fill or a swap. The credit must cover what all of them could burn
 * together.
 */
export function mayRisk(
  dealings: readonly Dealing[],
  transaction: Risky,
  { underWay, maxReverts, newAccountGas }: Limits & { underWay: readonly Sent[] },
): 'send' | 'wait' | 'refuse' {
  const byCount = revertsLeft(dealings, maxReverts);
  const credit = creditGas(newAccountGas, dealings);
  const alone = riskGas(transaction);
  if (underWay.length === 0 && byCount > 0 && isFirstPool(dealings, credit, transaction)) return 'send';
  if (byCount <= 0 || (alone > credit && !isFirstPool(dealings, credit, transaction))) return 'refuse';
  // Uses the account's present code for all of them: an account may get code while its transactions are under way.
  const { isCode, canCheck } = transaction;
  const together = underWay.reduce((sum, one) => sum + riskGas({ ...one, isCode, canCheck }), alone);
  return underWay.length < byCount && together <= credit ? 'send' : 'wait';
}

/** Gas limit above the estimate, for every transaction. */
const SPARE_GAS = 30_000n;

/**
 * The limit of a transaction that takes `gas`. For an owner without code it includes room for market changes until it is mined, such as
 * another segment of the curve or another tick of a pool; an owner's code could use up that room.
 */
export const gasLimitOf = (gas: bigint, hasCode: boolean): bigint => (hasCode ? gas : (gas * 13n) / 10n) + SPARE_GAS;

/** The least gas limit of a transaction that takes `gas`: a tenth more. */
export const leastLimitOf = (gas: bigint): bigint => ceilDiv(gas * 11n, 10n);

/** What is known of the owner of an order or a quote. */
export interface Standing extends Limits {
  dealings: readonly Dealing[];
  isCode: boolean;
  /** Whether the settler checks what transactions rely on. Default: false. */
  canCheck?: boolean;
}

/**
 * A gas limit for a transaction that takes `gas`, such that the owner's credit covers what it could burn. Where the settler can't check,
 * for an owner without code and a route over pools, the limit is lowered to the credit where that is scarce. Null when the credit does not
 * cover it even with nothing else under way.
 */
export function limitWithin(
  { dealings, isCode, maxReverts, newAccountGas, canCheck = false }: Standing,
  { gas, ...sent }: Omit<Sent, 'gasLimit'> & { gas: bigint },
): bigint | null {
  if (revertsLeft(dealings, maxReverts) <= 0) return null;
  const credit = creditGas(newAccountGas, dealings);
  const whole = gasLimitOf(gas, isCode);
  if (riskGas({ ...sent, gasLimit: whole, isCode, canCheck }) <= credit) return whole;
  if (isFirstPool(dealings, credit, { ...sent, isCode, canCheck })) return whole;
  return !canCheck && !isCode && sent.pools > 0 && credit >= leastLimitOf(gas) ? credit : null;
}

/** How an order is sent over these sources: as it is, checked first, or not at all. */
type Way = 'plain' | 'checked' | null;

/** The way of sources whose order has so many conditions to be checked; null where they can't be. Default: as many as places usually have. */
export type WayOf = (ids: readonly string[], checks?: number | null) => Way;

/**
 * How an order over these sources may be sent for the owner with the full gas limit of such a transaction. A quote needs that, because
 * the order may take more gas when it is executed, which leaves less room. `checkGas` is the check of the owner's signature, `beforeGas` an
 * approval that comes first.
 */
export const wayOf =
  (standing: Standing, checkGas: bigint, beforeGas = 0n): WayOf =>
  (ids, checks = 0) => {
    const { isCode, canCheck = false } = standing;
    const gas = gasOf(DEFAULT_GAS, ids) + checkGas + beforeGas;
    const route = { venues: venuesIn(ids), pools: callsIn(ids), beforeGas };
    if (limitWithin(standing, { ...route, gas }) === gasLimitOf(gas, isCode)) return 'plain';
    if (!canCheck || isCode || checks === null) return null;
    const checked = { ...route, gas: gas + checksGasOf(DEFAULT_GAS, ids, checks), isChecked: true, checks };
    return limitWithin(standing, checked) === null ? null : 'checked';
  };

/** What an order over these sources takes beside its route where it is sent checked: gas, and data counted in calls of the usual length. */
export const checksOf =
  (way: WayOf, model: GasModel) =>
  (ids: readonly string[], checks: number | null = 0): { gas: bigint; calls: number } =>
    checks !== null && way(ids, checks) === 'checked'
      ? { gas: checksGasOf(model, ids, checks), calls: venuesIn(ids) + moreChecks(ids, checks) }
      : { gas: 0n, calls: 0 };

/** Code of the reason why nothing is sent for an owner: its transactions have reverted, or it has not spent enough yet. */
export const refusalCodeOf = (dealings: readonly Dealing[]): 'TOO_MANY_REVERTS' | 'UNPROVEN_ACCOUNT' =>
  dealings.some(({ kind }) => kind === 'revert') ? 'TOO_MANY_REVERTS' : 'UNPROVEN_ACCOUNT';
