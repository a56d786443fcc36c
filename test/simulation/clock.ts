/**
 * Puts virtual time in the place of the real one for all code of this process: timers, clocks, random numbers and ids. What is not part of
 * a simulation must not run meanwhile.
 */
import crypto from 'node:crypto';
import { getEventListeners } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import promises from 'node:timers/promises';
import type { Decisions } from './decisions.js';
import type { Event, Scheduler } from './scheduler.js';

const realSetImmediate = globalThis.setImmediate;

/** One turn of the real event loop: every promise that can settle has. */
export const realTurn = (): Promise<void> => new Promise((resolve) => void realSetImmediate(resolve));

/** So many turns are asked for together, since the event loop itself takes longer than what happens in one. */
const TURNS_AT_ONCE = 32;

/**
 * As `realTurn`, for whoever asks for one after the other: Node settles promises between two immediates of one turn of its loop as well. Nothing
 * of a simulation waits for anything else, such as a file.
 */
export function createTurns(): () => Promise<void> {
  let asked = 0;
  let waiting: (() => void) | null = null;
  function next(): void {
    asked -= 1;
    const resolve = waiting;
    waiting = null;
    resolve?.();
  }
  return () =>
    new Promise((resolve) => {
      waiting = resolve;
      if (asked > 0) return;
      asked = TURNS_AT_ONCE;
      for (let i = 0; i < TURNS_AT_ONCE; i += 1) realSetImmediate(next);
    });
}

/** What Node answers for a timer, as far as libraries use it. */
class VirtualTimer {
  constructor(readonly event: Event) {}
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return false;
  }
  close(): void {
    this.event.isCancelled = true;
  }
  [Symbol.dispose](): void {
    this.close();
  }
  [Symbol.toPrimitive](): number {
    return 0;
  }
}

type Callback = (...args: unknown[]) => void;

const realSignals = new WeakMap<AbortSignal, () => AbortSignal>();
/** Those by any of which a combined signal is aborted. */
const combinedOf = new WeakMap<AbortSignal, readonly AbortSignal[]>();
const realSignal = (signal: AbortSignal): AbortSignal => realSignals.get(signal)?.() ?? signal;
const sourcesOf = (signal: AbortSignal): readonly AbortSignal[] => combinedOf.get(signal) ?? [signal];

/**
 * A signal that is made when somebody first looks at it. Every request brings one, at which the simulated network does not look, and so does every
 * pause of a loop.
 */
function lazySignal(make: () => AbortSignal): AbortSignal {
  let made: AbortSignal | undefined;
  const real = (): AbortSignal => (made ??= make());
  const lazy = new Proxy(Object.create(AbortSignal.prototype) as AbortSignal, {
    get(_, key) {
      const value: unknown = Reflect.get(real(), key, real());
      return typeof value === 'function' ? (value.bind(real()) as unknown) : value;
    },
  });
  realSignals.set(lazy, real);
  return lazy;
}

