import type { Gateway } from '../engine.js';
import { midPrice } from './prices.js';
import { coinOf } from './spot-meta.js';
import type { InfoHandler } from './types.js';

/** Middle price by coin; a coin with an empty side is left out. */
export const allMids: InfoHandler = (_request, { gateway }) => midsOf(gateway);

/** Middle prices of all markets. */
export function midsOf(gateway: Pick<Gateway, 'book' | 'markets'>): Record<string, string> {
  const mids = gateway.markets().map((market) => [coinOf(market), midPrice(market, { gateway })] as const);
  return Object.fromEntries(mids.flatMap(([coin, mid]) => (mid === null ? [] : [[coin, mid]])));
}
