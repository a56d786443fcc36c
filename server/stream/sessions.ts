import type { Address } from '../../core/types.js';

/**
 * Which makers have a feed session: a WebSocket connection over which an action of that maker was accepted, until it closes. A connection
 * is identified by any value that is unique among open ones.
 */
export interface Sessions {
  /** An action of the maker was accepted over the connection. */
  accepted(connection: unknown, maker: Address): void;
  closed(connection: unknown): void;
  isOpen(maker: Address): boolean;
  /** A number that differs after every change of open sessions. */
  version(): number;
}

/** An empty registry. */
export function createSessions(): Sessions {
  const makersOf = new Map<unknown, Set<Address>>();
  const openCount = new Map<Address, number>();
  let version = 0;

  function accepted(connection: unknown, maker: Address): void {
    const makers = makersOf.get(connection) ?? new Set<Address>();
    makersOf.set(connection, makers);
    if (makers.has(maker)) return;
    makers.add(maker);
    version += 1;
    openCount.set(maker, (openCount.get(maker) ?? 0) + 1);
  }

  function closed(connection: unknown): void {
    for (const maker of makersOf.get(connection) ?? []) {
      const left = (openCount.get(maker) ?? 0) - 1;
      if (left > 0) openCount.set(maker, left);
      else openCount.delete(maker);
    }
    if (makersOf.delete(connection)) version += 1;
  }

  return { accepted, closed, isOpen: (maker) => openCount.has(maker), version: () => version };
}
