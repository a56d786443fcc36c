interface WakeLimit {
  /** Wakes now, or as soon as it may; hints that come until then are one. */
  hint(): void;
  /** Wakes that were let through since the start. */
  count(): number;
}

interface WakeLimitOptions {
  wake(): void;
  /** Least time between two wakes. */
  spacingMs: number;
  /** So many may come that close together; then one per `refillMs`. Absent: as many as the spacing lets through. */
  burst?: number;
  refillMs?: number;
  signal: AbortSignal;
  monotonicMs(): number;
}

/** Limits the cost of external hints: any number of them causes no more wake-ups than this allows. */
export function createWakeLimit(options: WakeLimitOptions): WakeLimit {
  const { wake, spacingMs, burst = 1, refillMs = spacingMs, signal, monotonicMs } = options;
  let left = burst;
  let refilledMs = monotonicMs();
  let wokenMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | null = null;
  let count = 0;

  signal.addEventListener('abort', () => timer !== null && clearTimeout(timer), { once: true });

  /** How long until the next wake may be. */
  function waitMs(nowMs: number): number {
    const refills = Math.floor((nowMs - refilledMs) / refillMs);
    refilledMs = left + refills >= burst ? nowMs : refilledMs + refills * refillMs;
    left = Math.min(burst, left + refills);
    const spacing = wokenMs + spacingMs - nowMs;
    return Math.max(0, spacing, left > 0 ? 0 : refilledMs + refillMs - nowMs);
  }

  function pass(): void {
    timer = null;
    if (signal.aborted) return;
    left -= 1;
    wokenMs = monotonicMs();
    count += 1;
    wake();
  }

  function tryNow(): void {
    timer = null;
    if (signal.aborted) return;
    const pauseMs = waitMs(monotonicMs());
    if (pauseMs <= 0) return pass();
    timer = setTimeout(tryNow, pauseMs);
    timer.unref();
  }

  return {
    hint: () => {
      if (timer === null) tryNow();
    },
    count: () => count,
  };
}
