import type { Market, Token } from '../../../core/types.js';
import type { InfoHandler, InfoDeps } from './types.js';
import { canonicalDecimal, withPoint } from '../../../core/wire/decimal.js';
import { formatUnits, parseDecimal } from '../../../core/amounts.js';
import { ticksToPrice, lotsToSize, unitsToSize } from '../../../core/market.js';
import { recentFills } from '../../../ledger/views/reads.js';
import type { Gateway } from '../engine.js';
import type { BookLevel } from '../../../core/book.js';
import { WireError } from '../../../core/wire/errors.js';
import { asText } from '../../../core/wire/shape.js';
import { MAX_BOOK_LEVELS, MAX_RECENT_TRADES } from '../limits.js';
import { marketTrades } from '../../../ledger/views/trades.js';

/** Coin of a market in queries and fills. */
export const coinOf = (market: Market): string => `@${market.index}`;

/** Size decimals shown for a token that no market has as its base. */
const QUOTE_SZ_DECIMALS = 2;

/** Every token of a listed market once, in listing order: its place is its index. */
export function tokensOf(markets: readonly Market[]): Token[] {
  const tokens = markets.flatMap((market) => [market.base, market.quote]);
  return [...new Map(tokens.map((token) => [token.address, token])).values()];
}

/** Decimals of the finest lot in which the token is traded as base. */
function szDecimals(token: Token, markets: readonly Market[]): number {
  const lots = markets.filter((market) => market.base.address === token.address);
  if (lots.length === 0) return QUOTE_SZ_DECIMALS;
  return lots.map((market) => market.lotSize.split('.')[1]?.length ?? 0).reduce((a, b) => Math.max(a, b));
}

/** Markets and tokens. Clients find rows by place as well as by index, so both agree. */
export function spotMetaOf(markets: readonly Market[]): { universe: object[]; tokens: object[] } {
  const tokens = tokensOf(markets);
  const indexOf = (token: Token): number => tokens.findIndex((one) => one.address === token.address);
  return {
    universe: markets.map((market) => ({
      tokens: [indexOf(market.base), indexOf(market.quote)],
      name: coinOf(market),
      index: market.index,
      isCanonical: false,
    })),
    tokens: tokens.map((token, index) => ({
      name: token.symbol,
      szDecimals: szDecimals(token, markets),
      weiDecimals: token.decimals,
      index,
      tokenId: token.address.slice(0, 34),
      isCanonical: true,
      evmContract: { address: token.address, evm_extra_wei_decimals: 0 },
      fullName: null,
      deployerTradingFeeShare: '0.0',
    })),
  };
}

/** Listed markets and their tokens. */
export const spotMeta: InfoHandler = (_request, { gateway }) => spotMetaOf(gateway.markets());

/** Exact middle between the best bid and the best ask, null when a side is empty. */
export function midPrice(market: Market, { gateway }: { gateway: Pick<InfoDeps['gateway'], 'book'> }): string | null {
  const bid = gateway.book().bestTicks(market.index, 'bid');
  const ask = gateway.book().bestTicks(market.index, 'ask');
  if (bid === null || ask === null) return null;
  const { digits, scale } = parseDecimal(ticksToPrice(market, bid + ask));
  return withPoint(formatUnits(digits * 5n, scale + 1));
}

/**
 * Mark price with as many decimals as the tick, rounded down to one: the middle of the book, else the last trade, else the
 * configured reference, else one tick. Clients read the price increment from its digits, so it is never null.
 */
export async function markPrice(market: Market, deps: InfoDeps): Promise<string> {
  const price = midPrice(market, deps) ?? (await lastTradePrice(market, deps)) ?? referencePrice(market, deps);
  return onTickDecimals(market, price ?? market.tickSize);
}

async function lastTradePrice(market: Market, { db }: InfoDeps): Promise<string | null> {
  const last = (await recentFills(db.reads, market.index, 1)).at(-1);
  if (last === undefined || last.baseUnits === 0n) return null;
  const ticks = (last.quoteUnits * market.lotUnits) / (last.baseUnits * market.tickLotUnits);
  return ticksToPrice(market, ticks);
}

function referencePrice(market: Market, { config }: InfoDeps): string | null {
  const price = config.referencePrices[market.pair];
  return price === undefined ? null : canonicalDecimal(price);
}

/** Cuts or pads a decimal to the decimals of the tick, keeping at least one. */
function onTickDecimals(market: Market, price: string): string {
  const places = Math.max(market.tickSize.split('.')[1]?.length ?? 0, 1);
  const [whole = '0', fraction = ''] = price.split('.');
  return `${whole}.${fraction.slice(0, places).padEnd(places, '0')}`;
}

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

/** Middle price by coin; a coin with an empty side is left out. */
export const allMids: InfoHandler = (_request, { gateway }) => midsOf(gateway);

/** Middle prices of all markets. */
export function midsOf(gateway: Pick<Gateway, 'book' | 'markets'>): Record<string, string> {
  const mids = gateway.markets().map((market) => [coinOf(market), midPrice(market, { gateway })] as const);
  return Object.fromEntries(mids.flatMap(([coin, mid]) => (mid === null ? [] : [[coin, mid]])));
}

/** Up to 20 levels per side, best first, bids before asks; null for an unknown coin. Levels are never aggregated. */
export const l2Book: InfoHandler = (request, { gateway, clock }) => {
  for (const field of ['nSigFigs', 'mantissa']) {
    if (request[field] !== undefined && request[field] !== null) throw new WireError(field, 'is not supported');
  }
  const coin = asText(request.coin, 'coin');
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return null;
  return bookOf(market, gateway, clock());
};

/** A market's book as clients see it. */
export function bookOf(market: Market, gateway: Pick<Gateway, 'book'>, timeMs: number): object {
  const sideOf = (side: 'bid' | 'ask'): object[] =>
    gateway
      .book()
      .levels(market.index, side, MAX_BOOK_LEVELS)
      .map((level) => levelOf(market, level));
  return { coin: coinOf(market), time: timeMs, levels: [sideOf('bid'), sideOf('ask')] };
}

function levelOf(market: Market, level: BookLevel): object {
  return {
    px: withPoint(ticksToPrice(market, level.priceTicks)),
    sz: withPoint(lotsToSize(market, level.lots)),
    n: level.orders,
  };
}

/** The latest trades of a market, newest first: each part of a fill at its maker's price. Empty for an unknown coin. */
export const recentTrades: InfoHandler = async (request, { db, gateway }) => {
  const coin = asText(request.coin, 'coin', 64);
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return [];
  const trades = await marketTrades(db.reads, market.index, MAX_RECENT_TRADES);
  return trades.map((trade) => ({
    coin,
    // The letter is the taker's: who consumes asks buys.
    side: trade.side === 'ask' ? 'B' : 'A',
    px: withPoint(ticksToPrice(market, trade.priceTicks)),
    sz: withPoint(unitsToSize(market, trade.baseUnits)),
    time: trade.timestampMs,
    hash: trade.txHash,
    tid: trade.tid,
    users: trade.side === 'ask' ? [trade.taker, trade.maker] : [trade.maker, trade.taker],
  }));
};
