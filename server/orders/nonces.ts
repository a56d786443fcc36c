import { MAX_NONCES, NONCE_FUTURE_MS, NONCE_PAST_MS } from './limits.js';
import { REFUSALS } from './refusals.js';

/**
 * Why a nonce is not admitted, or null. It must lie strictly inside the window around `nowMs`, be new to the signer's set, and,
 * once the set is full, be above its lowest element, because what was below has been forgotten. `used` is ascending.
 */
export function refuseNonce(nonce: number, used: readonly number[], nowMs: number): string | null {
  const low = nowMs - NONCE_PAST_MS;
  const high = nowMs + NONCE_FUTURE_MS;
  if (nonce <= low) return REFUSALS.nonceTooLow(nonce, low);
  if (nonce >= high) return REFUSALS.nonceTooHigh(nonce, high);
  if (used.includes(nonce)) return REFUSALS.duplicateNonce(nonce);
  if (used.length < MAX_NONCES) return null;
  const lowest = used[0] ?? high;
  return nonce < lowest ? REFUSALS.nonceTooLow(nonce, lowest) : null;
}
