/** Compares an order's cost with its fee, and checks whether the executor can pay for transactions. */
import { ceilDiv, maxBig, minBig } from '../../core/amounts.js';
import { checksGasOf, feeUnits, gasOf, mostCostWei, termsGas, worthWei } from '../../core/swap/pricing.js';
import { callsIn } from '../../core/swap/paths.js';
import { OWN } from '../../core/swap/source.js';
import { gasLimitOf, leastLimitOf } from '../../core/swap/trust.js';
import type { Part } from '../../core/swap/split.js';
import type { Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import { noteExecutor } from '../../ledger/swaps/swap-executors.js';
import type { Head } from '../../liquidity/eth.js';
import { checkGasIn, decodeRoute, permitIn } from '../../liquidity/planner.js';
import type { ExecutorDeps } from './deps.js';

/** How often the report of the executor's funds is repeated. */
const NOTE_FUNDS_MS = 60_000;
/** Our own curve and two calls: the most expensive usual order. */
const FULL_ROUTE = [OWN, 'a', 'b'];
/** Least tip per gas of a transaction. */
const TIP_WEI = 1_000_000n;

/** Limits of a transaction: gas, and wei per gas, where null means the sender's general limit. */
export interface Terms {
  gasLimit: bigint;
  maxFeeWei: bigint | null;
}

/**
 * Terms under which a transaction can't cost more than `boundWei`, whatever replaces it and however much gas it burns: the gas limit is
 * lowered below `whole` in exchange for a price per gas that still suffices after a full block. Null when not even a tenth more gas than it
 * took can be paid for so.
 */
export function termsWithin(boundWei: bigint, gas: bigint, whole: bigint, baseFeeWei: bigint): Terms | null {
  const gasLimit = minBig(whole, boundWei / (ceilDiv(baseFeeWei * 9n, 8n) + TIP_WEI));
  if (gasLimit < minBig(whole, leastLimitOf(gas))) return null;
  return { gasLimit, maxFeeWei: boundWei / gasLimit };
}

/** A transaction as it was simulated. */
interface Costly {
  data: Hex;
  gas: bigint;
  /** Most gas that it may be given. */
  mostGas: bigint;
  parts: readonly Part[];
}

/** Why the service does not pay for a transaction. */
interface Unpaid {
  code: string;
  message: string;
}

export interface Economics {
  /**
   * The first of an order's transactions that the service pays for, with its limits, or why it does not pay for the first one. A better
   * route that is too expensive must not block an affordable one, because anybody can move the market a little and thereby change the best
   * route.
   */
  firstPaid<T extends Costly>(
    quote: SwapQuote,
    transactions: readonly T[],
    hasCode: boolean,
    head: Head,
  ): Promise<(T & Terms) | Unpaid>;
  /** What routes cost beyond the quoted one, which the fee covers, in the sell token; zero when gas has no price. */
  burdenOf(quote: SwapQuote, head: Head): Promise<(ids: readonly string[]) => bigint>;
  /** As of the last check. */
  isFunded(): boolean;
  /** Whether the report of the executor's funds is due again. */
  isDue(): boolean;
  /** Stores for the servers whether the balance covers what nodes require of the sender of any kind of order. */
  noteFunds(head: Head): Promise<void>;
}

type Deps = Pick<
  ExecutorDeps,
  | 'writer'
  | 'outbox'
  | 'settler'
  | 'marketData'
  | 'maxGas'
  | 'gasModel'
  | 'feeMarginBps'
  | 'maxLossBps'
  | 'nowMs'
  | 'logger'
>;

export function createEconomics(deps: Deps): Economics {
  const { writer, outbox, marketData, gasModel, maxLossBps, nowMs, logger } = deps;
  const callsOf = (ids: readonly string[]): bigint => BigInt(callsIn(ids));
  let isFunded = true;
  let notedMs = Number.NEGATIVE_INFINITY;

  /**
   * What the fee of an owner with code has paid for, in gas, when the order is executed by these parts. Such an order is never sent checked, so that
   * no checks are in it.
   */
  function paidGas(quote: SwapQuote, parts: readonly Part[]): bigint {
    const ids = parts.map(({ id }) => id);
    const permitGas = permitIn(quote.route) === null ? 0n : gasModel.permit;
    const besides = checkGasIn(quote.route) + permitGas + termsGas(gasModel, quote);
    return ((gasOf(gasModel, ids) + besides) * (10_000n + BigInt(deps.feeMarginBps))) / 10_000n;
  }

  /** The most that the order may cost by the present value of its fee; null for any cost. A fee without a price counts as zero. */
  async function mostWei({ sellToken, feeUnits: fee }: SwapQuote, head: Head): Promise<bigint | null> {
    if (maxLossBps === undefined) return null;
    const price = await marketData.gasPrice(sellToken, head, Math.floor(nowMs() / 1_000));
    return mostCostWei(price === null ? 0n : worthWei(fee, price), maxLossBps);
  }

  /** Limits under which the service pays for the transaction, or why it does not. */
  async function termsOf(quote: SwapQuote, one: Costly, hasCode: boolean, head: Head): Promise<Terms | Unpaid> {
    const paidFor = hasCode ? minBig(deps.maxGas, paidGas(quote, one.parts)) : deps.maxGas;
    if (one.gas > paidFor) return TOO_MUCH_GAS;
    if (!(await outbox.affords(head.baseFeeWei))) return GAS_TOO_DEAR;
    const gasLimit = one.mostGas;
    const most = await mostWei(quote, head);
    if (most === null) return { gasLimit, maxFeeWei: null };
    const chargeWei = await marketData.chargeWei({ to: deps.settler, data: one.data, gasLimit }, head);
    const terms = termsWithin(maxBig(most - chargeWei, 0n), one.gas, gasLimit, head.baseFeeWei);
    return terms ?? GAS_TOO_DEAR;
  }

  async function neededWei(head: Head): Promise<bigint> {
    const gasLimit = gasLimitOf(
      gasOf(gasModel, FULL_ROUTE) + gasModel.permit + gasModel.partner + checksGasOf(gasModel, FULL_ROUTE),
      false,
    );
    // Of each venue a check, too, and the permit and the partner's terms.
    const calls = FULL_ROUTE.length - 1 + FULL_ROUTE.length + 2;
    const dataWei = await marketData.dataWei(gasLimit, calls, head);
    return gasLimit * outbox.bidWei(head.baseFeeWei) + dataWei;
  }

  return {
    async firstPaid(quote, transactions, hasCode, head) {
      let refusal: Unpaid | null = null;
      for (const transaction of transactions) {
        const terms = await termsOf(quote, transaction, hasCode, head);
        if (!('code' in terms)) return { ...transaction, ...terms };
        refusal ??= terms;
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
    isDue: () => !isFunded || Math.abs(nowMs() - notedMs) >= NOTE_FUNDS_MS,
    async noteFunds(head) {
      const { balanceWei } = outbox.status();
      if (balanceWei === null) return;
      const needed = await neededWei(head).catch((error: unknown) => {
        logger.warn({ err: error }, 'what an order costs could not be read');
        return null;
      });
      if (needed === null) return;
      const funded = balanceWei > 0n && balanceWei >= needed;
      if (funded === isFunded && Math.abs(nowMs() - notedMs) < NOTE_FUNDS_MS) return;
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
