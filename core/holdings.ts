/** What several endpoints say that the vault holds of a token, held against what the ledger explains. */

/** What a token answered: units, or that it did not answer, or answered something that is no balance. */
export type Said = bigint | 'no_answer' | 'bad_answer';

export type HoldingsVerdict =
  /** The vault holds what the ledger explains. */
  | { kind: 'agreed' }
  /** An endpoint says what the ledger explains, another one says otherwise, and nothing has more votes. */
  | { kind: 'contradicted' }
  /** Two endpoints and more than for anything else say so; less than zero is missing. */
  | { kind: 'different'; differenceUnits: bigint }
  /** Not the ledger's amount, and not said by enough. The difference is the one that is nearest to zero. */
  | { kind: 'doubt'; differenceUnits: bigint }
  /** Nobody has a balance. */
  | { kind: 'silent'; code: 'no_answer' | 'bad_answer' };

/** How many endpoints must say the same. */
export const ENOUGH_VOTES = 2;

/**
 * Judges what endpoints say of one block, one vote each. A balance is believed when two endpoints say it and fewer any other; without such a one the
 * ledger stands by its own amount as soon as one endpoint says it, too. Votes without a balance count only when there are no others.
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
  // Where some say more and others less, what may be missing matters.
  const missing = differences.filter((units) => units < 0n);
  if (missing.length === 0) return { kind: 'doubt', differenceUnits: nearest };
  return { kind: 'doubt', differenceUnits: missing.reduce((most, one) => (one > most ? one : most)) };
}

/** What at least two say and fewer say anything else; null for none. */
function mostNamed(balances: readonly bigint[]): bigint | null {
  const counts = new Map<bigint, number>();
  for (const units of balances) counts.set(units, (counts.get(units) ?? 0) + 1);
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1]);
  if (first === undefined || first[1] < ENOUGH_VOTES || first[1] === second?.[1]) return null;
  return first[0];
}

const magnitude = (units: bigint): bigint => (units < 0n ? -units : units);

/** A traded token, as the vault was compared with the ledger. */
interface TradedToken {
  /** What the ledger explains. */
  expectedUnits: bigint;
  /** Transfers took some of it. */
  isShort: boolean;
  /** Something else is wrong with it. */
  isQuarantined: boolean;
}

/** Fewer tokens that transfers took of halt nothing: what happens to a single one may be its issuer's doing. */
const HALTING_TOKENS = 2;

/**
 * Whether what is missing is everybody's matter: transfers took of several traded tokens, and none that the vault holds anything of is whole. As
 * long as one is, its markets are backed, and what is missing is the matter of the others': an issuer of several tokens can take them back.
 */
export function isRobbed(traded: readonly TradedToken[]): boolean {
  const isWhole = (one: TradedToken): boolean => !one.isShort && !one.isQuarantined && one.expectedUnits > 0n;
  return traded.filter(({ isShort }) => isShort).length >= HALTING_TOKENS && !traded.some(isWhole);
}
