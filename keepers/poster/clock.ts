/** When the next block is expected, from when the ones before were seen. Times are of this process's clock. */

export interface BlockClock {
  /** A block that was seen, in rising order. */
  observe(number: number, seenMs: number): void;
  /** How long to wait before cutting for the block after the newest one, so as to cut `beforeMs` before it; 0 when it is time. */
  waitMs(nowMs: number, beforeMs: number): number;
}

/** Enough to ride out a slow scan, few enough to follow a chain that changes its pace. */
const REMEMBERED = 32;

/**
 * Scans see a block some time after it was made, by up to the pause between two scans. The earliest sightings, in relation to the pace,
 * are therefore the truest: the next block is due one interval after the phase that they agree on.
 */
export function createBlockClock(): BlockClock {
  let seen: { number: number; seenMs: number }[] = [];

  return {
    observe(number, seenMs) {
      const last = seen.at(-1);
      if (last !== undefined && number <= last.number) return;
      seen = [...seen, { number, seenMs }].slice(-REMEMBERED);
    },
    waitMs(nowMs, beforeMs) {
      const [first, last] = [seen[0], seen.at(-1)];
      if (first === undefined || last === undefined || first === last) return 0;
      const intervalMs = (last.seenMs - first.seenMs) / (last.number - first.number);
      const phaseMs = Math.min(...seen.map((one) => one.seenMs + (last.number - one.number) * intervalMs));
      // Never longer than a block: a wrong guess costs one cut at most.
      return Math.min(intervalMs, Math.max(0, Math.round(phaseMs + intervalMs - beforeMs - nowMs)));
    },
  };
}
