/** Withdrawals that this page asked for and that what it shows of the ledger may not count yet. */
import type { Limits, Withdrawals } from './steps.js';

/** The newest request of each token: the hash of its transaction, which is mined. */
export type Requested = ReadonlyMap<string, string>;

/** Whether the balances that are shown are of before the request, or may be: its block is known by its event, and the ledger has read it, or not. */
export function isUncounted(
  hash: string | undefined,
  limits: { ledger: Pick<Limits['ledger'], 'next_block'> },
  withdrawals: Pick<Withdrawals, 'events'> | null,
): boolean {
  if (hash === undefined) return false;
  const event = withdrawals?.events.find(({ tx_hash }) => tx_hash === hash.toLowerCase());
  return event === undefined || limits.ledger.next_block <= event.block_number;
}
