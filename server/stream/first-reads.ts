import { createTurns } from '../turns.js';

/** Told of the rows that a subscription begins with once they are read, whether or not they are still to be sent. */
export type OnRead = (rows: readonly object[]) => void;

/**
 * What subscriptions begin with, read for each of them alone: few such reads at the same time, one connection after the other, so that none
 * that asks for much holds up the rest for longer than one read. What waits is bounded by the subscriptions that there are.
 */
export interface FirstReads {
  /** Reads for a subscription of a connection when its turn comes. `read` must not reject. */
  add(connection: object, subscription: object, read: () => Promise<void>): void;
  /** Nobody waits for it any more: it is not read unless its turn has come already. */
  drop(connection: object, subscription: object): void;
}

export function createFirstReads(atOnce = 2): FirstReads {
  const turns = createTurns(atOnce);
  const waiting = new Map<object, Map<object, () => Promise<void>>>();

  /** One turn of a connection at a time. */
  async function serve(connection: object, own: Map<object, () => Promise<void>>): Promise<void> {
    while (own.size > 0) {
      await turns.run(async () => {
        const [next] = own;
        if (next === undefined) return;
        const [subscription, read] = next;
        own.delete(subscription);
        await read();
      });
    }
    waiting.delete(connection);
  }

  return {
    add(connection, subscription, read) {
      const own = waiting.get(connection);
      if (own !== undefined) return void own.set(subscription, read);
      const first = new Map([[subscription, read]]);
      waiting.set(connection, first);
      void serve(connection, first);
    },
    drop: (connection, subscription) => void waiting.get(connection)?.delete(subscription),
  };
}
