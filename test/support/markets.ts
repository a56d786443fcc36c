import { createMarket } from '../../core/market.js';
import type { Address, Market, Token } from '../../core/types.js';

const token = (symbol: string, digit: string, decimals: number): Token => ({
  symbol,
  address: `0x${digit.repeat(40)}`,
  decimals,
});

export const WETH = token('WETH', '4', 18);
export const USDC = token('USDC', '8', 6);
export const DAI = token('DAI', '6', 18);
export const CBBTC = token('cbBTC', 'c', 8);

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
