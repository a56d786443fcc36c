/** Exact fractions of amounts as decimals. */
import { formatUnits, powerOfTen } from '../../core/amounts.js';
import type { Market } from '../../core/types.js';

/** Digits after the point of shares and of basis points. */
const SHARE_DIGITS = 6;

/** A part of a whole, rounded towards zero to six digits; null when the whole is zero. */
export function shareOf(part: bigint, whole: bigint): string | null {
  return whole === 0n ? null : formatUnits((part * powerOfTen(SHARE_DIGITS)) / whole, SHARE_DIGITS);
}

/** The same in basis points. */
export const bpsOf = (part: bigint, whole: bigint): string | null => shareOf(part * 10_000n, whole);

/** Digits of an average price beyond those that a price in whole units has. */
const PRICE_DIGITS = 12;

/** Quote units for base units as a price, rounded towards zero; null for no base. */
export function averagePrice(market: Market, quoteUnits: bigint, baseUnits: bigint): string | null {
  if (baseUnits === 0n) return null;
  const digits = powerOfTen(market.base.decimals + PRICE_DIGITS);
  return formatUnits((quoteUnits * digits) / baseUnits, market.quote.decimals + PRICE_DIGITS);
}

/** A middle as a price, exact: half of a 256th of a tick is 0.001953125 of one. */
export function middlePrice(market: Market, halfSubticks: bigint): string {
  const value = halfSubticks * 1_953_125n * market.tickLotUnits * powerOfTen(market.base.decimals);
  return formatUnits(value / market.lotUnits, market.quote.decimals + 9);
}
