import type { Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from './errors.js';
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

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
      // For a spent limit the library rejects with the type that it otherwise resolves with; anything else is an error.
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

/**
 * Address of the client of a request. Behind a proxy it is the last one of X-Forwarded-For, which the proxy itself wrote. Earlier ones come
 * from the client, which could then choose the address that it is counted by.
 */
export function clientAddress(request: Pick<IncomingMessage, 'headers' | 'socket'>, trustProxy: boolean): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  const named = typeof forwarded === 'string' ? (forwarded.split(',').at(-1) ?? '').trim() : '';
  return named === '' ? (request.socket.remoteAddress ?? '') : named;
}

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * The key that an address is counted by: an IPv4 address itself, also when written as IPv6; of an IPv6 address the first 64 bits, because
 * one client usually has all addresses below them.
 */
export function networkOf(address: string): string {
  const mapped = MAPPED_IPV4.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = '', tail = ''] = address.toLowerCase().replace(/%.*$/, '').split('::');
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = groupsOf(head);
  const after = groupsOf(tail);
  // A dotted ending stands for two groups.
  const zeros = Math.max(8 - before.length - after.length - (address.includes('.') ? 1 : 0), 0);
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}

/** Middleware that counts requests per client address. Health has a window of its own, so that load on other routes can't block it. */
export interface ReadLimits {
  read: Middleware;
  health: Middleware;
}

/** So many requests per minute of each. */
export function readLimits(requestsPerMinute: number): ReadLimits {
  const perMinute = { requests: requestsPerMinute, windowSec: 60 };
  return { read: rateLimit({ name: 'read', ...perMinute }), health: rateLimit({ name: 'health', ...perMinute }) };
}
