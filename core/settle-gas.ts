/**
 * Which settlements the requests behind them have paid for, in gas: whoever asks for a withdrawal pays for a transaction, and has the operator
 * pay for another. The figures are bounds of what the contracts use, for WETH and for USDC behind its proxy.
 */

/** What a request in a transaction of its own costs whoever makes it, at least. */
export const REQUEST_GAS = 28_300n;

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

/** Part of a transaction of settlements. */
export interface SettlePart {
  token: string;
  isRaise: boolean;
}

/** Gas of a transaction that settles these claims, at most. */
export function settleGas(parts: readonly SettlePart[]): bigint {
  const tokens = new Set(parts.filter(({ isRaise }) => isRaise).map(({ token }) => token));
  return parts.reduce(
    (sum, { isRaise }) => sum + (isRaise ? SETTLE_GAS.raise : SETTLE_GAS.unchanged),
    SETTLE_GAS.transaction + SETTLE_GAS.token * BigInt(tokens.size),
  );
}

/** Whether so many requests, each in a transaction of its own, cost no less than a transaction that settles these claims. */
export function isPaid(parts: readonly SettlePart[], requests: number): boolean {
  return BigInt(requests) * REQUEST_GAS >= settleGas(parts);
}

/** How many more requests would pay for a transaction that settles this claim alone; 0 when none is needed. */
export function requestsShort(part: SettlePart, requests: number): number {
  let short = 0;
  while (!isPaid([part], requests + short)) short += 1;
  return short;
}
