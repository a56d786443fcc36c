/** The least that an order of a market must be worth. */
import { ceilDiv, parseDecimal, powerOfTen } from './amounts.js';
import { ownValue } from './token-names.js';
import type { Market } from './types.js';

/**
 * Least values of orders as plain decimals in quote tokens. A key is a pair, or a quote token's symbol or lower-case address. Zero means no
 * least value.
 */
export type MinOrderValues = Readonly<Record<string, string>>;

/** Defaults by the symbol of the quote token: about ten dollars. */
export const DEFAULT_MIN_ORDER_VALUES: MinOrderValues = {
  USDC: '10',
  USDT: '10',
  DAI: '10',
  WETH: '0.004',
  cbBTC: '0.0001',
};
/** Default for any other quote token: none, because its worth is unknown. */
export const OTHER_MIN_ORDER_VALUE = '0';

/** Least value of an order of a market, in quote units. */
export type MinOrderUnits = (market: Pick<Market, 'pair' | 'quote'>) => bigint;

/**
 * The least value of a market by `values`: of its pair, else of its quote token's address, else of that token's symbol, else the default;
 * in quote units, rounded up. Throws AmountError `bad_decimal`.
 */
export function createMinOrderUnits(values: MinOrderValues): MinOrderUnits {
  // Cached: a listing never changes, and each order needs the value.
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

/** Keys that match no listed pair and no quote token of one: misspelt, or not listed yet. */
export function unusedMinOrderValues(
  markets: readonly Pick<Market, 'pair' | 'quote'>[],
  values: MinOrderValues,
): string[] {
  const known = new Set(markets.flatMap(({ pair, quote }): string[] => [pair, quote.address, quote.symbol]));
  return Object.keys(values).filter((name) => !known.has(name));
}