/** Installs the clock; the returned function takes it away again. */
export function installClock(scheduler: Scheduler, decisions: Decisions, fetcher: typeof fetch): () => void {
  const RealDate = globalThis.Date;
  const wallMs = (): number => scheduler.nowMs() + (scheduler.current()?.clockAheadMs ?? 0);

  class VirtualDate extends RealDate {
    constructor(...args: unknown[]) {
      if (args.length === 0) super(wallMs());
      else super(...(args as [number]));
    }
    static override now(): number {
      return wallMs();
    }
  }

  const later = (run: Callback, delayMs: unknown, args: unknown[]): VirtualTimer =>
    new VirtualTimer(scheduler.after(typeof delayMs === 'number' && delayMs > 0 ? delayMs : 1, () => run(...args)));
  const setTimeout = (run: Callback, delayMs?: number, ...args: unknown[]) => later(run, delayMs, args);
  const setImmediate = (run: Callback, ...args: unknown[]) => new VirtualTimer(scheduler.after(0, () => run(...args)));
  const clear = (timer: unknown): void => {
    if (timer instanceof VirtualTimer) timer.close();
  };
  const setInterval = (run: Callback, delayMs?: number, ...args: unknown[]): VirtualTimer => {
    const timer = later(again, delayMs, []);
    const inner = timer as { event: Event };
    function again(): void {
      run(...args);
      if (!inner.event.isCancelled) inner.event = later(again, delayMs, []).event;
    }
    return timer;
  };

  function wait(delayMs: number, value: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => reject(Object.assign(new Error('The operation was aborted'), { name: 'AbortError' }));
      const signals = signal === undefined ? [] : sourcesOf(signal);
      if (signals.some((one) => one.aborted)) return refuse();
      const event = scheduler.after(delayMs, () => {
        forget();
        resolve(value);
      });
      function forget(): void {
        for (const one of signals) one.removeEventListener('abort', onAbort);
      }
      function onAbort(): void {
        event.isCancelled = true;
        forget();
        refuse();
      }
      for (const one of signals) one.addEventListener('abort', onAbort);
    });
  }

  const combined: WeakRef<AbortSignal>[] = [];
  const realAny = AbortSignal.any.bind(AbortSignal);
  const timeoutSignal = (delayMs: number): AbortSignal => {
    const dueMs = scheduler.nowMs() + delayMs;
    return lazySignal(() => {
      const controller = new AbortController();
      const end = (): void => controller.abort(new DOMException('The operation timed out', 'TimeoutError'));
      scheduler.after(dueMs - scheduler.nowMs(), end);
      return controller.signal;
    });
  };
  const anySignal = (signals: AbortSignal[]): AbortSignal => {
    const lazy = lazySignal(() => {
      const made = realAny(signals.map(realSignal));
      combined.push(new WeakRef(made));
      return made;
    });
    combinedOf.set(lazy, signals.flatMap(sourcesOf));
    return lazy;
  };
  /** Node keeps a combined signal that has listeners, and through them all of the simulation: nobody takes away those of what waits at its end. */
  const forgetListeners = (): void => {
    for (const one of combined) {
      const signal = one.deref();
      if (signal === undefined) continue;
      for (const listener of getEventListeners(signal, 'abort'))
        signal.removeEventListener('abort', listener as () => void);
    }
  };
  const randomUUID = (): string => {
    const hex = Array.from({ length: 32 }, () => decisions.int('uuid', 0, 15).toString(16)).join('');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };

  const undo: (() => void)[] = [];
  function replace<T extends object>(target: T, values: Partial<Record<keyof T, unknown>>): void {
    for (const [name, value] of Object.entries(values)) {
      const before = Object.getOwnPropertyDescriptor(target, name);
      Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });
      undo.push(() => {
        if (before === undefined) delete target[name as keyof T];
        else Object.defineProperty(target, name, before);
      });
    }
  }

  const all = { setTimeout, setInterval, setImmediate };
  const clears = { clearTimeout: clear, clearInterval: clear, clearImmediate: clear };
  replace(globalThis, { ...all, ...clears, Date: VirtualDate, fetch: fetcher });
  replace(timers, { ...all, ...clears });
  replace(promises, {
    setTimeout: (delayMs = 1, value?: unknown, options: { signal?: AbortSignal } = {}) =>
      wait(delayMs, value, options.signal),
    setImmediate: (value?: unknown, options: { signal?: AbortSignal } = {}) => wait(0, value, options.signal),
  });
  replace(performance, { now: () => scheduler.nowMs() });
  replace(AbortSignal, { timeout: timeoutSignal, any: anySignal });
  replace(Math, { random: decisions.stream('Math.random') });
  replace(crypto, { randomUUID });
  replace(globalThis.crypto, { randomUUID });
  syncBuiltinESMExports();
  return () => {
    for (const restore of undo.reverse()) restore();
    forgetListeners();
    syncBuiltinESMExports();
  };
}
