import { networkOf } from '../rate-limit.js';
import { createWindows } from './failures.js';
import { RateLimitedError, tooManyQueries } from './refusals.js';

/**
 * Unsigned requests are counted by address: queries, and WebSocket messages without an action. Signed actions are not counted, so that none
 * is refused because of others behind the same address; nor are requests over a connection whose last signature was a maker's.
 */
export interface QueryBudget {
  /** Takes points from the budget of an IP address. Throws RateLimitedError when it is spent. */
  take(address: string, points?: number): void;
  /** Takes the points that an answer cost beyond those taken before; the answer is sent even if the budget is then spent. */
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
