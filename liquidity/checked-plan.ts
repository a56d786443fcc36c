/** Routes for owners whose orders are sent checked: their conditions are counted as executors will count them. */
import { isNoRoute, moreChecks, type NoRoute, type RoutePlan } from '../core/swap/pricing.js';
import { isOwnOnly } from '../core/swap/paths.js';
import type { Source } from '../core/swap/source.js';
import type { WayOf } from '../core/swap/trust.js';
import { countChecks, countOn } from './checks.js';
import type { Head } from './eth.js';
import type { MarketData } from './market-data.js';
import { planRoute, type PlanQuestion } from './planner.js';

/** Most plans for one question: another is made only where a venue quotes other amounts than it says of itself. */
const MOST_PLANS = 3;
/**
 * Most routes of several parts whose conditions are counted for one question: all pairs of ten places, which a new account may take. Beyond,
 * routes of one part are, of which there are few.
 */
const MOST_COUNTED = 64;
/** What a search for the worst case counts as. */
const SEARCH_COUNTS = 4;

/** What is asked for an owner: the fee may depend on how many conditions are checked. */
export type SentQuestion = Omit<PlanQuestion, 'feeOf' | 'mayTake' | 'judge'> & {
  way: WayOf;
  /** `checks` as for a way. */
  feeOf(ids: readonly string[], checks: number | null): bigint;
  /** The least that a route must bring of a sale, or the most that it may take for a purchase, without its fee; null where that is not known yet. */
  boundOf(plan: RoutePlan): bigint | null;
};

/**
 * The best route that is sent for an owner. A trade that crosses ticks of a pool has more conditions than most: with those counted in, it may cost
 * a higher fee, or be risked for the owner no more, and then the next best route is taken.
 */
export async function planSent(
  data: MarketData,
  { way, feeOf, boundOf, ...question }: SentQuestion,
  head: Head,
  atSec: number,
): Promise<RoutePlan | NoRoute> {
  const { kind, sellToken, buyToken } = question;
  // By sources. A count only rises, so that this ends.
  const counts = new Map<string, number | null>();
  const keyOf = (ids: readonly string[]): string => ids.toSorted().join();
  const countOf = (ids: readonly string[]): number | null =>
    counts.get(keyOf(ids)) ?? (counts.has(keyOf(ids)) ? null : 0);
  let counted = 0;
  let isLast = false;
  /** Whether the route may be taken with so many conditions, and at the fee for those that were counted before. */
  const verdictOn = (ids: readonly string[], count: number | null): 'take' | 'leave' | 'again' => {
    const before = countOf(ids);
    if (count !== null && before !== null && moreChecks(ids, count) <= moreChecks(ids, before)) return 'take';
    counts.set(keyOf(ids), count);
    return way(ids, count) === null ? 'leave' : 'again';
  };
  const isCounted = (ids: readonly string[]): boolean => countOf(ids) !== null && way(ids, countOf(ids)) === 'checked';
  const judge = (plan: RoutePlan, set: readonly Source[]): 'take' | 'leave' | 'again' => {
    const ids = plan.parts.map(({ id }) => id);
    const boundUnits = boundOf(plan);
    if (boundUnits === null || !isCounted(ids)) return 'take';
    counted += 1;
    const route = { kind, sellToken, buyToken, parts: plan.parts };
    const places = set.map((one) => one.legs?.map(({ source }) => source) ?? [one]);
    // What it has at least may be too many already.
    const least = countOn({ ...route, boundUnits: null }, places);
    if (least === null || way(ids, least) === null) return verdictOn(ids, null);
    counted += SEARCH_COUNTS;
    return verdictOn(ids, countOn({ ...route, boundUnits }, places));
  };
  const isLeft = (ids: readonly string[]): boolean => {
    // Our own curves have no ranges, and nobody else's quotes, so that nothing rules them out.
    if (isLast) return ids.every(isOwnOnly);
    return ids.length === 1 || counted < MOST_COUNTED;
  };
  for (let plans = 0; plans < MOST_PLANS; plans++) {
    isLast = plans === MOST_PLANS - 1;
    const plan = await planRoute(
      data,
      {
        ...question,
        feeOf: (ids) => feeOf(ids, countOf(ids)),
        mayTake: (ids) => isLeft(ids) && way(ids, countOf(ids)) !== null,
        judge,
      },
      head,
      atSec,
    );
    if (isNoRoute(plan)) return plan;
    const ids = plan.parts.map(({ id }) => id);
    const boundUnits = boundOf(plan);
    if (boundUnits === null || !isCounted(ids)) return plan;
    const count = await countChecks(data, { kind, sellToken, buyToken, parts: plan.parts, boundUnits }, head, atSec);
    if (verdictOn(ids, count) === 'take') return plan;
  }
  return { problem: 'liquidity' };
}
