/** How often one IP address may send requests whose signature names nobody: each costs several recoveries. */
export interface FailureLimit {
  /** Seconds until the address may try again, 0 when it may now. */
  blockedSec(address: string): number;
  count(address: string): void;
}

const WINDOW_MS = 60_000;
/** Addresses remembered at once. */
const MAX_ADDRESSES = 50_000;

/**
 * Counts failures per address in windows of a minute that begin with the first one. Not the library that limits the other routes:
 * that one answers by a promise, while this is asked in front of every signed action, keeps a timer for each address and any number of
 * addresses, which whoever sends bad signatures may choose, and knows no clock but the system's.
 */
export function createFailureLimit(perMinute: number, clock: () => number): FailureLimit {
  const windows = new Map<string, { startMs: number; failures: number }>();

  const current = (address: string): { startMs: number; failures: number } | undefined => {
    const window = windows.get(address);
    if (window === undefined || clock() - window.startMs < WINDOW_MS) return window;
    windows.delete(address);
    return undefined;
  };

  /** Windows are kept in the order of their beginnings, so the first ones are the oldest. */
  const prune = (): void => {
    for (const [address, { startMs }] of windows) {
      if (windows.size < MAX_ADDRESSES && clock() - startMs < WINDOW_MS) return;
      windows.delete(address);
    }
  };

  return {
    blockedSec(address) {
      const window = current(address);
      if (window === undefined || window.failures < perMinute) return 0;
      return Math.ceil((window.startMs + WINDOW_MS - clock()) / 1_000);
    },
    count(address) {
      const window = current(address);
      if (window !== undefined) {
        window.failures += 1;
        return;
      }
      prune();
      windows.set(address, { startMs: clock(), failures: 1 });
    },
  };
}
