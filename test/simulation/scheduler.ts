/** A queue of events on a virtual clock, and the actors to whom they belong: a crashed one's events never happen. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Decisions } from './decisions.js';

/** A process, or somebody outside of all processes. */
export interface Actor {
  readonly name: string;
  /** Nothing of it goes on any more. */
  isDead: boolean;
  /** Its events wait until then, as those of a stopped process do. */
  frozenUntilMs: number;
  /** It reaches no endpoint until then. */
  offlineUntilMs: number;
  /** By how much its wall clock is ahead. */
  clockAheadMs: number;
  /** Called once when it dies, to let go of what the operating system would. */
  onDeath: (() => void)[];
  /** Called when the database's server ends the session that holds its locks while it lives; the others go with it, or survive. */
  onSevered: ((survive: boolean) => void)[];
}

export const createActor = (name: string): Actor => ({
  name,
  isDead: false,
  frozenUntilMs: 0,
  offlineUntilMs: 0,
  clockAheadMs: 0,
  onDeath: [],
  onSevered: [],
});

export interface Event {
  timeMs: number;
  /** Decides between events of one time. */
  rank: number;
  actor: Actor | undefined;
  run(): void;
  isCancelled: boolean;
}

export interface Scheduler {
  nowMs(): number;
  /** The actor whose code runs now. */
  current(): Actor | undefined;
  /** Has something happen later, for the current actor unless another one is named, or nobody by null. */
  after(delayMs: number, run: () => void, actor?: Actor | null): Event;
  /** Resolves later, and never for a dead actor. */
  sleep(delayMs: number): Promise<void>;
  /** Runs code as an actor. */
  as<T>(actor: Actor, run: () => T): T;
  /** Ends an actor in the middle of whatever it does. */
  kill(actor: Actor): void;
  /** Lets everything happen up to a time. `afterEach` looks at what each event left. */
  runUntil(endMs: number, afterEach: () => void): Promise<void>;
  /** Events that happened. */
  count(): number;
}

/** Never settles: what a dead process waits for. */
export const never = (): Promise<never> => new Promise(() => undefined);

/** More events at one moment than any honest wait makes. */
const LIVELOCK_EVENTS = 200_000;

/** `turn` resolves when no promise can settle any more by itself. */
export function createScheduler(startMs: number, decisions: Decisions, turn: () => Promise<void>): Scheduler {
  const actors = new AsyncLocalStorage<Actor | undefined>();
  const queue: Event[] = [];
  const rank = decisions.stream('rank');
  let nowMs = startMs;
  let happened = 0;
  let atOnce = 0;

  const isBefore = (a: Event, b: Event): boolean => a.timeMs < b.timeMs || (a.timeMs === b.timeMs && a.rank < b.rank);

  function push(event: Event): void {
    let at = queue.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, queue[parent]!)) break;
      queue[at] = queue[parent]!;
      at = parent;
    }
    queue[at] = event;
  }

  function pop(): Event {
    const top = queue[0]!;
    const last = queue.pop()!;
    if (queue.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      if (child + 1 < queue.length && isBefore(queue[child + 1]!, queue[child]!)) child += 1;
      if (!isBefore(queue[child]!, last)) break;
      queue[at] = queue[child]!;
      at = child;
    }
    queue[at] = last;
    return top;
  }

  function after(delayMs: number, run: () => void, actor?: Actor | null): Event {
    // Whole milliseconds, as clocks and timers tell them: a nonce is a time, and one with a fraction is refused.
    const timeMs = nowMs + Math.max(0, Math.ceil(delayMs));
    const of = actor === null ? undefined : (actor ?? actors.getStore());
    const event: Event = { timeMs, rank: rank(), actor: of, run, isCancelled: false };
    push(event);
    return event;
  }

  async function runUntil(endMs: number, afterEach: () => void): Promise<void> {
    await turn();
    while (queue.length > 0 && queue[0]!.timeMs <= endMs) {
      const event = pop();
      const { actor } = event;
      if (event.isCancelled || actor?.isDead === true) continue;
      if (actor !== undefined && actor.frozenUntilMs > event.timeMs) {
        event.timeMs = actor.frozenUntilMs;
        push(event);
        continue;
      }
      atOnce = event.timeMs > nowMs ? 0 : atOnce + 1;
      if (atOnce > LIVELOCK_EVENTS) throw new Error(`time stands still; ${actor?.name ?? 'nobody'} never waits`);
      nowMs = Math.max(nowMs, event.timeMs);
      happened += 1;
      actors.run(actor, event.run);
      await turn();
      afterEach();
    }
    nowMs = Math.max(nowMs, endMs);
  }

  return {
    nowMs: () => nowMs,
    current: () => actors.getStore(),
    after,
    sleep: (delayMs) => new Promise((resolve) => void after(delayMs, resolve)),
    as: (actor, run) => actors.run(actor, run),
    kill(actor) {
      if (actor.isDead) return;
      actor.isDead = true;
      for (const release of actor.onDeath.splice(0)) release();
    },
    runUntil,
    count: () => happened,
  };
}
