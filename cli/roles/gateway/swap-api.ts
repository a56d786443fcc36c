import type Router from '@koa/router';
import type { Middleware } from 'koa';
import { DEFAULT_GAS, withExtraGas } from '../../../core/swap/pricing.js';
import type { Address } from '../../../core/types.js';
import { quarantinedTokens } from '../../../ledger/chain/token-findings.js';
import { tokenRows } from '../../../deploy/chain-preset.js';
import { readOrderMarks } from '../../../ledger/swaps/owner-orders.js';
import type { SwapOrdersSource } from '../../../server/stream/account-feed.js';
import { newestOrders } from '../../../server/swap/order.js';
import type { SwapDeps } from '../../../server/swap/deps.js';
import { swapRoutes } from '../../../server/swap/endpoints.js';
import type { SwapToken } from '../../../server/swap/deps.js';
import { explorerUrlOf, riskLimits } from '../../settings/swap.js';
import { rpcPool, type RoleContext } from '../context.js';
import { marketDataOf } from '../liquidity.js';

/** The swap API, or null for a deployment without a settler. `onOrder` is called when an order was accepted; `guard` as in `routesOf`. */
export function swapRouter(
  context: RoleContext,
  onOrder: SwapDeps['onOrder'],
  guard: Middleware | null = null,
): Router | null {
  const { config, db } = context;
  const { swap, manifest } = config;
  if (swap === null) return null;
  const rpc = rpcPool(context, 'swap');
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
        ...swap.venues.flatMap(({ contracts }) => Object.values(contracts)),
      ],
      wrappedNative: swap.wrappedNative,
      markets: () => context.markets,
      explorerUrl: explorerUrlOf(config),
      get tokens() {
        // Nobody wrote a list: whatever is traded may be quoted, as soon as it is known.
        return swap.tokens.length > 0 ? swap.tokens : listedTokens(context);
      },
      marketData: marketDataOf(context, swap, rpc),
      gasModel: withExtraGas(DEFAULT_GAS, BigInt(config.SWAP_EXTRA_GAS)),
      feeMarginBps: config.SWAP_FEE_MARGIN_BPS,
      gasVolatilityBps: config.SWAP_GAS_VOLATILITY_BPS,
      maxGas: BigInt(config.SWAP_MAX_GAS),
      ...riskLimits(config),
      toleranceBps: config.SWAP_TOLERANCE_BPS,
      partnerMaxBps: config.SWAP_PARTNER_MAX_BPS,
      quoteTtlSec: config.SWAP_QUOTE_TTL_SEC,
      orderTtlSec: config.SWAP_ORDER_TTL_SEC,
      limits: {
        tokens: perMinute('tokens', config.SWAP_READS_PER_MINUTE),
        quotes: perMinute('quotes', config.SWAP_QUOTES_PER_MINUTE),
        submissions: perMinute('submissions', config.SWAP_ORDERS_PER_MINUTE),
        orders: perMinute('orders', config.SWAP_READS_PER_MINUTE),
      },
      ownerQuotesPerMinute: config.SWAP_OWNER_QUOTES_PER_MINUTE,
      readiness: context.readiness,
      quarantined: () => quarantinedTokens(context.watcherStatus().findings),
      nowMs: context.nowMs,
      headMs: () => context.watcherStatus().observedHeadTimestampMs,
      onOrder,
    },
    manifest.deploymentId,
    guard,
  );
}

/** Gasless orders for those who subscribe to them; null for a deployment without a settler. */
export function swapOrdersOf({ config, db, markets }: RoleContext): SwapOrdersSource | null {
  if (config.swap === null) return null;
  const deps = { db, markets: () => markets, explorerUrl: explorerUrlOf(config) };
  return {
    newest: (owner) => newestOrders(deps, owner),
    marks: (owners) => readOrderMarks(db.reads, owners),
  };
}

function listedTokens({ config, markets }: RoleContext): SwapToken[] {
  const tokens = new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
  return tokenRows(config.manifest.chainId, [...tokens.values()]).map((row) => ({
    ...row,
    address: row.address as Address,
  }));
}
