import { ceilDiv, maxBig, minBig, parseDecimal } from './amounts.js';
import { ownValue } from './token-names.js';
import type { Address, Market, Token } from './types.js';

/**
 * The least that the operator's row should have of each token, as decimals with an optional minus in front, by symbol or by lower-case
 * address. In a token without a floor the row may owe what rounding costs (DUST_UNITS).
 */
export type OperatorFloors = Readonly<Record<string, string>>;

/** The operator's row in one token against its floor. Only this row may be negative; the operator then owes the amount to the makers. */
export interface OperatorStanding {
  token: Token;
  balanceUnits: bigint;
  floorUnits: bigint;
  isBelow: boolean;
  /** The row is so far below its floor that markets of the token must not be quoted. */
  stopsPosting: boolean;
}

/**
 * What the row may owe of a token without a floor, in the token's smallest units. A sale costs the operator at most one unit per leg, which
 * needs no alarm; a larger debt has another cause than rounding, or has grown for long.
 */
const DUST_UNITS = 1_000n;

/**
 * How far the row may be below its floor, or below zero where it has none, before posting stops: a hundredth of a token, and at least a
 * million units, but never more than a hundred tokens. Makers who share a price level take a unit or so per sale from the row, so a stop at
 * the floor itself would let one sale stop every market of the token.
 */
function stopMarginUnits({ decimals }: Token): bigint {
  const oneToken = 10n ** BigInt(decimals);
  return minBig(maxBig(oneToken / 100n, 1_000_000n), 100n * oneToken);
}

const SIGNED_DECIMAL = /^(-?)(.+)$/;

/** Units of a signed decimal, rounded up, so that an alarm comes early rather than late. Throws AmountError `bad_decimal`. */
function floorUnits(text: string, decimals: number): bigint {
  const [, sign = '', decimal = ''] = SIGNED_DECIMAL.exec(text) ?? [];
  const { digits, scale } = parseDecimal(decimal);
  return ceilDiv((sign === '-' ? -digits : digits) * 10n ** BigInt(decimals), 10n ** BigInt(scale));
}

/** Tokens that listed pairs trade, each once, in the order of listing. */
export function servedTokens(markets: readonly Pick<Market, 'base' | 'quote'>[]): Token[] {
  const tokens = new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
  return [...tokens.values()];
}

/** The operator's row in every served token against its floor. A floor by address takes precedence over one by symbol. */
export function operatorStandings(
  tokens: readonly Token[],
  floors: OperatorFloors,
  balanceUnits: (token: Address) => bigint,
): OperatorStanding[] {
  return tokens.map((token) => {
    const balance = balanceUnits(token.address);
    const text = ownValue(floors, token.address) ?? ownValue(floors, token.symbol);
    const floor = text === undefined ? -DUST_UNITS : floorUnits(text, token.decimals);
    const isBelow = balance < floor;
    const stopsPosting = balance < (text === undefined ? 0n : floor) - stopMarginUnits(token);
    return { token, balanceUnits: balance, floorUnits: floor, isBelow, stopsPosting };
  });
}

/** Floors of tokens that no listed pair trades: misspelt, or not listed yet. */
export function unusedFloors(tokens: readonly Token[], floors: OperatorFloors): string[] {
  const known = new Set(tokens.flatMap(({ address, symbol }): string[] => [address, symbol]));
  return Object.keys(floors).filter((name) => !known.has(name));
}
