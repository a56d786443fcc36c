/** Where the swap API and the executor see prices. */
import type { RpcPool } from '../../keepers/chain/pool.js';
import { createMarketData, type MarketData } from '../../liquidity/market-data.js';
import { createUniswapV3 } from '../../liquidity/uniswap-v3.js';
import type { SwapConfig } from '../settings/swap.js';
import type { Shared } from './shared.js';

export function marketDataOf({ config, markets, logger }: Shared, swap: SwapConfig, rpc: RpcPool): MarketData {
  const { custodian, curveBook } = config.manifest.contracts;
  const { uniswapV3, wrappedNative } = swap;
  return createMarketData(
    {
      eth: rpc,
      contracts: { custodian, curveBook },
      markets: () => markets,
      venues: uniswapV3 === null ? [] : [createUniswapV3(rpc, uniswapV3)],
      wrappedNative,
      gasPriceOracle: config.GAS_PRICE_ORACLE,
    },
    (venue, error) => logger.warn({ venue, err: error }, 'external liquidity can not be read'),
  );
}
