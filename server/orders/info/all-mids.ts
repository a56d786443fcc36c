import { midPrice } from './prices.js';
import { coinOf } from './spot-meta.js';
import type { InfoHandler } from './types.js';

/** Middle price by coin; a coin with an empty side is left out. */
export const allMids: InfoHandler = (_request, deps) => {
  const mids = deps.gateway.markets().map((market) => [coinOf(market), midPrice(market, deps)] as const);
  return Object.fromEntries(mids.filter(([, mid]) => mid !== null));
};
