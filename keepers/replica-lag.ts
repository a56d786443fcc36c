import type { Logger } from 'pino';
import { readReplicaLag, type ReplicaLag } from '../ledger/db/replica.js';
import type { Db } from '../ledger/types.js';
import { startLoop, type Loop } from './loop.js';

const INTERVAL_MS = 500;

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
    try {
      newest = { lag: await read(db), atMs };
    } finally {
      tell();
    }
  }

  return {
    lagMs,
    isBehind,
    look,
    start: (signal) => startLoop(look, { name: 'replica-lag', intervalMs: INTERVAL_MS, signal, logger }),
  };
}
