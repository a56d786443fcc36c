/** What a gateway does while the ledger lacks a market that orders are in. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { BookError } from '../../../core/book/create-book.js';

/** Pause between two reads of the logs. */
const PAUSE_MS = 1_000;
/** How often it is said that a gateway still waits. */
const TOLD_EVERY_MS = 60_000;

/**
 * Makes what is built of the order log, as soon as every market in it is listed. A reversal takes back listings, too, and whoever follows the chain
 * reads them again meanwhile, maybe in this very process: it must not end. Where the transaction that listed the market is gone for good, it
 * waits until the owner lists it once more. Rejects as `create` does for any other reason, and when the signal is aborted.
 */
export async function onceListed<T>(
  create: () => Promise<T>,
  { signal, logger }: { signal: AbortSignal; logger: Pick<Logger, 'warn'> },
): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    try {
      return await create();
    } catch (error) {
      const unlisted = unlistedIn(error);
      if (unlisted === null) throw error;
      if (waitedMs % TOLD_EVERY_MS === 0)
        logger.warn({ err: unlisted }, 'the gateway waits for the listing of a market in which there are orders');
    }
    await delay(PAUSE_MS, undefined, { signal });
  }
}

/** The reason, or a reason of a reason, that a market is not listed. */
function unlistedIn(error: unknown): BookError | null {
  for (let reason = error; reason instanceof Error; reason = reason.cause)
    if (reason instanceof BookError && reason.code === 'unknown_market') return reason;
  return null;
}
