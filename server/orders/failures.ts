/**
 * Facts about client addresses: how many signatures of unknown accounts came from them, each of which costs several recoveries, and whether
 * makers act from them.
 */
interface FailureLimit {
  /** Seconds until the budget of the address is full again, 0 while some of it is left. */
  spentSec(address: string): number;
  /** A request failed; a long one counts more, because reading and hashing it costs more. */
  failed(address: string, bytes?: number): void;
  /** A maker's signature came from the address. */
  known(address: string): void;
  /** A maker's signature came from the address lately, and its budget is not spent: requests from there need not wait for others. */
  isTrusted(address: string): boolean;
}

const WINDOW_MS = 60_000;
/** After a longer silence the maker may have another address. */
const TRUST_MS = 600_000;
/** Addresses remembered at once. */
const MAX_ADDRESSES = 50_000;
/** Reading and hashing this many bytes costs about as much as one recovery. */
const BYTES_PER_POINT = 8 * 1024;

/** Points per address, in windows of a minute that begin with the first one. */
interface Windows {
  /** Seconds until the window of the address ends, 0 while fewer points than allowed were counted in it. */
  spentSec(address: string): number;
  add(address: string, points: number): void;
}

/** Whether less than `lengthMs` have passed since then. A time to come is from before the clock was set back. */
function isWithin(sinceMs: number, lengthMs: number, nowMs: number): boolean {
  return nowMs >= sinceMs && nowMs - sinceMs < lengthMs;
}

/**
 * Counts points per address. It does not use the library that limits the other routes: that one answers by a promise, while this runs
 * before every signed action; it keeps a timer per address and an unbounded number of addresses, which senders of bad signatures can
 * choose; and it uses only the system's clock.
 */
export function createWindows(perMinute: number, clock: () => number): Windows {
  const windows = new Map<string, { startMs: number; points: number }>();

  const current = (address: string): { startMs: number; points: number } | undefined => {
    const window = windows.get(address);
    if (window === undefined || isWithin(window.startMs, WINDOW_MS, clock())) return window;
    windows.delete(address);
    return undefined;
  };

  /** Windows are stored by their beginnings, so the first ones are the oldest. */
  const prune = (): void => {
    for (const [address, { startMs }] of windows) {
      if (windows.size < MAX_ADDRESSES && isWithin(startMs, WINDOW_MS, clock())) return;
      windows.delete(address);
    }
  };

  return {
    spentSec(address) {
      const window = current(address);
      if (window === undefined || window.points < perMinute) return 0;
      return Math.ceil((window.startMs + WINDOW_MS - clock()) / 1_000);
    },
    add(address, points) {
      const window = current(address);
      if (window !== undefined) {
        window.points += points;
        return;
      }
      prune();
      windows.set(address, { startMs: clock(), points });
    },
  };
}

/** Counts failures per address in such windows, and remembers from which addresses makers act. */
export function createFailureLimit(perMinute: number, clock: () => number): FailureLimit {
  const windows = createWindows(perMinute, clock);
  const trusted = new Map<string, number>();
  const { spentSec } = windows;

  return {
    spentSec,
    failed: (address, bytes = 0) => windows.add(address, 1 + Math.floor(bytes / BYTES_PER_POINT)),
    known(address) {
      // Moved to the end, so that the first entry is the one that was silent for longest.
      trusted.delete(address);
      trusted.set(address, clock());
      if (trusted.size > MAX_ADDRESSES) trusted.delete(trusted.keys().next().value as string);
    },
    isTrusted(address) {
      const heardMs = trusted.get(address);
      return heardMs !== undefined && isWithin(heardMs, TRUST_MS, clock()) && spentSec(address) === 0;
    },
  };
}
