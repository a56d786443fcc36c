import { isArmedWithin } from '../cut.js';
import type { Address } from '../types.js';

export const DAY_MS = 86_400_000;

/** Armed scheduled cancels, one per maker at most, and how many came due on each maker's newest UTC day. */
export interface Schedules {
  /** Arms or, with null, disarms, at the time `nowMs`. */
  set(maker: Address, timeMs: number | null, nowMs: number): void;
  /** The armed time came: it disarms and counts on the UTC day of that time. */
  trigger(maker: Address, timeMs: number): void;
  armed(): ReadonlyMap<Address, number>;
  /**
   * Whether cuts leave the maker out at `nowMs`, or did within the last LEFT_OUT_MEMORY_MS, because its armed time is or was near. Of the
   * past it knows what was set since this book was opened.
   */
  wasLeftOut(maker: Address, nowMs: number): boolean;
  /** Triggers of the UTC day that holds `timeMs`; days before the newest that had one are forgotten. */
  triggers(maker: Address, timeMs: number): number;
  /** The newest UTC day, counted from 1970, on which a scheduled cancel came due, and how many did. */
  newestDay(maker: Address): Readonly<TriggerDay> | undefined;
  clone(): Schedules;
}

export interface TriggerDay {
  day: number;
  count: number;
}

/** Longer than a live book goes without a cut, so that whoever is not left out was offered in a cut since. */
const LEFT_OUT_MEMORY_MS = 10_000;

const dayOf = (timeMs: number): number => Math.floor(timeMs / DAY_MS);

/** Creates the set, from copies of what is given. */
export function createSchedules(
  initial: ReadonlyMap<Address, number> = new Map(),
  counts: ReadonlyMap<Address, TriggerDay> = new Map(),
  leftOut: ReadonlyMap<Address, number> = new Map(),
): Schedules {
  const armed = new Map(initial);
  const days = new Map(counts);
  /** When a maker's armed time was last near, of those who moved it then. */
  const leftOutMs = new Map(leftOut);

  return {
    set(maker, timeMs, nowMs) {
      // A maker that is left out stays so until it moves its armed time, or until that comes and closes its orders.
      if (isArmedWithin(armed.get(maker) ?? null, nowMs)) leftOutMs.set(maker, nowMs);
      if (timeMs === null) armed.delete(maker);
      else armed.set(maker, timeMs);
    },
    trigger(maker, timeMs) {
      armed.delete(maker);
      const day = dayOf(timeMs);
      const last = days.get(maker);
      days.set(maker, { day, count: last?.day === day ? last.count + 1 : 1 });
    },
    armed: () => armed,
    wasLeftOut(maker, nowMs) {
      const since = leftOutMs.get(maker);
      if (since !== undefined && Math.abs(nowMs - since) < LEFT_OUT_MEMORY_MS) return true;
      if (since !== undefined) leftOutMs.delete(maker);
      return isArmedWithin(armed.get(maker) ?? null, nowMs);
    },
    triggers(maker, timeMs) {
      const last = days.get(maker);
      return last?.day === dayOf(timeMs) ? last.count : 0;
    },
    newestDay: (maker) => days.get(maker),
    clone: () => createSchedules(armed, days, leftOutMs),
  };
}
