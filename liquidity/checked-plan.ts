/** Routes for owners whose orders are sent checked: their conditions are counted as executors will count them. */
import { isNoRoute, moreChecks, type NoRoute, type RoutePlan } from '../core/swap/pricing.js';
import type { WayOf } from '../core/swap/trust.js';
import { countChecks } from './checks.js';
import type { Head } from './eth.js';
import type { MarketData } from './market-data.js';
import { planRoute, type PlanQuestion } from './planner.js';

/** Most routes that are counted for one question. */
const MOST_PLANS = 12;

/** What is asked for an owner: the fee may depend on how many conditions are checked. */
export type SentQuestion = Omit<PlanQuestion, 'feeOf' | 'mayTake'> & {
  way: WayOf;
  /** `checks` as for a way. */
  feeOf(ids: readonly string[], checks: number | null): bigint;
  /** The least that a route must bring of a sale, or the most that it may take for a purchase, without its fee; null where that is not known yet. */
  boundOf(plan: RoutePlan): bigint | null;
};

/**
 * The best route that is sent for an owner. A trade that crosses ticks of a pool has more conditions than most: with those counted in, it may cost
 * a higher fee, or be risked for the owner no more, and then another route is planned.
 */
export async function planSent(
  data: MarketData,
  { way, feeOf, boundOf, ...question }: SentQuestion,
  head: Head,
  atSec: number,
): Promise<RoutePlan | NoRoute> {
  // By sources. A count only rises, so that this ends.
  const counts = new Map<string, number | null>();
  const keyOf = (ids: readonly string[]): string => ids.toSorted().join();
  const countOf = (ids: readonly string[]): number | null =>
    counts.get(keyOf(ids)) ?? (counts.has(keyOf(ids)) ? null : 0);
  for (let plans = 0; plans < MOST_PLANS; plans++) {
    const plan = await planRoute(
      data,
      {
        ...question,
        feeOf: (ids) => feeOf(ids, countOf(ids)),
        mayTake: (ids) => way(ids, countOf(ids)) !== null,
      },
      head,
      atSec,
    );
    if (isNoRoute(plan)) return plan;
    const ids = plan.parts.map(({ id }) => id);
    const boundUnits = boundOf(plan);
    const counted = countOf(ids);
    if (boundUnits === null || counted === null || way(ids, counted) !== 'checked') return plan;
    const { kind, sellToken, buyToken } = question;
    const count = await countChecks(data, { kind, sellToken, buyToken, parts: plan.parts, boundUnits }, head, atSec);
    if (count !== null && moreChecks(ids, count) <= moreChecks(ids, counted)) return plan;
    counts.set(keyOf(ids), count);
  }
  return { problem: 'liquidity' };
}
