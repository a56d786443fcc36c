/**
 * What the service risks for the orders of one owner, in gas. A transaction that reverts costs the service its gas, and its owner can bring
 * that about, alone or with a maker who takes its quotes away; so what it may burn is held against what the owner has spent. Nothing is
 * forgotten with time, since waiting is free.
 */
import { ceilDiv, minBig } from '../amounts.js';
import { DEFAULT_GAS, gasOf } from './pricing.js';
import { OWN } from './source.js';

/** What the owner of an order pays for one fill at least, by its fee, and what a swap of its own takes. */
const EARNED_GAS = { fill: 160_000n, swap: 96_000n } as const;
/** Beyond this nothing is saved up: two of the dearest orders. */
const MOST_CREDIT_GAS = 700_000n;
/** What a transaction for a key over our curve alone burns at most: Permit2 refuses it, or our curve does, before anything has moved. */
const OWN_GAS = 80_000n;

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
  /** How many of them are pools. */
  pools: number;
  gasLimit: bigint;
  /** What comes before the trade and is burnt, too, if that fails: an approval by signature. Left out for nothing. */
  beforeGas?: bigint;
}

/** A transaction as it would be sent. */
export interface Risky extends Sent {
  /** Whether the owner's account has code, which can burn all the gas of a transaction. */
  isCode: boolean;
}

/** Gas that a transaction may burn. That a pool has moved is seen when everything else is done. */
export const riskGas = ({ pools, gasLimit, isCode, beforeGas = 0n }: Omit<Risky, 'venues'>): bigint =>
  isCode || pools > 0 ? gasLimit : minBig(gasLimit, OWN_GAS + beforeGas);

/**
 * Whether an owner of whom nothing reverted, and nothing is under way, may have one transaction over a pool by itself: who spoils it pays for a trade
 * in that pool. So a new account may begin there; were it to revert, the service would lose more than the account and that trade cost, once.
 */
const isFirstPool = (
  dealings: readonly Dealing[],
  credit: bigint,
  { venues, pools, isCode, beforeGas = 0n }: Omit<Risky, 'gasLimit'>,
): boolean =>
  venues === 1 &&
  pools === 1 &&
  !isCode &&
  credit >= OWN_GAS + beforeGas &&
  dealings.every(({ kind }) => kind !== 'revert');

/** What bounds the risk for an owner, beside what it did. */
interface Limits {
  /** Most reverts since the newest fill, whatever the credit; a swap of the owner's own since the newest revert allows one more. */
  maxReverts: number;
  newAccountGas: bigint;
}

/** How many transactions may be under way or revert before the owner has to pay for a fill or a swap again. */
function revertsLeft(dealings: readonly Dealing[], maxReverts: number): number {
  const hasSwapped = dealings.at(-1)?.kind === 'swap';
  return Math.max(maxReverts - revertsSinceFill(dealings), hasSwapped ? 1 : 0);
}

/**
 * Whether another transaction may be sent for an owner of whom `underWay` may still revert: at once; when one that is under way did not; or
 * not before the owner paid for a fill or a swap. The credit covers what all of them could burn together.
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
  // With the code that the account has by now: an account may get some while transactions for its key are under way.
  const together = underWay.reduce((sum, one) => sum + riskGas({ ...one, isCode: transaction.isCode }), alone);
  return underWay.length < byCount && together <= credit ? 'send' : 'wait';
}

/** Room of a transaction whose owner's code may use it up. */
const SPARE_GAS = 30_000n;

/**
 * The limit of a transaction that takes `gas`. Room for what the market may do until it is mined, another segment of the curve or another tick
 * of a pool, is not for an owner with code, who may use it up.
 */
export const gasLimitOf = (gas: bigint, hasCode: boolean): bigint => (hasCode ? gas : (gas * 13n) / 10n) + SPARE_GAS;

/** The least limit with which a transaction that takes `gas` is sent: a tenth more. */
export const leastLimitOf = (gas: bigint): bigint => ceilDiv(gas * 11n, 10n);

/** What is known of an owner by whom an order was signed, or for whom a quote is asked. */
export interface Standing extends Limits {
  dealings: readonly Dealing[];
  isCode: boolean;
}

/**
 * The limit of a transaction over so many venues that takes `gas`, such that the owner's credit covers what it could burn: one of a key over pools
 * gives up room where credit is scarce. Null when the credit does not cover it, were nothing else under way.
 */
export function limitWithin(
  { dealings, isCode, maxReverts, newAccountGas }: Standing,
  { gas, ...sent }: Omit<Sent, 'gasLimit'> & { gas: bigint },
): bigint | null {
  if (revertsLeft(dealings, maxReverts) <= 0) return null;
  const credit = creditGas(newAccountGas, dealings);
  const whole = gasLimitOf(gas, isCode);
  if (riskGas({ ...sent, gasLimit: whole, isCode }) <= credit) return whole;
  if (isFirstPool(dealings, credit, { ...sent, isCode })) return whole;
  return !isCode && sent.pools > 0 && credit >= leastLimitOf(gas) ? credit : null;
}

/**
 * Whether an order over these sources may be sent for the owner with all the room that a transaction of its kind has as a rule: it may take more
 * gas once it is executed, and less room then. `checkGas` is the check of the owner's signature, `beforeGas` an approval that comes first.
 */
export const mayTake =
  (standing: Standing, checkGas: bigint, beforeGas = 0n) =>
  (ids: readonly string[]): boolean => {
    const gas = gasOf(DEFAULT_GAS, ids) + checkGas + beforeGas;
    const route = { venues: ids.length, pools: ids.filter((id) => id !== OWN).length, beforeGas };
    return limitWithin(standing, { ...route, gas }) === gasLimitOf(gas, standing.isCode);
  };

/** Why nothing is sent for an owner: transactions for it have reverted, or it has not spent enough yet. */
export const refusalCodeOf = (dealings: readonly Dealing[]): 'TOO_MANY_REVERTS' | 'UNPROVEN_ACCOUNT' =>
  dealings.some(({ kind }) => kind === 'revert') ? 'TOO_MANY_REVERTS' : 'UNPROVEN_ACCOUNT';
