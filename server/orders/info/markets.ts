import type { Market, Token } from '../../../core/types.js';
import type { InfoHandler, InfoDeps } from './types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { formatUnits, parseDecimal } from '../../../core/amounts.js';
import { ticksToPrice } from '../../../core/market.js';
import type { Gateway } from '../engine.js';

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

/** Middle price by coin; a coin with an empty side is left out. */
export const allMids: InfoHandler = (_request, { gateway }) => midsOf(gateway);

/** Middle prices of all markets. */
export function midsOf(gateway: Pick<Gateway, 'book' | 'markets'>): Record<string, string> {
  const mids = gateway.markets().map((market) => [coinOf(market), midPrice(market, { gateway })] as const);
  return Object.fromEntries(mids.flatMap(([coin, mid]) => (mid === null ? [] : [[coin, mid]])));
}
