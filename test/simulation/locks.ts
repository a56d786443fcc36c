/** The lock of each log, as the database server gives it: to one session at a time, and to the next one some time after that has ended. */
import type { LogName } from '../../ledger/types.js';
import type { Actor } from './scheduler.js';
import type { Simulation } from './world.js';

export interface Locks {
  /** Resolves when the actor has the lock. It is let go of when the actor dies, or when its session is ended. */
  take(log: LogName, actor: Actor): Promise<void>;
  /** Ends the sessions of an actor that goes on living: others may take over from now on. */
  sever(actor: Actor): void;
}

/** How long the server takes to see that a session is gone. */
const NOTICE_MS = 3_000;

export function createLocks({ scheduler, decisions, record }: Simulation): Locks {
  const holders = new Map<LogName, Actor>();
  const waiting = new Map<LogName, { actor: Actor; grant(): void }[]>();

  function free(log: LogName, actor: Actor): void {
    if (holders.get(log) !== actor) return;
    holders.delete(log);
    next(log);
  }

  function next(log: LogName): void {
    if (holders.has(log)) return;
    const queue = (waiting.get(log) ?? []).filter((one) => !one.actor.isDead);
    const first = queue.shift();
    waiting.set(log, queue);
    if (first === undefined) return;
    holders.set(log, first.actor);
    record.count('lock taken');
    first.grant();
  }

  return {
    take: (log, actor) =>
      new Promise((resolve) => {
        const queue = waiting.get(log) ?? [];
        waiting.set(log, [...queue, { actor, grant: resolve }]);
        actor.onDeath.push(() => {
          const noticeMs = decisions.int('notice', 0, NOTICE_MS);
          scheduler.after(noticeMs, () => free(log, actor), null);
        });
        next(log);
      }),
    sever(actor) {
      for (const [log, holder] of [...holders]) {
        if (holder !== actor) continue;
        record.count('lock severed');
        free(log, actor);
      }
    },
  };
}
