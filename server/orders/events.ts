import type { Address, OrderLogRow } from '../../core/types.js';
import type { Account } from '../../ledger/types.js';
import type { KnownOrder } from './history.js';

/** An order that an event touched, as it stands after the event. */
export interface OrderChange {
  known: KnownOrder;
  /** When the order got this state; null for a fill, whose time is in the ledger. */
  timeMs: number | null;
}

/**
 * Something became durable; sent after the commit and after all reads show it. Orders are copied at that moment, in the order of the
 * changes.
 */
export type GatewayEvent =
  | { type: 'rows'; rows: readonly OrderLogRow[]; changes: readonly OrderChange[]; markets: ReadonlySet<number> }
  | {
      type: 'generations';
      /** First and last generation, both included. */
      from: number;
      to: number;
      /** Makers that had a fill. */
      makers: ReadonlySet<Address>;
      /** Accounts whose balances changed, or that had a fill. */
      accounts: ReadonlySet<Account>;
      /** Orders that were open when a fill changed them; fills of closed orders are not events. */
      changes: readonly OrderChange[];
      markets: ReadonlySet<number>;
    };

export interface Events {
  /** Calls back for every event from now on, until the returned function is called. A listener must not throw. */
  listen(listener: (event: GatewayEvent) => void): () => void;
  emit(event: GatewayEvent): void;
}

export function createEvents(): Events {
  const listeners = new Set<(event: GatewayEvent) => void>();
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    emit: (event) => listeners.forEach((listener) => listener(event)),
  };
}
