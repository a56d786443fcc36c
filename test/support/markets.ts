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
