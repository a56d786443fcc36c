/** What answers of the read API cost beside a request: points per client address, because some take as long as hundreds of others. */
import type { Context } from 'koa';
import { toSafeInt } from '../../core/amounts.js';
import { ApiError } from '../errors.js';
import { createQueryBudget, type QueryBudget } from '../orders/query-budget.js';
import { RateLimitedError } from '../orders/refusals.js';
import { networkOf } from '../rate-limit.js';

/** Points that an answer takes before it is made, and how many units of it take one more afterwards. */
export type Cost = { base: number } | MeasuredCost;
interface MeasuredCost {
  base: number;
  per: number;
  unit: string;
}

/** A point stands for about a quarter of a millisecond of CPU time. */
export const COSTS = {
  candles: { base: 2, per: 60, unit: 'candles' },
  fills: { base: 1, per: 20, unit: 'fills' },
  makerFills: { base: 2, per: 20, unit: 'fills' },
  takerSwaps: { base: 2, per: 20, unit: 'swaps' },
  performance: { base: 2, per: 2, unit: 'days of a pair until now' },
  takerSummary: { base: 2, per: 20, unit: 'days of a pair' },
  operatorSummary: { base: 2, per: 2, unit: 'days of a pair' },
  curve: { base: 4, per: 50, unit: 'orders of its book' },
  decomposition: { base: 4, per: 50, unit: 'orders of its legs' },
  operatorHalts: { base: 2 },
  withdrawals: { base: 2 },
} as const satisfies Record<string, Cost>;

/** As documents say it. */
export function priceOf(cost: Cost): string {
  const base = cost.base === 1 ? 'a point' : `${cost.base} points`;
  return 'per' in cost ? `It takes ${base}, and one more for each full ${cost.per} ${cost.unit}.` : `It takes ${base}.`;
}

const WINDOW_SEC = 60;
/** When to come back while only answers under way stand against a request: most are made by then. */
const UNDER_WAY_RETRY_SEC = 1;
/** Units that an answer is taken to have while it is made where its parameters don't bound them. */
export const UNBOUNDED_UNITS = 1_000;

/** Points of addresses, of IPv6 of networks of 64 bits: as many a minute as they have requests. */
interface ReadCosts {
  /** Takes what an answer costs before it is made. Throws 429 RATE_LIMITED once the points of the address are spent. */
  take(ctx: Context, cost: Cost): void;
  /** Takes what so many units of the answer cost; it is sent even if the points are then spent. */
  add(ctx: Context, cost: MeasuredCost, units: number): void;
  /**
   * Makes an answer of at most `most` units, which `add` counts, and sets their points aside until it is made or has failed: what many requests
   * at a time cost would be known only after all of them were served. Throws 429 RATE_LIMITED while a minute's points are set aside; one
   * answer may always be made, whatever it costs.
   */
  holding<T>(ctx: Context, cost: MeasuredCost, most: number, make: () => Promise<T>): Promise<T>;
}

/** Requests that the client of this one has a minute, as its answer says. */
export const requestsOf = (ctx: Context): number => toSafeInt(ctx.response.get('x-ratelimit-limit'));

function createReadCosts(nowMs: () => number): ReadCosts {
  let known: { perMinute: number; budget: QueryBudget } | null = null;
  const budgetOf = (ctx: Context): QueryBudget => {
    const perMinute = requestsOf(ctx);
    if (known?.perMinute !== perMinute) known = { perMinute, budget: createQueryBudget(perMinute, nowMs) };
    return known.budget;
  };
  /** Points that are set aside, by network. */
  const held = new Map<string, number>();
  const hold = (network: string, points: number): void => {
    const left = (held.get(network) ?? 0) + points;
    if (left > 0) held.set(network, left);
    else held.delete(network);
  };
  const refuse = (ctx: Context, retryAfterSec: number, message: string): never => {
    ctx.set('retry-after', `${retryAfterSec}`);
    throw new ApiError(429, 'RATE_LIMITED', message);
  };
  return {
    take(ctx, { base }) {
      try {
        budgetOf(ctx).take(ctx.ip, base);
      } catch (error) {
        if (!(error instanceof RateLimitedError)) throw error;
        const text = `More than ${requestsOf(ctx)} points of costly answers in ${WINDOW_SEC} s: wait for retry-after`;
        refuse(ctx, error.retryAfterSec, text);
      }
    },
    add: (ctx, { per }, units) => budgetOf(ctx).add(ctx.ip, Math.floor(units / per)),
    async holding(ctx, { per }, most, make) {
      const network = networkOf(ctx.ip);
      const limit = requestsOf(ctx);
      if ((held.get(network) ?? 0) >= limit)
        refuse(ctx, UNDER_WAY_RETRY_SEC, `Answers under way may take more than ${limit} points: wait for retry-after`);
      const points = Math.floor(most / per);
      hold(network, points);
      try {
        return await make();
      } finally {
        hold(network, -points);
      }
    },
  };
}

const costsOfServers = new WeakMap<object, ReadCosts>();

/** The points of one server, which its routes share. */
export function costsOf(server: { nowMs(): number }): ReadCosts {
  const costs = costsOfServers.get(server) ?? createReadCosts(() => server.nowMs());
  costsOfServers.set(server, costs);
  return costs;
}
