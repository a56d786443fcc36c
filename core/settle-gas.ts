/**
 * Which settlements those who ask for them have paid for, in gas: whoever asks for a withdrawal pays for a transaction, and has the operator pay
 * for another. Gas is compared with gas and not with money: both are of the same chain, at a price that neither of them sets, and the settlement is sent
 * with the last of the requests that pay for it, or at the end of its claim's interval. The figures are bounds of what the contracts use, for WETH and for
 * USDC behind its proxy.
 */
import { minBig, toSafeInt } from './amounts.js';

/** What a call of the custodian costs whoever makes it, at least. */
const CALL_GAS = {
  /** The transaction and what its first call reads, shared by all requests and executions in it. */
  transaction: 25_800n,
  /** For each. A deposit is the maker's own affair, and the operator pays settlements. */
  requested: 2_500n,
  executed: 20_000n,
  deposited: 0n,
  settled: 0n,
} as const;

/** What a request in a transaction of its own costs whoever makes it, at least. */
export const REQUEST_GAS = CALL_GAS.transaction + CALL_GAS.requested;

/** What is counted for one claim at most; more than a settlement of it costs by itself. */
export const PAID_GAS_MAX = 100_000n;

/** Gas that an event of the custodian stands for, in a transaction with so many requests and executions of anybody. */
export function eventGas(kind: keyof typeof CALL_GAS, callsInTransaction: number): bigint {
  return paysGas(kind) ? CALL_GAS[kind] + CALL_GAS.transaction / BigInt(callsInTransaction) : 0n;
}

/** Whether events of this kind count towards a settlement. */
export const paysGas = (kind: keyof typeof CALL_GAS): boolean => CALL_GAS[kind] > 0n;

/** What a transaction of settlements costs the operator, at most, where claims of each token stand already. */
const SETTLE_GAS = {
  /** The transaction, before it settles anything. */
  transaction: 37_300n,
  /** For each token of which a claim is raised. */
  token: 17_800n,
  /** For each claim that is raised. */
  raise: 11_900n,
  /** For each claim that stays as it is. */
  unchanged: 6_300n,
} as const;

/** The least that any transaction of settlements may cost. */
export const LEAST_SETTLE_GAS = SETTLE_GAS.transaction + SETTLE_GAS.unchanged;

/** Part of a transaction of settlements. */
export interface SettlePart {
  token: string;
  isRaise: boolean;
}

/** Gas of a transaction that settles these claims, at most; `beside` settlements that are sent anyway, what they add to it. */
export function settleGas(parts: readonly SettlePart[], beside: readonly SettlePart[] = []): bigint {
  const tokensOf = (some: readonly SettlePart[]): string[] =>
    some.filter(({ isRaise }) => isRaise).map(({ token }) => token);
  const known = new Set(tokensOf(beside));
  const tokens = new Set(tokensOf(parts).filter((token) => !known.has(token)));
  return parts.reduce(
    (sum, { isRaise }) => sum + (isRaise ? SETTLE_GAS.raise : SETTLE_GAS.unchanged),
    (beside.length > 0 ? 0n : SETTLE_GAS.transaction) + SETTLE_GAS.token * BigInt(tokens.size),
  );
}

/** A sum of what was paid for one claim. */
export const addGas = (a: bigint, b: bigint): bigint => minBig(a + b, PAID_GAS_MAX);

/** How many more requests, each in a transaction of its own, pay for so much gas; 0 when none is needed. */
export function requestsShort(neededGas: bigint, paidGas: bigint): number {
  const shortGas = neededGas - paidGas;
  return shortGas <= 0n ? 0 : toSafeInt((shortGas + REQUEST_GAS - 1n) / REQUEST_GAS);
}
