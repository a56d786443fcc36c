/**
 * Limit orders: signed for a price that the market may bring within weeks. One is executed as if it had been quoted just now, once the best
 * route brings what was signed after the fee of the moment. Until then it is looked at in turns, without a transaction.
 */
import { grossUnits, netUnits } from '../../core/swap/partner.js';
import {
  feeUnits,
  gasOf,
  isNoRoute,
  termsCalls,
  termsGas,
  withVolatility,
  type NoRoute,
  type RoutePlan,
} from '../../core/swap/pricing.js';
import { callsIn, isOwnOnly } from '../../core/swap/paths.js';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import type { PendingOrder, SwapAttempt } from '../../ledger/swaps/swap-log.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import { isFailedCall, onOne, type EthReader, type Head } from '../../liquidity/eth.js';
import { readFunds } from '../../liquidity/funds.js';
import { planSent, type SentQuestion } from '../../liquidity/checked-plan.js';
import { checkGasIn, encodeRoute, permitIn, planRoute } from '../../liquidity/planner.js';
import { confirmed, surveyOf } from '../chain/quorum.js';
import type { ExecutorDeps } from './deps.js';
import type { Risk } from './risk.js';

/** How long a transaction of a limit order may be mined: as for an order that was quoted now, since its fee and route are those of now. */
const SEND_SEC = 120;
const FUNDS_INTERVAL_MS = 60_000;
/** How long a lack of funds on which most endpoints agreed needs no second word. */
const AGREED_MS = 600_000;
/** An order whose owner lacks the funds for so long ends, so that orders with funds get its turns. */
const UNFUNDED_MS = 3_600_000;
/** How long an order is left alone that the market reaches and the contracts refuse, as for a receiver whom the token pays nothing. */
const REST_MS = 60_000;
/**
 * How much more than what was signed a route over pools has to bring, in 10,000ths: at the limit itself the smallest trade before it would make
 * its transaction revert, which counts against the owner.
 */
const SPARE_BPS = 3n;
/** Of a thousand: routes that are worse than what was signed by no more than this are quoted by their venues, which count. */
const NEARLY = 1_001n;

interface Waits {
  code: string;
  message: string;
}

const NOT_REACHED: Waits = {
  code: 'LIMIT_NOT_REACHED',
  message: 'The market does not bring the signed amounts after the fee at the moment',
};
const UNFUNDED: Waits = {
  code: 'INSUFFICIENT_FUNDS',
  message: 'The owner lacks the balance or the allowance to Permit2; the order ends when that stays so for an hour',
};

interface LimitOrders {
  /**
   * The order with the route, the fee and the amounts of now; why it waits where they are not what was signed, or where some route brings
   * them and none that is sent for an owner of that risk.
   */
  requoted(
    one: PendingOrder,
    head: Head,
    risk?: Pick<Risk, 'way' | 'checks' | 'refusal'>,
  ): Promise<{ order: PendingOrder } | { waits: Waits }>;
  /**
   * Why an order can't be paid for by its owner, as of a look in the last minute; null when it can, or when nobody knows. One endpoint's word
   * holds up no order against most of the others. `isOver`: most endpoints say so, and it has been so for an hour.
   */
  unfunded(one: PendingOrder, attempts: readonly SwapAttempt[]): Promise<(Waits & { isOver: boolean }) | null>;
  /** Leaves an order alone for a while. */
  rest(orderId: string): void;
  isResting(orderId: string): boolean;
  /** Last second at which a transaction may be mined. */
  untilSec(quote: SwapQuote): number;
  /** Forgets orders that are not among these. */
  keep(ids: ReadonlySet<string>): void;
}

