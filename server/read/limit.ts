import type { Middleware } from 'koa';
import { rateLimit } from '../rate-limit.js';

/** Middleware that counts requests per client address. Health has a window of its own, so that no load on the rest hides it. */
export interface ReadLimits {
  read: Middleware;
  health: Middleware;
}

/** So many requests per minute of each. */
export function readLimits(requestsPerMinute: number): ReadLimits {
  const perMinute = { requests: requestsPerMinute, windowSec: 60 };
  return { read: rateLimit({ name: 'read', ...perMinute }), health: rateLimit({ name: 'health', ...perMinute }) };
}
