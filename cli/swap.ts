import type Router from '@koa/router';
import { DEFAULT_GAS, withExtraGas } from '../core/swap/pricing.js';
import type { Address } from '../core/types.js';
import { tokenRows } from '../deploy/chain-preset.js';
import { quarantinedTokens } from '../ledger/chain/token-findings.js';
import type { RpcPool } from '../keepers/chain/pool.js';
import { startGasMeter, withMeter } from '../keepers/gas-meter.js';
import { createExecutor } from '../keepers/executor/executor.js';
import type { Loop } from '../keepers/loop.js';
import { createMarketData, type MarketData } from '../liquidity/market-data.js';
import { createUniswapV3 } from '../liquidity/uniswap-v3.js';
import type { SwapDeps } from '../server/swap/deps.js';
import { swapRoutes } from '../server/swap/endpoints.js';
import type { SwapToken } from '../server/swap/deps.js';
import { explorerUrlOf, type SwapConfig } from './swap-settings.js';
import { keeperOutbox, rpcPool, type Shared } from './shared.js';

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

/** The keeper that executes signed orders. Throws unless its log, its key and a settler are there, which the configuration has checked. */
export function startExecutor(shared: Shared, signal: AbortSignal): Loop {
  const { config, db, logger } = shared;
  const writer = shared.writers.get('swap');
  const { swap, executorPrivateKey } = config;
  if (writer === undefined || swap === null || executorPrivateKey === null) {
    throw new Error('the executor needs its log, its key and a settler');
  }
  const rpc = rpcPool(shared, 'executor');
  const outbox = keeperOutbox(shared, 'executor', {
    ...{ writer, rpc, privateKey: executorPrivateKey, order: 'queue' },
    // The times of orders are short: what is signed for one is over with it, whoever may execute.
    serves: { contract: swap.settler, mayAct: () => Promise.resolve(true) },
  });
  const executor = createExecutor({
    db,
    writer,
    outbox,
    rpc,
    settler: swap.settler,
    marketData: marketDataOf(shared, swap, rpc),
    readiness: shared.readiness,
    quarantined: () => quarantinedTokens(shared.watcherStatus().findings),
    toleranceBps: config.SWAP_TOLERANCE_BPS,
    maxSends: config.SWAP_MAX_SENDS,
    maxGas: BigInt(config.SWAP_MAX_GAS),
    gasModel: withExtraGas(DEFAULT_GAS, BigInt(config.SWAP_EXTRA_GAS)),
    feeMarginBps: config.SWAP_FEE_MARGIN_BPS,
    maxLossBps: config.SWAP_MAX_LOSS_BPS,
    maxReverts: config.SWAP_MAX_REVERTS,
    newAccountGas: BigInt(config.SWAP_NEW_ACCOUNT_GAS),
    newContractGas: BigInt(config.SWAP_NEW_CONTRACT_GAS),
    pollIntervalMs: config.POLL_INTERVAL_MS,
    nowMs: shared.nowMs,
    monotonicMs: shared.monotonicMs,
    logger,
  });
  const { nowMs, monotonicMs } = shared;
  const meter = startGasMeter(
    { role: 'executor', db, writer, rpc, signer: outbox.signer, nowMs, monotonicMs, logger },
    signal,
  );
  return withMeter(executor.start(signal), meter);
}

function listedTokens({ config, markets }: Shared): SwapToken[] {
  const tokens = new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
  return tokenRows(config.manifest.chainId, [...tokens.values()]).map((row) => ({
    ...row,
    address: row.address as Address,
  }));
}

function marketDataOf({ config, markets, logger }: Shared, swap: SwapConfig, rpc: RpcPool): MarketData {
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
