/** Compares what several endpoints report as the vault's balance of a token with what the ledger explains. */

/** What one endpoint reports for a token: units, or no answer, or an answer that is no balance. */
export type Said = bigint | 'no_answer' | 'bad_answer';

export type HoldingsVerdict =
  /** The vault holds what the ledger explains. */
  | { kind: 'agreed' }
  /** An endpoint reports the ledger's amount, another one a different amount, and no amount has two votes and the most. */
  | { kind: 'contradicted' }
  /** At least two endpoints report this difference, and more than any other; a negative difference is missing from the vault. */
  | { kind: 'different'; differenceUnits: bigint }
  /**
   * No endpoint reports the ledger's amount, and none of the others has enough votes. The difference is the one nearest to zero, of those
   * below zero if there are any.
   */
  | { kind: 'doubt'; differenceUnits: bigint }
  /** No endpoint reports a balance. */
  | { kind: 'silent'; code: 'no_answer' | 'bad_answer' };

/** How many endpoints must report the same balance. */
export const ENOUGH_VOTES = 2;

/**
 * Judges what endpoints report for one block, one vote each. A balance is believed when at least two endpoints report it and fewer report
 * any other. Without such a balance, a single endpoint that reports the ledger's amount makes it `contradicted`, otherwise it is a `doubt`.
 * Votes without a balance count only when there are no others.
 */
export function judgeHoldings(votes: readonly Said[], expectedUnits: bigint): HoldingsVerdict {
  const balances = votes.filter((vote): vote is bigint => typeof vote === 'bigint');
  if (balances.length === 0) {
    return { kind: 'silent', code: votes.includes('no_answer') ? 'no_answer' : 'bad_answer' };
  }
  if (balances.every((units) => units === expectedUnits)) return { kind: 'agreed' };
  const believed = mostNamed(balances);
  if (believed !== null)
    return believed === expectedUnits
      ? { kind: 'agreed' }
      : { kind: 'different', differenceUnits: believed - expectedUnits };
  if (balances.includes(expectedUnits)) return { kind: 'contradicted' };
  const differences = balances.map((units) => units - expectedUnits);
  const nearest = differences.reduce((least, one) => (magnitude(one) < magnitude(least) ? one : least));
  // If some report more and others less, the shortfall is what matters.
  const missing = differences.filter((units) => units < 0n);
  if (missing.length === 0) return { kind: 'doubt', differenceUnits: nearest };
  return { kind: 'doubt', differenceUnits: missing.reduce((most, one) => (one > most ? one : most)) };
}

/** The balance that at least two endpoints report and fewer report any other; null for none. */
function mostNamed(balances: readonly bigint[]): bigint | null {
  const counts = new Map<bigint, number>();
  for (const units of balances) counts.set(units, (counts.get(units) ?? 0) + 1);
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1]);
  if (first === undefined || first[1] < ENOUGH_VOTES || first[1] === second?.[1]) return null;
  return first[0];
}

const magnitude = (units: bigint): bigint => (units < 0n ? -units : units);

/** Result of comparing the vault with the ledger for one traded token. */
interface TradedToken {
  /** Balance that the ledger explains. */
  expectedUnits: bigint;
  /** Transfers took some of it. */
  isShort: boolean;
  /** Something else is wrong with it. */
  isQuarantined: boolean;
}

/** The ledger halts only when transfers took some of at least this many tokens: a single token's loss may be an act of its issuer. */
const HALTING_TOKENS = 2;

/**
 * Whether the ledger must halt because the vault was robbed: transfers took some of several traded tokens, and no token that the vault
 * should hold is complete. As long as one is complete, its markets are backed, and only the markets of the others stop: one issuer of
 * several tokens could have taken them back.
 */
export function isRobbed(traded: readonly TradedToken[]): boolean {
  const isWhole = (one: TradedToken): boolean => !one.isShort && !one.isQuarantined && one.expectedUnits > 0n;
  return traded.filter(({ isShort }) => isShort).length >= HALTING_TOKENS && !traded.some(isWhole);
}
