/** What is appended to a log is appended by its owner: by whoever took it over last, at the moment of the commit. */
import type { Simulation } from '../world.js';

interface Connection {
  prepare(sql: string): { get(...bindings: unknown[]): unknown };
}
interface Query {
  sql: string;
  bindings?: readonly unknown[];
  response?: unknown;
}

interface Fences {
  /** Called with each statement that was carried out, and its response. */
  sent(connection: Connection, query: Query): void;
  /** Called before a commit is, inside of its transaction: nobody else writes meanwhile. */
  committing(connection: Connection, where: string): void;
}

/** How the backend asks, inside each transaction of a log's owner, whether it is the owner still. */
const FENCE = /^update writers set epoch = \? where log = \? and epoch = \?/;
const WRITES = /^\s*(?:insert|update|delete)\b/i;
const BEGINS = /^\s*begin\b/i;

/** By what the transactions themselves say, and the epochs as they are stored. */
export function createFences({ record, scheduler }: Simulation): Fences {
  const open = new WeakMap<Connection, { log: string; epoch: number; writes: number }>();
  return {
    sent(connection, { sql, bindings = [], response }) {
      if (BEGINS.test(sql)) open.delete(connection);
      else if (FENCE.test(sql)) {
        const [epoch, log] = bindings as [number, string];
        open.set(connection, { log, epoch, writes: 0 });
        if ((response as { changes?: number }).changes === 0) record.count('fence refused a write');
      } else if (WRITES.test(sql)) {
        const fenced = open.get(connection);
        if (fenced !== undefined) fenced.writes += 1;
      }
    },
    committing(connection, where) {
      const fenced = open.get(connection);
      open.delete(connection);
      if (fenced === undefined || fenced.writes === 0) return;
      const { log, epoch } = fenced;
      const stored = connection.prepare('select epoch from writers where log = ?').get(log) as { epoch: number };
      if (stored.epoch !== epoch)
        record.violate(
          `${scheduler.nowMs()} zombie: ${where} writes the ${log} log of epoch ${stored.epoch} in epoch ${epoch}`,
        );
    },
  };
}
