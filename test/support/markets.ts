import { createMarket } from '../../core/market.js';
import type { Address, Market, Token } from '../../core/types.js';

const address = (digit: string): Address => `0x${digit.repeat(40)}`;

export const WETH: Token = { symbol: 'WETH', address: address('1'), decimals: 18 };
export const USDC: Token = { symbol: 'USDC', address: address('2'), decimals: 6 };
export const DAI: Token = { symbol: 'DAI', address: address('3'), decimals: 18 };

/** WETH-USDC with a tick of 0.01 and a lot of 0.0001. */
export const WETH_USDC: Market = createMarket({
  index: 0,
  base: WETH,
  quote: USDC,
  lotUnits: 10n ** 14n,
  tickLotUnits: 1n,
  maxTtlSec: 60,
});

/** WETH-DAI on the same grid; it shares its base token with WETH-USDC. */
export const WETH_DAI: Market = createMarket({
  index: 1,
  base: WETH,
  quote: DAI,
  lotUnits: 10n ** 14n,
  tickLotUnits: 10n ** 12n,
  maxTtlSec: 60,
});

const CBBTC: Token = { symbol: 'cbBTC', address: address('c'), decimals: 8 };

/**
 * Markets that share tokens, with lots of few units and quote amounts that rarely divide evenly, so that every rounding shows.
 * cbBTC-WETH has as its quote what the first two have as their base.
 */
export const coarseMarkets = (): Market[] =>
  [
    { base: WETH, quote: USDC, lotUnits: 10n, tickLotUnits: 1n },
    { base: WETH, quote: DAI, lotUnits: 10n, tickLotUnits: 3n },
    { base: CBBTC, quote: WETH, lotUnits: 100n, tickLotUnits: 7n },
  ].map((listing, index) => createMarket({ index, maxTtlSec: 60, ...listing }));

/** Maker addresses in ascending order. */
export const MAKERS: readonly Address[] = ['1', '2', '3', '4'].map((digit): Address => `0x${digit.repeat(40)}`);
