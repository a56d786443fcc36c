/** Where the swap API and the executor see prices. */
import type { RpcPool } from '../../keepers/chain/pool.js';
import { unevenTokens } from '../../keepers/watcher/tokens/transfer-watch.js';
import { quarantinedTokens } from '../../ledger/chain/token-findings.js';
import { createMarketData, type MarketData } from '../../liquidity/market-data.js';
import type { SwapConfig } from '../settings/swap.js';
import type { RoleContext } from './context.js';

export function marketDataOf(context: RoleContext, swap: SwapConfig, rpc: RpcPool): MarketData {
  const { config, markets, logger, keepers } = context;
  const { custodian, curveBook, entrypoint } = config.manifest.contracts;
  const { venues, wrappedNative } = swap;
  return createMarketData(
    {
      eth: rpc,
      contracts: { custodian, curveBook, entrypoint, settler: swap.settler },
      markets: () => markets,
      quarantined: () => quarantinedTokens(context.watcherStatus().findings),
      uneven: () => unevenTokens(keepers.transfers?.() ?? []),
      venues: venues.map(({ kind, contracts }) => kind.create(rpc, contracts)),
      wrappedNative,
      gasPriceOracle: config.GAS_PRICE_ORACLE,
    },
    (venue, error) => logger.warn({ venue, err: error }, 'external liquidity can not be read'),
  );
}
