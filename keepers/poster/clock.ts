/** Estimates when the next block comes, from when earlier blocks were seen. Times are monotonic. */

/** Longest plausible time between a scan and its reading by the poster, both by the wall clock. */
const MAX_SCAN_AGE_MS = 2_000;

/** Monotonic time of a scan. The scan's stored time is of the wall clock, which may have been set between storing and reading. */
export function seenAtMs(scannedMs: number, now: { wallMs: number; monotonicMs: number }): number {
  const ageMs = now.wallMs - scannedMs;
  // With an implausible age, now is used: a sighting that is too late does less harm than one that is too early.
  return now.monotonicMs - (ageMs >= 0 && ageMs <= MAX_SCAN_AGE_MS ? ageMs : 0);
}

export interface BlockClock {
  /** A block that was seen, in rising order. */
  observe(number: number, seenMs: number): void;
  /** How long to wait before cutting for the block after the newest one, so as to cut `beforeMs` before it; 0 when it is time. */
  waitMs(nowMs: number, beforeMs: number): number;
  /** Time from one block to the next; null while too few were seen to say. */
  intervalMs(): number | null;
}

interface Sighting {
  number: number;
  seenMs: number;
}

/** Number of remembered sightings: enough to tolerate slow scans, few enough to follow a chain whose pace changes. */
const REMEMBERED = 32;
/** When so many in a row come late, the chain paused and not the scans. */
const LATE_IN_A_ROW = 4;
/** Fewer sightings than this say little about the pace, because each may be late by the pause between two scans. */
const ENOUGH_FOR_PACE = 16;
/** The pace is the same as before a pause if it differs by no more than this part. */
const SAME_PACE = 0.25;

/**
 * Scans see a block up to one scan interval after it was made, so the sightings that are earliest relative to the pace are the most
 * accurate: the next block is due one interval after the phase that they give. Sightings from before a pause of the chain do not count for
 * the phase.
 */
export function createBlockClock(): BlockClock {
  let seen: Sighting[] = [];
  /** The pace before the last pause, as long as there are too few sightings since. */
  let paceBeforeMs: number | null = null;

  const paceMs = (sightings: readonly Sighting[]): number =>
    paceBeforeMs !== null && sightings.length < ENOUGH_FOR_PACE ? paceBeforeMs : slopeMs(sightings);

  function forgetBeforePause(): void {
    const [before, since] = [seen.slice(0, -LATE_IN_A_ROW), seen.slice(-LATE_IN_A_ROW)];
    const last = before.at(-1);
    if (last === undefined || before.length < LATE_IN_A_ROW) return;
    const intervalMs = paceMs(before);
    const madeMs = phaseMs(before, last, intervalMs);
    const lateMs = since.map((one) => one.seenMs - madeMs - (one.number - last.number) * intervalMs);
    if (Math.min(...lateMs) < intervalMs / 2) return;
    paceBeforeMs = Math.abs(slopeMs(since) / intervalMs - 1) <= SAME_PACE ? intervalMs : null;
    seen = since;
  }

  return {
    intervalMs: () => (seen.length < ENOUGH_FOR_PACE ? null : paceMs(seen)),
    observe(number, seenMs) {
      const last = seen.at(-1);
      if (last !== undefined && number <= last.number) return;
      seen = [...seen, { number, seenMs }].slice(-REMEMBERED);
      forgetBeforePause();
    },
    waitMs(nowMs, beforeMs) {
      const [first, last] = [seen[0], seen.at(-1)];
      if (first === undefined || last === undefined || first === last) return 0;
      const intervalMs = paceMs(seen);
      const dueMs = phaseMs(seen, last, intervalMs) + intervalMs;
      // Never longer than a block: a wrong guess costs one cut at most.
      return Math.min(intervalMs, Math.max(0, Math.round(dueMs - beforeMs - nowMs)));
    },
  };
}

/** From one block to the next, on average. */
function slopeMs(sightings: readonly Sighting[]): number {
  const [first, last] = [sightings[0]!, sightings.at(-1)!];
  return (last.seenMs - first.seenMs) / (last.number - first.number);
}

/** When the last of them was made, as the earliest sightings have it. */
function phaseMs(sightings: readonly Sighting[], last: Sighting, intervalMs: number): number {
  return Math.min(...sightings.map((one) => one.seenMs + (last.number - one.number) * intervalMs));
}
