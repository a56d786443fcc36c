import { closeOrders, readFilledPending } from '../../ledger/swaps/swap-log.js';
import { pruneQuotes } from '../../ledger/swaps/swap-quotes.js';
import type { ExecutorDeps } from './deps.js';

/** Unused quotes are kept this long after they expired: whoever asks for them without an end fills no disk. */
const KEEP_QUOTES_MS = 60 * 60 * 1_000;
const PRUNE_LIMIT = 1_000;
/** Most filled orders that are removed from the pending list at once. */
const CLOSE_LIMIT = 1_000;
const INTERVAL_MS = 60_000;

/**
 * Once a minute deletes old quotes, and removes orders from the pending list whose fill is final (at `final` or before) and whose fee is stored. Until
 * then an order stays on the list: if its block is dropped, it is executed again or expires.
 */
export function createTidy({
  db,
  writer,
  nowMs,
  monotonicMs,
}: Pick<ExecutorDeps, 'db' | 'writer' | 'nowMs'> & { monotonicMs(): number }): (final: number) => Promise<void> {
  let tidiedMs = Number.NEGATIVE_INFINITY;
  /** Quotes that expired before were looked at, and those that were used stay: they need not be looked at each minute. */
  let prunedMs = 0;

  return async (final) => {
    if (monotonicMs() - tidiedMs < INTERVAL_MS) return;
    const filled = await readFilledPending(db.knex, final, CLOSE_LIMIT);
    await writer.tx((tx) => closeOrders(tx, filled));
    const beforeMs = nowMs() - KEEP_QUOTES_MS;
    // A server whose clock is behind may have stored some since.
    const expired = { fromMs: prunedMs - KEEP_QUOTES_MS, beforeMs };
    // Repeated until none is left, since more may arrive in a minute than one transaction should delete.
    while ((await writer.tx((tx) => pruneQuotes(tx, expired, PRUNE_LIMIT))) === PRUNE_LIMIT);
    prunedMs = Math.max(prunedMs, beforeMs);
    tidiedMs = monotonicMs();
  };
}
