/** The least that an order of a market must be worth. */
import { ceilDiv, parseDecimal, powerOfTen } from './amounts.js';
import { ownValue } from './token-names.js';
import type { Market } from './types.js';

/**
 * Least values of orders as plain decimals in quote tokens, by pair, or by quote token: its symbol, or its lower-case address. Zero is
 * none.
 */
export type MinOrderValues = Readonly<Record<string, string>>;

/** What a market that nothing names has, by the symbol of its quote token: about ten dollars. */
export const DEFAULT_MIN_ORDER_VALUES: MinOrderValues = {
  USDC: '10',
  USDT: '10',
  DAI: '10',
  WETH: '0.004',
  cbBTC: '0.0001',
};
/** And of any other quote token: none, since nobody here knows what one is worth. */
export const OTHER_MIN_ORDER_VALUE = '0';

/** Least value of an order of a market, in quote units. */
export type MinOrderUnits = (market: Pick<Market, 'pair' | 'quote'>) => bigint;

/**
 * What `values` says of a market: of its pair, else of its quote token's address, else of that one's symbol, else the default; in quote
 * units, rounded up. Throws AmountError `bad_decimal`.
 */
export function createMinOrderUnits(values: MinOrderValues): MinOrderUnits {
  // A listing never changes, and every order asks.
  const known = new WeakMap<object, bigint>();
  return (market) => {
    const found = known.get(market);
    if (found !== undefined) return found;
    const { pair, quote } = market;
    const text = ownValue(values, pair) ?? ownValue(values, quote.address) ?? ownValue(values, quote.symbol);
    const { digits, scale } = parseDecimal(
      text ?? ownValue(DEFAULT_MIN_ORDER_VALUES, quote.symbol) ?? OTHER_MIN_ORDER_VALUE,
    );
    const units = ceilDiv(digits * powerOfTen(quote.decimals), powerOfTen(scale));
    known.set(market, units);
    return units;
  };
}

/** Names of pairs that are not listed, and of tokens that no listed pair is quoted in: misspelt, or not listed yet. */
export function unusedMinOrderValues(
  markets: readonly Pick<Market, 'pair' | 'quote'>[],
  values: MinOrderValues,
): string[] {
  const known = new Set(markets.flatMap(({ pair, quote }): string[] => [pair, quote.address, quote.symbol]));
  return Object.keys(values).filter((name) => !known.has(name));
}
