/** When to look for the next block: as soon as a head is announced, or else just after it is due. */
import { createBlockClock } from '../poster/clock.js';
import { createWakeLimit } from '../wake-limit.js';

/** How far apart the watcher's looks are while nobody wakes it. */
export interface Pace {
  /** A block that was scanned was seen then. */
  observe(block: number, seenMs: number): void;
  /** Until the next look. */
  pauseMs(): number;
}

/** When a block was made is known to lie in between; a look that finds none, or finds one, narrows that. */
interface Bracket {
  fromMs: number;
  toMs: number;
}

/** As narrow as it need be: a block is then looked for at its end. */
const NARROW_MS = 40;
/** What a block's time differs from the pace of others. */
const JITTER_MS = 3;
/** When a block does not come by its end, it is looked for so often, so far apart; after that it may come whenever it likes. */
const LOOKS_WHEN_DUE = 6;
const LOOK_AGAIN_MS = 40;
/** A look waits this part longer, but no longer than that, when the block is due by then: it takes the place of two. */
const STRETCH = 1.5;
const LONGEST_STRETCH_MS = 1_500;

/**
 * Looks as often as `intervalMs` says, moved to just after the next block is due once the chain's pace is known, so that they find it when it
 * is new. At a chain that is faster than its looks they stay as they are.
 */
export function createPace(intervalMs: number, monotonicMs: () => number): Pace {
  const clock = createBlockClock();
  const longestMs = Math.max(intervalMs, Math.min(intervalMs * STRETCH, LONGEST_STRETCH_MS));
  let newest: (Bracket & { block: number }) | null = null;
  /** The newest look that found nothing. */
  let missedMs = Number.NEGATIVE_INFINITY;
  let isNew = false;
  let looks = 0;

  /** Where the block's time lies by what was seen of it, and of the ones before. */
  function bracketOf(block: number, seenMs: number, blockMs: number | null): Bracket {
    const seen = { fromMs: Math.max(missedMs, seenMs - (blockMs ?? intervalMs)), toMs: seenMs };
    if (newest === null || blockMs === null) return seen;
    const steps = block - newest.block;
    const fromMs = Math.max(seen.fromMs, newest.fromMs + steps * (blockMs - JITTER_MS));
    const toMs = Math.min(seen.toMs, newest.toMs + steps * (blockMs + JITTER_MS));
    return fromMs <= toMs ? { fromMs, toMs } : seen;
  }

  return {
    observe(block, seenMs) {
      if (newest !== null && block <= newest.block) return;
      clock.observe(block, seenMs);
      newest = { block, ...bracketOf(block, seenMs, clock.intervalMs()) };
      isNew = true;
      looks = 0;
    },
    pauseMs() {
      const nowMs = monotonicMs();
      if (!isNew) missedMs = nowMs;
      isNew = false;
      const blockMs = clock.intervalMs();
      if (blockMs === null || newest === null || blockMs < intervalMs) return intervalMs;
      const { fromMs, toMs } = newest;
      const middleMs = toMs - fromMs <= NARROW_MS ? toMs : (fromMs + toMs) / 2;
      const dueMs = [middleMs, toMs].map((ms) => ms + blockMs + 1 - nowMs).find((ms) => ms > 0);
      if (dueMs !== undefined) return dueMs > longestMs ? intervalMs : Math.ceil(dueMs);
      looks += 1;
      return looks <= LOOKS_WHEN_DUE ? Math.min(LOOK_AGAIN_MS, intervalMs) : intervalMs;
    },
  };
}

interface HeadWakesDeps {
  /** Has the watcher look now. */
  wake(): void;
  /** First block that is not scanned. */
  nextBlock(): number;
  /** The watcher's own pause between two looks. */
  intervalMs: number;
  signal: AbortSignal;
  monotonicMs(): number;
}

/** An endpoint may tell of a block before it answers what is in it, or before the one that is asked does. */
const AGAIN_AFTER_MS = [60, 150, 300];
const BURST = 8;

/**
 * Turns heads that endpoints tell of into looks, no more than twice as many as without any in the long run, whatever they tell: a head may be
 * invented, and a flood of them must not cost more than one.
 */
export function createHeadWakes({ wake, nextBlock, intervalMs, signal, monotonicMs }: HeadWakesDeps) {
  const limit = createWakeLimit({
    wake,
    spacingMs: AGAIN_AFTER_MS[0]! / 2,
    burst: BURST,
    refillMs: intervalMs,
    signal,
    monotonicMs,
  });
  let timers: NodeJS.Timeout[] = [];
  const forget = (): void => {
    for (const timer of timers) clearTimeout(timer);
    timers = [];
  };
  signal.addEventListener('abort', forget, { once: true });

  return {
    onHead(number: number): void {
      if (signal.aborted || number < nextBlock()) return;
      limit.hint();
      forget();
      timers = AGAIN_AFTER_MS.map((afterMs) => {
        const timer = setTimeout(() => number >= nextBlock() && limit.hint(), afterMs);
        timer.unref();
        return timer;
      });
    },
    /** Looks that heads have caused since the start. */
    count: limit.count,
  };
}
