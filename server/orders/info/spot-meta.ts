import type { Market, Token } from '../../../core/types.js';
import type { InfoHandler } from './types.js';

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
