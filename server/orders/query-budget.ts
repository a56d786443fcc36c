import { networkOf } from '../rate-limit.js';
import { createWindows } from './failures.js';
import { RateLimitedError, tooManyQueries } from './refusals.js';

/**
 * What nobody signs is counted by address: queries, and WebSocket messages that carry no action. Signed actions never are, so that nobody's are refused for
 * what others ask behind the same address, nor is what comes over a connection whose last signature was a maker's.
 */
export interface QueryBudget {
  /** Takes as many points from the budget of an IP address. Throws RateLimitedError when it is spent. */
  take(address: string, points?: number): void;
  /** Adds what an answer turned out to cost beyond what was taken before it was made; it is sent all the same. */
  add(address: string, points: number): void;
}

/** `perMinute` points of each address, of IPv6 each network of 64 bits, in windows of a minute that begin with the first query. */
export function createQueryBudget(perMinute: number, clock: () => number): QueryBudget {
  const windows = createWindows(perMinute, clock);
  return {
    take(address, points = 1) {
      const network = networkOf(address);
      const seconds = windows.spentSec(network);
      if (seconds > 0) throw new RateLimitedError(seconds, tooManyQueries(seconds));
      windows.add(network, points);
    },
    add(address, points) {
      if (points > 0) windows.add(networkOf(address), points);
    },
  };
}
