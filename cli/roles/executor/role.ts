import type { z } from 'zod';
import { DEFAULT_GAS, withExtraGas } from '../../../core/swap/pricing.js';
import { createExecutor } from '../../../keepers/executor/executor.js';
import { startGasMeter, withMeter } from '../../../keepers/gas-meter.js';
import type { Loop } from '../../../keepers/loop.js';
import { quarantinedTokens } from '../../../ledger/chain/token-findings.js';
import type { Writer } from '../../../ledger/types.js';
import type { BaseConfig } from '../../base-config.js';
import { integer, privateKey } from '../../settings/fields.js';
import { marketDataOf } from '../liquidity.js';
import { defineRole } from '../role.js';
import { keeperOutbox, keyOf, rpcPool, type Shared } from '../shared.js';

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
    SWAP_MAX_REVERTS: integer(1, 1_000, 2).describe(
      "most reverted transactions of one owner's orders since its last fill; beyond it nothing is sent for the owner until it has swapped by itself",
    ),
    SWAP_NEW_ACCOUNT_GAS: integer(0, 10_000_000, 94_000).describe(
      'gas that orders of an account may burn by reverting before its first fill or swap: what setting it up takes. Fills and swaps add to it; less than 80,000 refuses new accounts',
    ),
    SWAP_NEW_CONTRACT_GAS: integer(0, 10_000_000, 94_000).describe(
      'the same for an account with code, whose check can burn all the gas of a transaction, 150,000 to 240,000: that much lets such accounts begin with an order instead of two swaps',
    ),
    SWAP_NEW_PERMIT_GAS: integer(0, 10_000_000, 60_000).describe(
      'added to SWAP_NEW_ACCOUNT_GAS for an order that brings its approval by signature, which is burnt, too, if it reverts; less than 41,000 refuses such orders of new accounts',
    ),
  },
  status: ({ lastSwapActMs, pendingSwaps }) => ({ lastActMs: lastSwapActMs, waiting: pendingSwaps }),
  async start({ shared, writer, signal, wakeBy }) {
    const loop = startExecutor(shared, writer, signal);
    wakeBy(['generations', 'swaps'], loop.wake);
    return [loop];
  },
});

type ExecutorShared = Shared<BaseConfig & z.output<z.ZodObject<typeof executor.settings>>>;

/** Throws unless its key and a settler are there, which the configuration has checked. */
export function startExecutor(shared: ExecutorShared, writer: Writer, signal: AbortSignal): Loop {
  const { config, db, logger } = shared;
  const { swap } = config;
  if (swap === null) throw new Error('the executor needs a settler');
  const rpc = rpcPool(shared, 'executor');
  const outbox = keeperOutbox(shared, 'executor', {
    ...{ writer, rpc, privateKey: keyOf(shared, 'executor'), order: 'queue' },
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
    newPermitGas: BigInt(config.SWAP_NEW_PERMIT_GAS),
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
