/** Bounds the quotes of one owner, of whom anybody may ask for quotes. */
import type { Context } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Address } from '../../core/types.js';
import { ApiError } from '../errors.js';
import { networkOf } from '../rate-limit.js';

const WINDOW_SEC = 60;
/** Of an owner's limit, what each client address may have once all of it is spent: nobody can keep an owner from its quotes. */
const SHARE = 20;

interface OwnerQuotes {
  /**
   * Counts a quote of the owner's that the client of this request asks for. Throws ApiError `RATE_LIMITED`, with `retry-after`, beyond the limit of a minute,
   * but not for a client that has had less than a twentieth of it since it was spent.
   */
  count(ctx: Pick<Context, 'ip' | 'set'>, owner: Address): Promise<void>;
}

/** So many quotes of one owner per minute, over all clients. Counts live in this process. */
export function ownerQuotes(requests: number): OwnerQuotes {
  const share = Math.max(1, Math.floor(requests / SHARE));
  const ofOwner = new RateLimiterMemory({ keyPrefix: 'owner', points: requests, duration: WINDOW_SEC });
  const ofClient = new RateLimiterMemory({ keyPrefix: 'owner-client', points: share, duration: WINDOW_SEC });
  return {
    async count(ctx, owner) {
      const whole = await consumed(ofOwner, owner);
      if (whole === null) return;
      // Only what a client asks for while the limit is spent counts against its share: what it had before does not cost it the rest.
      const own = await consumed(ofClient, `${owner}:${networkOf(ctx.ip)}`);
      if (own === null) return;
      ctx.set('retry-after', `${Math.ceil(Math.min(whole, own) / 1_000)}`);
      const message = `More than ${requests} quotes of this owner in ${WINDOW_SEC} s: wait for retry-after`;
      throw new ApiError(429, 'RATE_LIMITED', message);
    },
  };
}

/** Null within the limit, else the milliseconds until there is one again. */
async function consumed(limiter: RateLimiterMemory, key: string): Promise<number | null> {
  try {
    await limiter.consume(key);
    return null;
  } catch (refusal) {
    // For a spent limit the library rejects with the type that it otherwise resolves with; anything else is an error.
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    return refusal.msBeforeNext;
  }
}
