import type { Market } from '../../../core/types.js';
import { markPrice, midPrice } from './prices.js';
import { coinOf, spotMetaOf } from './spot-meta.js';
import type { InfoDeps, InfoHandler } from './types.js';

/** Markets, and one context per market at the same place. */
export const spotMetaAndAssetCtxs: InfoHandler = async (_request, deps) => {
  const markets = deps.gateway.markets();
  return [spotMetaOf(markets), await Promise.all(markets.map((market) => contextOf(market, deps)))];
};

/** Day volumes and supplies are not kept here: clients need the keys, and zero says unknown. */
async function contextOf(market: Market, deps: InfoDeps): Promise<object> {
  const markPx = await markPrice(market, deps);
  return {
    coin: coinOf(market),
    prevDayPx: markPx,
    dayNtlVlm: '0.0',
    dayBaseVlm: '0.0',
    markPx,
    midPx: midPrice(market, deps),
    circulatingSupply: '0.0',
    totalSupply: '0.0',
  };
}
