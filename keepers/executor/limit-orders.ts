/**
 * Limit orders: signed for a price that the market may bring within weeks. One is executed as if it had been quoted just now, once the best
 * route brings what was signed after the fee of the moment. Until then it is looked at in turns, without a transaction.
 */
import { Interface, toQuantity } from 'ethers';
import { feeUnits, gasOf, isNoRoute, withVolatility, type RoutePlan } from '../../core/swap/pricing.js';
import { callsIn, isOwnOnly } from '../../core/swap/paths.js';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import type { PendingOrder, SwapAttempt, SwapQuote } from '../../ledger/swaps/swap-log.js';
import { bytesOf, isFailedCall, onOne, type EthReader, type Head } from '../../liquidity/eth.js';
import { checkGasIn, encodeRoute, permitIn, planRoute } from '../../liquidity/planner.js';
import { confirmed, surveyOf } from '../chain/quorum.js';
import type { ExecutorDeps } from './deps.js';
import type { Risk } from './risk.js';

/** How long a transaction of a limit order may be mined: as for an order that was quoted now, since its fee and route are those of now. */
const SEND_SEC = 120;
const FUNDS_INTERVAL_MS = 60_000;
/** An order whose owner lacks the funds for so long ends, so that orders with funds get its turns. */
const UNFUNDED_MS = 3_600_000;
/** How long an order is left alone that the market reaches and the contracts refuse, as for a receiver whom the token pays nothing. */
const REST_MS = 60_000;
/**
 * How much more than what was signed a route over pools has to bring, in 10,000ths: at the limit itself the smallest trade before it would make
 * its transaction revert, which counts against the owner.
 */
const SPARE_BPS = 3n;
/** Most gas of a call to a token. */
const CALL_GAS = 300_000n;
/** Of a thousand: routes that are worse than what was signed by no more than this are quoted by their venues, which count. */
const NEARLY = 1_001n;

const TOKEN = new Interface([
  'function balanceOf(address) view returns (uint256)',
  'function allowance(address, address) view returns (uint256)',
]);

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
    risk?: Pick<Risk, 'mayTake' | 'checks' | 'refusal'>,
  ): Promise<{ order: PendingOrder } | { waits: Waits }>;
  /**
   * Why an order can't be paid for by its owner, as of a look in the last minute; null when it can, or when nobody knows. `isOver`: most
   * endpoints say so, and it has been so for an hour.
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
  /** When an order's funds were looked at, and what was seen. */
  const looked = new Map<string, { atMs: number; isFunded: boolean }>();
  const restingUntilMs = new Map<string, number>();

  async function look(one: PendingOrder): Promise<boolean> {
    const known = looked.get(one.order.id);
    if (known !== undefined && monotonicMs() - known.atMs < FUNDS_INTERVAL_MS) return known.isFunded;
    const isFunded = await onOne(rpc, (node) => hasFunds(node, one)).catch((error: unknown) => {
      // A token that does not answer is watched by the watcher.
      if (isFailedCall(error)) return true;
      throw error;
    });
    looked.set(one.order.id, { atMs: monotonicMs(), isFunded });
    return isFunded;
  }

  /** Asked again, since one endpoint's word ends no order. */
  async function isSurelyUnfunded(one: PendingOrder): Promise<boolean> {
    const votes = await surveyOf(rpc, (node) => hasFunds(node, one));
    return confirmed(votes, String) === false;
  }

  return {
    async requoted(one, head, risk) {
      const { quote, permit } = one;
      const { kind, sellToken, buyToken, preference, sellUnits, minBuyUnits } = quote;
      const atSec = nowSec();
      const gasPrice = await marketData.gasPrice(sellToken, head, atSec);
      if (gasPrice === null) return { waits: NO_GAS_PRICE };
      const price = withVolatility(gasPrice, gasVolatilityBps);
      const checkGas = checkGasIn(quote.route);
      const besides = checkGas + (permit === null ? 0n : gasModel.permit);
      const calls = permit === null ? 0 : 1;
      const reaches = ({ inUnits, outUnits }: RoutePlan, scale = 1n, slack = 1n): boolean =>
        kind === 'sell' ? outUnits * slack >= minBuyUnits * scale : inUnits * scale <= sellUnits * slack;
      const isEnough = (plan: RoutePlan): boolean =>
        isOwnOnlyRoute(plan) ? reaches(plan) : reaches(plan, 10_000n + SPARE_BPS, 10_000n);
      const enough = async (checks?: Risk['checks']): Promise<RoutePlan | null> => {
        const question = {
          ...{ kind, sellToken, buyToken, preference, toleranceBps },
          amountUnits: kind === 'sell' ? sellUnits : minBuyUnits,
          feeOf: (ids: readonly string[]) => {
            const checked = checks?.(ids) ?? { gas: 0n, calls: 0 };
            const gas = gasOf(gasModel, ids) + besides + checked.gas;
            return feeUnits(gas, price, feeMarginBps, callsIn(ids) + calls + checked.calls);
          },
          isWorthAsking: (plan: RoutePlan) => reaches(plan, 1_000n, NEARLY),
          ...(risk === undefined ? {} : { mayTake: risk.mayTake }),
        };
        const plan = await planRoute(marketData, question, head, atSec);
        if (!isNoRoute(plan) && isEnough(plan)) return plan;
        // Our own route may be taken although a better one alone brings enough.
        if (preference !== 'preferService') return null;
        const best = await planRoute(marketData, { ...question, preference: 'auto' }, head, atSec);
        return isNoRoute(best) || !isEnough(best) ? null : best;
      };
      const plan = await enough(risk?.checks);
      if (plan === null) {
        // With what its owner's orders cost beside, or by no route that is sent for its owner.
        const isFee = risk === undefined || (await enough()) !== null;
        return { waits: isFee ? NOT_REACHED : risk.refusal };
      }
      const route = encodeRoute(plan.parts, { checkGas, permit: permit === null ? null : permitIn(quote.route) });
      const now = { feeUnits: plan.feeUnits, expectedSellUnits: plan.inUnits, buyUnits: plan.outUnits, route };
      return { order: { ...one, quote: { ...quote, ...now } } };
    },
    async unfunded(one, attempts) {
      if (await look(one)) return null;
      const newest = attempts.at(-1);
      // A transaction that fails for want of funds has the same code, and is another reason.
      const isKnown = newest?.result === 'refused' && newest.message === UNFUNDED.message;
      const sinceMs = isKnown ? newest.timeMs : nowMs();
      const isOver = nowMs() - sinceMs >= UNFUNDED_MS && (await isSurelyUnfunded(one));
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

/** Whether the owner has the tokens, and Permit2 may take them; the latter is not asked where the order brings an approval. */
async function hasFunds(eth: EthReader, { quote, permit }: PendingOrder): Promise<boolean> {
  const { owner, sellToken, sellUnits } = quote;
  const { domain } = JSON.parse(quote.typedData) as OrderTypedData;
  const data = [
    TOKEN.encodeFunctionData('balanceOf', [owner]),
    ...(permit === null ? [TOKEN.encodeFunctionData('allowance', [owner, domain.verifyingContract])] : []),
  ];
  const call = (one: string) => ({ to: sellToken, data: one, gas: toQuantity(CALL_GAS) });
  const answers = await eth.batch(data.map((one) => ({ method: 'eth_call', params: [call(one), 'latest'] })));
  return answers.map((answer) => bytesOf(answer)).every((units) => units === '0x' || BigInt(units) >= sellUnits);
}

const isOwnOnlyRoute = ({ parts }: RoutePlan): boolean => parts.every(({ id }) => isOwnOnly(id));
