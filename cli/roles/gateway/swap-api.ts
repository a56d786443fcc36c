import type Router from '@koa/router';
import { DEFAULT_GAS, withExtraGas } from '../../../core/swap/pricing.js';
import type { Address } from '../../../core/types.js';
import { quarantinedTokens } from '../../../ledger/chain/token-findings.js';
import { tokenRows } from '../../../deploy/chain-preset.js';
import type { SwapDeps } from '../../../server/swap/deps.js';
import { swapRoutes } from '../../../server/swap/endpoints.js';
import type { SwapToken } from '../../../server/swap/deps.js';
import { explorerUrlOf, riskLimits } from '../../settings/swap.js';
import { rpcPool, type Shared } from '../shared.js';
import { marketDataOf } from '../liquidity.js';

/** The swap API, or null for a deployment without a settler. `onOrder` is called when an order was accepted. */
export function swapRouter(shared: Shared, onOrder: SwapDeps['onOrder']): Router | null {
  const { config, db } = shared;
  const { swap, manifest } = config;
  if (swap === null) return null;
  const rpc = rpcPool(shared, 'swap');
  const { custodian, curveBook, entrypoint } = manifest.contracts;
  const perMinute = (name: string, requests: number) => ({ name: `swap-${name}`, requests, windowSec: 60 });
  return swapRoutes(
    {
      db,
      eth: rpc,
      chainId: manifest.chainId,
      permit2: swap.permit2,
      settler: swap.settler,
      forbiddenReceivers: [
        ...[custodian, curveBook, entrypoint, swap.settler, swap.permit2, ...swap.periphery],
        ...(swap.uniswapV3 === null ? [] : [swap.uniswapV3.factory, swap.uniswapV3.router, swap.uniswapV3.quoter]),
      ],
      wrappedNative: swap.wrappedNative,
      markets: () => shared.markets,
      explorerUrl: explorerUrlOf(config),
      get tokens() {
        // Nobody wrote a list: whatever is traded may be quoted, as soon as it is known.
        return swap.tokens.length > 0 ? swap.tokens : listedTokens(shared);
      },
      marketData: marketDataOf(shared, swap, rpc),
      gasModel: withExtraGas(DEFAULT_GAS, BigInt(config.SWAP_EXTRA_GAS)),
      feeMarginBps: config.SWAP_FEE_MARGIN_BPS,
      gasVolatilityBps: config.SWAP_GAS_VOLATILITY_BPS,
      maxGas: BigInt(config.SWAP_MAX_GAS),
      ...riskLimits(config),
      toleranceBps: config.SWAP_TOLERANCE_BPS,
      quoteTtlSec: config.SWAP_QUOTE_TTL_SEC,
      orderTtlSec: config.SWAP_ORDER_TTL_SEC,
      limits: {
        tokens: perMinute('tokens', config.SWAP_READS_PER_MINUTE),
        quotes: perMinute('quotes', config.SWAP_QUOTES_PER_MINUTE),
        submissions: perMinute('submissions', config.SWAP_ORDERS_PER_MINUTE),
        orders: perMinute('orders', config.SWAP_READS_PER_MINUTE),
      },
      readiness: shared.readiness,
      quarantined: () => quarantinedTokens(shared.watcherStatus().findings),
      nowMs: shared.nowMs,
      headMs: () => shared.watcherStatus().observedHeadTimestampMs,
      onOrder,
    },
    manifest.deploymentId,
  );
}

function listedTokens({ config, markets }: Shared): SwapToken[] {
  const tokens = new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
  return tokenRows(config.manifest.chainId, [...tokens.values()]).map((row) => ({
    ...row,
    address: row.address as Address,
  }));
}
