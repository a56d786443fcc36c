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
      if (signal?.aborted === true) return refuse();
      const event = scheduler.after(delayMs, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve(value);
      });
      function onAbort(): void {
        event.isCancelled = true;
        refuse();
      }
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  const timeoutSignal = (delayMs: number): AbortSignal => {
    const controller = new AbortController();
    scheduler.after(delayMs, () => controller.abort(new DOMException('The operation timed out', 'TimeoutError')));
    return controller.signal;
  };
  const combined: WeakRef<AbortSignal>[] = [];
  const realAny = AbortSignal.any.bind(AbortSignal);
  const anySignal = (signals: AbortSignal[]): AbortSignal => {
    const made = realAny(signals);
    combined.push(new WeakRef(made));
    return made;
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
  replace(Math, { random: () => decisions.unit('Math.random') });
  replace(crypto, { randomUUID });
  replace(globalThis.crypto, { randomUUID });
  syncBuiltinESMExports();
  return () => {
    for (const restore of undo.reverse()) restore();
    forgetListeners();
    syncBuiltinESMExports();
  };
}