export function createLimitOrders(deps: ExecutorDeps): LimitOrders {
  const { rpc, marketData, gasModel, feeMarginBps, gasVolatilityBps = 0, toleranceBps, nowMs } = deps;
  const { monotonicMs = nowMs } = deps;
  const nowSec = (): number => Math.floor(nowMs() / 1_000);
  /** When an order's funds were looked at, what was seen, and when most endpoints last said that they lack. */
  const looked = new Map<string, { atMs: number; isFunded: boolean; agreedMs: number }>();
  const restingUntilMs = new Map<string, number>();

  async function look(one: PendingOrder): Promise<boolean> {
    const known = looked.get(one.order.id);
    if (known !== undefined && monotonicMs() - known.atMs < FUNDS_INTERVAL_MS) return known.isFunded;
    let isFunded = await onOne(rpc, (node) => hasFunds(node, one)).catch((error: unknown) => {
      // A token that does not answer is watched by the watcher.
      if (isFailedCall(error)) return true;
      throw error;
    });
    let { agreedMs } = known ?? { agreedMs: Number.NEGATIVE_INFINITY };
    if (!isFunded && monotonicMs() - agreedMs >= AGREED_MS) {
      const said = await votedFunds(one);
      isFunded = said === true;
      if (said === false) agreedMs = monotonicMs();
    }
    looked.set(one.order.id, { atMs: monotonicMs(), isFunded, agreedMs });
    return isFunded;
  }

  /** What most endpoints say of the funds; null when none of the answers is that of most. */
  const votedFunds = async (one: PendingOrder): Promise<boolean | null> =>
    confirmed(await surveyOf(rpc, (node) => hasFunds(node, one)), String);

  return {
    async requoted(one, head, risk) {
      const { quote, permit } = one;
      const { kind, sellToken, buyToken, preference, sellUnits, minBuyUnits } = quote;
      const atSec = nowSec();
      const gasPrice = await marketData.gasPrice(sellToken, head, atSec);
      if (gasPrice === null) return { waits: NO_GAS_PRICE };
      const price = withVolatility(gasPrice, gasVolatilityBps);
      const checkGas = checkGasIn(quote.route);
      const besides = checkGas + (permit === null ? 0n : gasModel.permit) + termsGas(gasModel, quote);
      const calls = (permit === null ? 0 : 1) + termsCalls(quote);
      const reaches = ({ inUnits, outUnits }: RoutePlan, scale = 1n, slack = 1n): boolean =>
        kind === 'sell'
          ? netUnits(outUnits, quote) * slack >= minBuyUnits * scale
          : inUnits * scale <= sellUnits * slack;
      const isEnough = (plan: RoutePlan): boolean =>
        isOwnOnlyRoute(plan) ? reaches(plan) : reaches(plan, 10_000n + SPARE_BPS, 10_000n);
      const best = (question: Omit<SentQuestion, 'way'>): Promise<RoutePlan | NoRoute> => {
        if (risk !== undefined) return planSent(marketData, { ...question, way: risk.way }, head, atSec);
        const { boundOf: _, feeOf, ...anyones } = question;
        return planRoute(marketData, { ...anyones, feeOf: (ids) => feeOf(ids, 0) }, head, atSec);
      };
      const enough = async (checks?: Risk['checks']): Promise<RoutePlan | null> => {
        const question = {
          ...{ kind, sellToken, buyToken, preference, toleranceBps },
          amountUnits: kind === 'sell' ? sellUnits : grossUnits(minBuyUnits, quote),
          feeOf: (ids: readonly string[], counted: number | null) => {
            const checked = checks?.(ids, counted) ?? { gas: 0n, calls: 0 };
            const gas = gasOf(gasModel, ids) + besides + checked.gas;
            return feeUnits(gas, price, feeMarginBps, callsIn(ids) + calls + checked.calls);
          },
          isWorthAsking: (plan: RoutePlan) => reaches(plan, 1_000n, NEARLY),
          // A route that brings less is not sent.
          boundOf: (plan: RoutePlan) => {
            if (!isEnough(plan)) return null;
            return kind === 'sell' ? grossUnits(minBuyUnits, quote) : sellUnits - plan.feeUnits;
          },
        };
        const plan = await best(question);
        if (!isNoRoute(plan) && isEnough(plan)) return plan;
        // Our own route may be taken although a better one alone brings enough.
        if (preference !== 'preferService') return null;
        const any = await best({ ...question, preference: 'auto' });
        return isNoRoute(any) || !isEnough(any) ? null : any;
      };
      const plan = await enough(risk?.checks);
      if (plan === null) {
        // With what its owner's orders cost beside, or by no route that is sent for its owner.
        const isFee = risk === undefined || (await enough()) !== null;
        return { waits: isFee ? NOT_REACHED : risk.refusal };
      }
      const route = encodeRoute(plan.parts, { checkGas, permit: permit === null ? null : permitIn(quote.route) });
      const buyUnits = netUnits(plan.outUnits, quote);
      const now = { feeUnits: plan.feeUnits, expectedSellUnits: plan.inUnits, buyUnits, route };
      return { order: { ...one, quote: { ...quote, ...now } } };
    },
    async unfunded(one, attempts) {
      if (await look(one)) return null;
      const newest = attempts.at(-1);
      // A transaction that fails for want of funds has the same code, and is another reason.
      const isKnown = newest?.result === 'refused' && newest.message === UNFUNDED.message;
      const sinceMs = isKnown ? newest.timeMs : nowMs();
      const isOver = nowMs() - sinceMs >= UNFUNDED_MS && (await votedFunds(one)) === false;
      return { ...UNFUNDED, isOver };
    },
    rest: (orderId) => void restingUntilMs.set(orderId, monotonicMs() + REST_MS),
    isResting: (orderId) => monotonicMs() < (restingUntilMs.get(orderId) ?? Number.NEGATIVE_INFINITY),
    untilSec: ({ validToSec }) => Math.min(validToSec, nowSec() + SEND_SEC),
    keep(ids) {
      for (const map of [looked, restingUntilMs]) for (const id of map.keys()) if (!ids.has(id)) map.delete(id);
    },
  };
}

const NO_GAS_PRICE: Waits = {
  code: 'INSUFFICIENT_LIQUIDITY',
  message: 'Nothing prices gas in the sell token at the moment',
};

/**
 * Whether the owner has the tokens, and Permit2 may take them; the latter does not count where the order brings an approval. A token that says
 * nothing is watched by the watcher.
 */
async function hasFunds(eth: EthReader, { quote, permit }: PendingOrder): Promise<boolean> {
  const { owner, sellToken: token, sellUnits } = quote;
  const { domain } = JSON.parse(quote.typedData) as OrderTypedData;
  const { balanceUnits, allowanceUnits } = await readFunds(eth, { token, owner, spender: domain.verifyingContract });
  const suffices = (units: bigint | null): boolean => units === null || units >= sellUnits;
  return suffices(balanceUnits) && (permit !== null || suffices(allowanceUnits));
}

const isOwnOnlyRoute = ({ parts }: RoutePlan): boolean => parts.every(({ id }) => isOwnOnly(id));
