import type { Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { networkOf } from './client-address.js';
import { ApiError } from './errors.js';

export interface RateLimit {
  /** Names the group of routes that share one window. */
  name: string;
  /** Requests that one address, of IPv6 one network of 64 bits, may make in a window. */
  requests: number;
  windowSec: number;
}

/**
 * Counts requests per client address in fixed windows. Every answer says where the client stands: `x-ratelimit-limit`,
 * `x-ratelimit-remaining`, and `x-ratelimit-reset`, the end of the window as Unix milliseconds. Beyond the limit it is 429 RATE_LIMITED with
 * `retry-after` in seconds, and nothing else runs. Counts live in this process.
 */
export function rateLimit({ name, requests, windowSec }: RateLimit, nowMs: () => number = Date.now): Middleware {
  const limiter = new RateLimiterMemory({ keyPrefix: name, points: requests, duration: windowSec });
  return async (ctx, next) => {
    let state: RateLimiterRes;
    let isAllowed = true;
    try {
      state = await limiter.consume(networkOf(ctx.ip));
    } catch (refusal) {
      // The library rejects with the same kind of value that it resolves with; anything else is a fault.
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      state = refusal;
      isAllowed = false;
    }
    ctx.set('x-ratelimit-limit', `${requests}`);
    ctx.set('x-ratelimit-remaining', `${state.remainingPoints}`);
    ctx.set('x-ratelimit-reset', `${nowMs() + state.msBeforeNext}`);
    if (!isAllowed) {
      ctx.set('retry-after', `${Math.ceil(state.msBeforeNext / 1000)}`);
      throw new ApiError(429, 'RATE_LIMITED', `More than ${requests} requests in ${windowSec} s: wait for retry-after`);
    }
    await next();
  };
}
