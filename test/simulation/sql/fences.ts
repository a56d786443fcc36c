/** What is appended to a log is appended by its owner: by whoever took it over last, at the moment of the commit. */
import type { Simulation } from '../world.js';
import { statementOf } from './statement.js';

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

/** By what the transactions themselves say, and the epochs as they are stored. */
export function createFences({ record, scheduler }: Simulation): Fences {
  const open = new WeakMap<Connection, { log: string; epoch: number; writes: number }>();
  return {
    sent(connection, { sql, bindings = [], response }) {
      const { isBegin, isFence, isWrite } = statementOf(sql);
      if (isBegin) open.delete(connection);
      else if (isFence) {
        const [epoch, log] = bindings as [number, string];
        open.set(connection, { log, epoch, writes: 0 });
        if ((response as { changes?: number }).changes === 0) record.count('fence refused a write');
      } else if (isWrite) {
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
