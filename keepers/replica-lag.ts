import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { readReplicaLag, type ReplicaLag } from '../ledger/db/replica.js';
import type { Db } from '../ledger/types.js';
import { startLoop, type Loop } from './loop.js';

const INTERVAL_MS = 500;
/** The database is given up on for one look after this. */
const LOOK_TIMEOUT_MS = 5_000;

interface ReplicaWatch {
  /** Null while nothing is known: before the first look, and for a replica that never said. Time since the newest look counts. */
  lagMs(): number | null;
  /** Whether what is read may be older than the bound. */
  isBehind(): boolean;
  look(): Promise<void>;
  start(signal: AbortSignal): Loop;
}

/**
 * Follows how far the database that a process reads is behind its primary. What can't be read counts as behind, once the newest answer is too old.
 * `onChange` is called when `isBehind` changes, also from its first value, which is true. `read` asks the database.
 */
export function createReplicaWatch(deps: {
  db: Db;
  maxLagMs: number;
  monotonicMs: () => number;
  logger: Logger;
  onChange(isBehind: boolean): void;
  read?: typeof readReplicaLag;
}): ReplicaWatch {
  const { db, maxLagMs, monotonicMs, logger, onChange, read = readReplicaLag } = deps;
  let newest: { lag: ReplicaLag; atMs: number } | null = null;
  let told = true;

  function lagMs(): number | null {
    if (newest === null || newest.lag.lagMs === null) return null;
    return newest.lag.lagMs + Math.round(monotonicMs() - newest.atMs);
  }

  function isBehind(): boolean {
    const lag = lagMs();
    return lag === null || lag > maxLagMs;
  }

  function tell(): void {
    const now = isBehind();
    if (now === told) return;
    told = now;
    if (now) logger.warn({ lagMs: lagMs(), maxLagMs }, 'the replica is too far behind: reads are refused');
    else logger.info({ lagMs: lagMs() }, 'the replica is near its primary: reads are served');
    onChange(now);
  }

  async function look(): Promise<void> {
    const atMs = monotonicMs();
    const given = new AbortController();
    try {
      const lag = await Promise.race([read(db), silence(given.signal)]);
      newest = { lag, atMs };
    } finally {
      given.abort();
      tell();
    }
  }

  /** Time goes on while the database is silent: whoever is served learns of it by the clock. Rejects in the end. */
  async function silence(signal: AbortSignal): Promise<never> {
    for (let waitedMs = 0; waitedMs < LOOK_TIMEOUT_MS; waitedMs += INTERVAL_MS) {
      await delay(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) tell();
    }
    throw new Error('the database does not say how far it is behind');
  }

  return {
    lagMs,
    isBehind,
    look,
    start: (signal) => startLoop(look, { name: 'replica-lag', intervalMs: INTERVAL_MS, signal, logger }),
  };
}
