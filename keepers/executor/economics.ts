/** What an order costs the service, what its fee has paid for, and whether the executor can pay. */
import { gasOf, isTooDear, worthWei } from '../../core/swap/pricing.js';
import { OWN } from '../../core/swap/source.js';
import type { Part } from '../../core/swap/split.js';
import type { Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swaps/swap-log.js';
import { noteExecutor } from '../../ledger/swaps/swap-executors.js';
import type { Head } from '../../liquidity/eth.js';
import { checkGasIn } from '../../liquidity/planner.js';
import type { ExecutorDeps } from './executor.js';

/** What is said of the executor's funds is said again this often. */
const NOTE_FUNDS_MS = 60_000;
/** Our own curve and two calls: as dear as an order usually gets. */
const FULL_ROUTE = [OWN, 'a', 'b'];

export interface Economics {
  /** What the fee has paid for, in gas, when the order is executed by these parts. */
  paidGas(quote: SwapQuote, parts: readonly Part[]): bigint;
  /** Whether the fee, as it is worth now, is too far below what the transaction costs now. What can't be priced can't be worth it. */
  loses(quote: SwapQuote, transaction: { data: Hex; gas: bigint }, head: Head): Promise<boolean>;
  /** As of the last look. */
  isFunded(): boolean;
  /** Whether servers should hear of the executor's funds again. */
  isDue(): boolean;
  /** Says, where servers find it, whether there is ETH for an order of every kind at twice the present price of gas. */
  noteFunds(head: Head): Promise<void>;
}

type Deps = Pick<
  ExecutorDeps,
  'writer' | 'outbox' | 'marketData' | 'gasModel' | 'feeMarginBps' | 'maxLossBps' | 'nowMs' | 'logger'
>;

export function createEconomics(deps: Deps): Economics {
  const { writer, outbox, marketData, gasModel, maxLossBps, nowMs, logger } = deps;
  let isFunded = true;
  let notedMs = Number.NEGATIVE_INFINITY;

  return {
    paidGas({ route }, parts) {
      const ids = parts.map(({ id }) => id);
      return ((gasOf(gasModel, ids) + checkGasIn(route)) * (10_000n + BigInt(deps.feeMarginBps))) / 10_000n;
    },
    async loses({ sellToken, feeUnits }, { data, gas }, head) {
      if (maxLossBps === undefined) return false;
      const price = await marketData.gasPrice(sellToken, head, Math.floor(nowMs() / 1_000));
      if (price === null) return true;
      return isTooDear(await marketData.costWei(data, gas, head), worthWei(feeUnits, price), maxLossBps);
    },
    isFunded: () => isFunded,
    isDue: () => !isFunded || nowMs() - notedMs >= NOTE_FUNDS_MS,
    async noteFunds(head) {
      const { balanceWei } = outbox.status();
      if (balanceWei === null) return;
      const funded = balanceWei >= gasOf(gasModel, FULL_ROUTE) * 2n * head.baseFeeWei;
      if (funded === isFunded && nowMs() - notedMs < NOTE_FUNDS_MS) return;
      if (isFunded && !funded)
        logger.error({ signer: outbox.signer, balanceWei: `${balanceWei}` }, 'the executor lacks ETH');
      isFunded = funded;
      await writer.tx((tx) => noteExecutor(tx, { signer: outbox.signer, isFunded, timeMs: nowMs() }));
      notedMs = nowMs();
    },
  };
}
