/** Candles, tickers and trades of markets. */
import { isInterval } from '../../../core/market-data/intervals.js';
import { ticksToPrice, unitsToSize } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import { canonicalDecimal, withPoint } from '../../../core/wire/decimal.js';
import { WireError } from '../../../core/wire/errors.js';
import { asObject, asText, asUint } from '../../../core/wire/shape.js';
import { marketTrades } from '../../../ledger/views/trades.js';
import { candleRow, quoteAmount, tradeRow } from '../../market-data/wire.js';
import { MAX_RECENT_TRADES } from '../limits.js';
import { coinOf, midPrice, spotMetaOf } from './markets.js';
import type { InfoDeps, InfoHandler } from './types.js';

/**
 * Candles of a market from the one that contains `startTime` to the one that contains `endTime`, oldest first: at most the newest 5,000 of
 * them. There is one for every interval since the first trade; none for an unknown coin.
 */
export const candleSnapshot: InfoHandler = async (request, { gateway, marketData, clock }) => {
  const req = asObject(request.req, 'req');
  const coin = asText(req.coin, 'req.coin', 64);
  const interval = asText(req.interval, 'req.interval', 8);
  if (!isInterval(interval)) throw new WireError('req.interval', 'is not an interval');
  const fromMs = asUint(req.startTime ?? 0, 'req.startTime');
  const toMs = asUint(req.endTime ?? clock(), 'req.endTime');
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return [];
  const candles = await marketData.candles(market, interval, { fromMs, toMs });
  return candles.map((one) => candleRow(market, one));
};

/** The latest trades of a market, newest first: each part of a fill at its maker's price. Empty for an unknown coin. */
export const recentTrades: InfoHandler = async (request, { db, gateway }) => {
  const coin = asText(request.coin, 'coin', 64);
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return [];
  const trades = await marketTrades(db.reads, market.index, MAX_RECENT_TRADES);
  return trades.map((trade) => tradeRow(market, trade));
};

/** Markets, and one context per market at the same place. */
export const spotMetaAndAssetCtxs: InfoHandler = async (_request, deps) => [
  spotMetaOf(deps.gateway.markets()),
  await contextsOf(deps),
];

type ContextDeps = Pick<InfoDeps, 'gateway' | 'config' | 'marketData'>;

/** Contexts of all markets, in listing order. */
export const contextsOf = (deps: ContextDeps): Promise<object[]> =>
  Promise.all(deps.gateway.markets().map((market) => contextOf(market, deps)));

/**
 * Volume of the last 24 hours, and prices: `prevDayPx` is the price 24 hours ago, for a younger market its first one, and before any trade
 * the mark price. Supplies are zero, which means unknown: clients need the keys.
 */
export async function contextOf(market: Market, deps: ContextDeps): Promise<object> {
  const { baseUnits, quoteUnits, previousTicks } = await deps.marketData.day(market);
  const markPx = await markPrice(market, deps);
  return {
    coin: coinOf(market),
    prevDayPx: previousTicks === null ? markPx : withPoint(ticksToPrice(market, previousTicks)),
    dayNtlVlm: quoteAmount(market, quoteUnits),
    dayBaseVlm: withPoint(unitsToSize(market, baseUnits)),
    markPx,
    midPx: midPrice(market, deps),
    circulatingSupply: '0.0',
    totalSupply: '0.0',
  };
}

/**
 * Mark price with as many decimals as the tick, rounded down to one: the middle of the book, else the last trade, else the
 * configured reference, else one tick. Clients read the price increment from its digits, so it is never null.
 */
async function markPrice(market: Market, deps: ContextDeps): Promise<string> {
  const price = midPrice(market, deps) ?? (await lastTradePrice(market, deps)) ?? referencePrice(market, deps);
  return onTickDecimals(market, price ?? market.tickSize);
}

async function lastTradePrice(market: Market, { marketData }: ContextDeps): Promise<string | null> {
  const { lastTicks } = await marketData.day(market);
  return lastTicks === null ? null : ticksToPrice(market, lastTicks);
}

function referencePrice(market: Market, { config }: ContextDeps): string | null {
  const price = config.referencePrices[market.pair];
  return price === undefined ? null : canonicalDecimal(price);
}

/** Truncates or pads a decimal to the decimals of the tick, keeping at least one. */
function onTickDecimals(market: Market, price: string): string {
  const places = Math.max(market.tickSize.split('.')[1]?.length ?? 0, 1);
  const [whole = '0', fraction = ''] = price.split('.');
  return `${whole}.${fraction.slice(0, places).padEnd(places, '0')}`;
}
