import type { Address } from '../types.js';

export const DAY_MS = 86_400_000;

/** Armed scheduled cancels, one per maker at most, and how many came due on each maker's newest UTC day. */
export interface Schedules {
  /** Arms or, with null, disarms. */
  set(maker: Address, timeMs: number | null): void;
  /** The armed time came: it disarms and counts on the UTC day of that time. */
  trigger(maker: Address, timeMs: number): void;
  armed(): ReadonlyMap<Address, number>;
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

const dayOf = (timeMs: number): number => Math.floor(timeMs / DAY_MS);

/** Creates the set, from copies of what is given. */
export function createSchedules(
  initial: ReadonlyMap<Address, number> = new Map(),
  counts: ReadonlyMap<Address, TriggerDay> = new Map(),
): Schedules {
  const armed = new Map(initial);
  const days = new Map(counts);

  return {
    set(maker, timeMs) {
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
    triggers(maker, timeMs) {
      const last = days.get(maker);
      return last?.day === dayOf(timeMs) ? last.count : 0;
    },
    newestDay: (maker) => days.get(maker),
    clone: () => createSchedules(armed, days),
  };
}
