/** Hints that a log has grown, as PostgreSQL sends them with a commit: to each process by itself, late, or never. */
import { HINTED_TABLES } from '../../../ledger/migrations/0032-hints.js';
import { HINT_TOPICS, NO_HINTS, type HintTopic, type Hints } from '../../../ledger/db/hints.js';
import type { Actor } from '../scheduler.js';
import { nameOf, strikes, type Simulation } from '../world.js';
import { statementOf } from './statement.js';

interface Connection {
  readonly inTransaction: boolean;
}

export interface HintBoard {
  /** What a process listens to. */
  of(actor: Actor): Hints;
  /** Called with each statement that was carried out; those of a transaction hint when it commits. */
  sent(connection: Connection, sql: string): void;
}

/** As the triggers of PostgreSQL have it. */
const TOPICS: Readonly<Record<string, HintTopic>> = HINTED_TABLES;
/** How long one takes, and one that is late. */
const WAY_MS = 20;
const LATE_MS = 8_000;

export function createHintBoard(world: Simulation): HintBoard {
  const { scheduler, decisions, record } = world;
  // Without them everything must work as well, only later.
  const areGiven = decisions.int('no hints', 0, 3) !== 0;
  const listeners = new Map<HintTopic, Set<{ actor: Actor; listener(): void }>>(
    HINT_TOPICS.map((topic) => [topic, new Set()]),
  );
  const grown = new WeakMap<Connection, Set<HintTopic>>();

  function tell(topic: HintTopic): void {
    for (const { actor, listener } of listeners.get(topic)!) {
      const where = nameOf(actor);
      if (strikes(world, 'hintLost', where)) continue;
      const lateMs = strikes(world, 'hintLate', where) ? decisions.int('hintLateMs', 500, LATE_MS) : 0;
      record.count('hint');
      scheduler.after(lateMs + decisions.int('hintMs', 1, WAY_MS), listener, actor);
    }
  }

  return {
    of(actor) {
      if (!areGiven) return NO_HINTS;
      return {
        ...NO_HINTS,
        on(topic, listener) {
          const set = listeners.get(topic)!;
          const one = { actor, listener };
          set.add(one);
          const off = (): void => void set.delete(one);
          actor.onDeath.push(off);
          return off;
        },
      };
    },
    sent(connection, sql) {
      const { isBegin, isCommit, insertsInto } = statementOf(sql);
      if (isBegin) grown.set(connection, new Set());
      const topic = insertsInto === null ? undefined : TOPICS[insertsInto];
      if (topic !== undefined) {
        if (connection.inTransaction) grown.get(connection)?.add(topic);
        else tell(topic);
      }
      if (!isCommit) return;
      for (const one of grown.get(connection) ?? []) tell(one);
      grown.delete(connection);
    },
  };
}
