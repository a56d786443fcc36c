import { isArmedWithin } from '../cut.js';
import type { Address } from '../types.js';

export const DAY_MS = 86_400_000;

/** Armed scheduled cancels, one per maker at most, and how many came due on each maker's newest UTC day. */
export interface Schedules {
  /** Arms the maker's scheduled cancel for `timeMs`, or disarms it with null; `nowMs` is the time of the action. */
  set(maker: Address, timeMs: number | null, nowMs: number): void;
  /** The armed time came: disarms, and counts the trigger on the UTC day of that time. */
  trigger(maker: Address, timeMs: number): void;
  armed(): ReadonlyMap<Address, number>;
  /**
   * Whether cuts leave the maker out at `nowMs`, or did within the last LEFT_OUT_MEMORY_MS, because its armed time is or was near. It knows
   * only changes that this book has applied itself.
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

/** Longer than the time between two cuts of a live book, so that a maker that is no longer left out was in a cut since. */
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
  /** Per maker: when it last moved an armed time that was near. */
  const leftOutMs = new Map(leftOut);

  return {
    set(maker, timeMs, nowMs) {
      // A maker stays left out until it moves its armed time, or until that time comes and closes its orders.
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
