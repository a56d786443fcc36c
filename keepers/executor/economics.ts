/** What an order costs the service, what its fee has paid for, and whether the executor can pay. */
import { maxBig, minBig } from '../../core/amounts.js';
import { feeUnits, gasOf, isTooDear, worthWei } from '../../core/swap/pricing.js';
import { OWN } from '../../core/swap/source.js';
import type { Part } from '../../core/swap/split.js';
import type { Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swaps/swap-log.js';
import { noteExecutor } from '../../ledger/swaps/swap-executors.js';
import type { Head } from '../../liquidity/eth.js';
import { checkGasIn, decodeRoute } from '../../liquidity/planner.js';
import type { ExecutorDeps } from './deps.js';

/** What is said of the executor's funds is said again this often. */
const NOTE_FUNDS_MS = 60_000;
/** Our own curve and two calls: as dear as an order usually gets. */
const FULL_ROUTE = [OWN, 'a', 'b'];
/** Room of a transaction whose owner's code may use it up. */
const SPARE_GAS = 30_000n;

/**
 * The limit of a transaction that was simulated. Room for what the market may do until it is mined, another segment of the curve or another tick
 * of a pool, is not for an owner with code, who may use it up.
 */
export const gasLimitOf = (gas: bigint, hasCode: boolean): bigint => (hasCode ? gas : (gas * 13n) / 10n) + SPARE_GAS;

/** A transaction as it was simulated. */
interface Costly {
  data: Hex;
  gas: bigint;
  parts: readonly Part[];
}

/** Why a transaction is not paid for. */
interface Unpaid {
  code: string;
  message: string;
}

export interface Economics {
  /**
   * The first of an order's transactions that the service pays for, or why it does not pay for the first. A better route that is too dear must not
   * hold up one that is not: strangers can move the market a little, and with it what the best route is.
   */
  firstPaid<T extends Costly>(
    quote: SwapQuote,
    transactions: readonly T[],
    hasCode: boolean,
    head: Head,
  ): Promise<T | Unpaid>;
  /** What routes cost beyond the quoted one, which the fee has paid for, in the sell token; nothing where nothing prices gas. */
  burdenOf(quote: SwapQuote, head: Head): Promise<(ids: readonly string[]) => bigint>;
  /** As of the last look. */
  isFunded(): boolean;
  /** Whether servers should hear of the executor's funds again. */
  isDue(): boolean;
  /** Says, where servers find it, whether there is as much ETH as a node asks a sender to hold for an order of every kind. */
  noteFunds(head: Head): Promise<void>;
}

type Deps = Pick<
  ExecutorDeps,
  'writer' | 'outbox' | 'marketData' | 'maxGas' | 'gasModel' | 'feeMarginBps' | 'maxLossBps' | 'nowMs' | 'logger'
>;

export function createEconomics(deps: Deps): Economics {
  const { writer, outbox, marketData, gasModel, maxLossBps, nowMs, logger } = deps;
  const callsOf = (ids: readonly string[]): bigint => BigInt(ids.filter((id) => id !== OWN).length);
  let isFunded = true;
  let notedMs = Number.NEGATIVE_INFINITY;

  /** What the fee has paid for, in gas, when the order is executed by these parts. */
  function paidGas({ route }: SwapQuote, parts: readonly Part[]): bigint {
    const ids = parts.map(({ id }) => id);
    return ((gasOf(gasModel, ids) + checkGasIn(route)) * (10_000n + BigInt(deps.feeMarginBps))) / 10_000n;
  }

  /** Whether the fee, as it is worth now, is too far below what the transaction costs now. What can't be priced can't be worth it. */
  async function loses({ sellToken, feeUnits: fee }: SwapQuote, { data, gas }: Costly, head: Head): Promise<boolean> {
    if (maxLossBps === undefined) return false;
    const price = await marketData.gasPrice(sellToken, head, Math.floor(nowMs() / 1_000));
    if (price === null) return true;
    return isTooDear(await marketData.costWei(data, gas, head), worthWei(fee, price), maxLossBps);
  }

  async function whyUnpaid(quote: SwapQuote, one: Costly, hasCode: boolean, head: Head): Promise<Unpaid | null> {
    const mostGas = hasCode ? minBig(deps.maxGas, paidGas(quote, one.parts)) : deps.maxGas;
    if (one.gas > mostGas) return TOO_MUCH_GAS;
    if (!(await outbox.affords(head.baseFeeWei)) || (await loses(quote, one, head))) return GAS_TOO_DEAR;
    return null;
  }

  async function neededWei(head: Head): Promise<bigint> {
    const gasLimit = gasLimitOf(gasOf(gasModel, FULL_ROUTE), false);
    const dataWei = await marketData.dataWei(gasLimit, FULL_ROUTE.length - 1, head);
    return gasLimit * outbox.bidWei(head.baseFeeWei) + dataWei;
  }

  return {
    async firstPaid(quote, transactions, hasCode, head) {
      let refusal: Unpaid | null = null;
      for (const transaction of transactions) {
        const unpaid = await whyUnpaid(quote, transaction, hasCode, head);
        if (unpaid === null) return transaction;
        refusal ??= unpaid;
      }
      return refusal ?? GAS_TOO_DEAR;
    },
    async burdenOf({ sellToken, route }, head) {
      const price = await marketData.gasPrice(sellToken, head, Math.floor(nowMs() / 1_000));
      const quoted = decodeRoute(route).map(({ id }) => id);
      return (ids) => {
        const gas = gasOf(gasModel, ids) - gasOf(gasModel, quoted);
        if (price === null || gas <= 0n) return 0n;
        const calls = maxBig(callsOf(ids) - callsOf(quoted), 0n);
        const data = { orderWei: calls * (price.data?.callWei ?? 0n), callWei: 0n };
        return feeUnits(gas, { ...price, data }, 0);
      };
    },
    isFunded: () => isFunded,
    isDue: () => !isFunded || nowMs() - notedMs >= NOTE_FUNDS_MS,
    async noteFunds(head) {
      const { balanceWei } = outbox.status();
      if (balanceWei === null) return;
      const needed = await neededWei(head).catch((error: unknown) => {
        logger.warn({ err: error }, 'what an order costs could not be read');
        return null;
      });
      if (needed === null) return;
      const funded = balanceWei > 0n && balanceWei >= needed;
      if (funded === isFunded && nowMs() - notedMs < NOTE_FUNDS_MS) return;
      if (isFunded && !funded)
        logger.error({ signer: outbox.signer, balanceWei: `${balanceWei}` }, 'the executor lacks ETH');
      isFunded = funded;
      await writer.tx((tx) => noteExecutor(tx, { signer: outbox.signer, isFunded, timeMs: nowMs() }));
      notedMs = nowMs();
    },
  };
}

const GAS_TOO_DEAR = {
  code: 'GAS_TOO_DEAR',
  message: 'Gas is dearer at the moment than the service pays, or than the fee covers',
};

const TOO_MUCH_GAS = {
  code: 'TOO_MUCH_GAS',
  message: "The order takes more gas than the service pays for, as when checking the owner's signature is dear",
};
