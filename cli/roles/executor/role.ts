import type { z } from 'zod';
import { DEFAULT_GAS, withExtraGas } from '../../../core/swap/pricing.js';
import { createExecutor } from '../../../keepers/executor/executor.js';
import type { Loop } from '../../../keepers/loop.js';
import { quarantinedTokens } from '../../../ledger/chain/token-findings.js';
import { storeKeeper } from '../../../ledger/transactions/senders.js';
import type { Writer } from '../../../ledger/types.js';
import type { BaseConfig } from '../../base-config.js';
import { integer, privateKey } from '../../settings/fields.js';
import { riskLimits } from '../../settings/swap.js';
import { marketDataOf } from '../liquidity.js';
import { defineRole } from '../role.js';
import { keeperOutbox, keyOf, rpcPool, type RoleContext } from '../context.js';

/** Executes signed orders. */
export const executor = defineRole({
  name: 'executor',
  signs: true,
  settings: {
    EXECUTOR_PRIVATE_KEY: privateKey
      .optional()
      .describe("sends signed orders; default: the manifest's executor account"),
    SWAP_MAX_LOSS_BPS: integer(0, 10_000, 1_000).describe(
      'most of its cost that an order may lose by a fee that does not cover it any more; beyond it the order waits',
    ),
    SWAP_MAX_SENDS: integer(1, 100, 5).describe('most transactions sent for one order'),
  },
  status: ({ lastSwapActMs, pendingSwaps }) => ({ lastActMs: lastSwapActMs, waiting: pendingSwaps }),
  async start({ context, writer, signal, wakeBy }) {
    const loop = await startExecutor(context, writer, signal);
    wakeBy(['generations', 'swaps'], loop.wake);
    return [loop];
  },
});

type ExecutorContext = RoleContext<BaseConfig & z.output<z.ZodObject<typeof executor.settings>>>;

/** Throws unless its key and a settler are there, which the configuration has checked. */
export async function startExecutor(context: ExecutorContext, writer: Writer, signal: AbortSignal): Promise<Loop> {
  const { config, db, logger } = context;
  const { swap } = config;
  if (swap === null) throw new Error('the executor needs a settler');
  const rpc = rpcPool(context, 'executor');
  const outbox = keeperOutbox(context, 'executor', {
    ...{ writer, rpc, privateKey: keyOf(context, 'executor'), order: 'queue' },
    // Orders are valid for a short time, and transactions signed for them become useless with them, so the contract need not be asked about
    // old keys.
    serves: { contract: swap.settler, mayAct: () => Promise.resolve(true) },
  });
  await writer.tx((tx) => storeKeeper(tx, 'executor', { signer: outbox.signer, budgetWei: null }));
  const executor = createExecutor({
    db,
    writer,
    outbox,
    rpc,
    settler: swap.settler,
    marketData: marketDataOf(context, swap, rpc),
    readiness: context.readiness,
    quarantined: () => quarantinedTokens(context.watcherStatus().findings),
    toleranceBps: config.SWAP_TOLERANCE_BPS,
    maxSends: config.SWAP_MAX_SENDS,
    maxGas: BigInt(config.SWAP_MAX_GAS),
    gasModel: withExtraGas(DEFAULT_GAS, BigInt(config.SWAP_EXTRA_GAS)),
    feeMarginBps: config.SWAP_FEE_MARGIN_BPS,
    gasVolatilityBps: config.SWAP_GAS_VOLATILITY_BPS,
    maxLossBps: config.SWAP_MAX_LOSS_BPS,
    ...riskLimits(config),
    pollIntervalMs: config.POLL_INTERVAL_MS,
    nowMs: context.nowMs,
    monotonicMs: context.monotonicMs,
    logger,
  });
  return executor.start(signal);
}
