import type { Logger } from 'pino';
import { judgeReplication, readReplication, type ReplicaCounts } from '../ledger/db/replication.js';
import type { Db } from '../ledger/types.js';
import { startLoop, type Loop } from './loop.js';

export interface ReplicationStatus {
  counts: ReplicaCounts;
  /** Acknowledged commits may be lost with the server, and there are replicas that could prevent it. */
  isUnsafe: boolean;
}

interface ReplicationWatch {
  /** Nothing is attached and nothing unsafe on SQLite, and before the first look. */
  status(): ReplicationStatus;
  /** Commits must be refused now, because a synchronous replica is required and there is none. */
  refuses(): boolean;
  look(): Promise<void>;
  /** Checks once a minute, every five seconds if a replica is required. */
  start(signal: AbortSignal): Loop;
}

const INTERVAL_MS = 60_000;
const REQUIRED_INTERVAL_MS = 5_000;

/** Checks whether commits survive the loss of the database's server, and logs changes. `read` queries the server. */
export function createReplicationWatch(deps: {
  db: Db;
  required: boolean;
  logger: Logger;
  read?: typeof readReplication;
}): ReplicationWatch {
  const { db, required, logger, read = readReplication } = deps;
  let status: ReplicationStatus = { counts: { sync: 0, async: 0, unknown: 0 }, isUnsafe: false };
  let isSynchronous = false;
  let said: string | null = null;

  async function look(): Promise<void> {
    const found = await read(db);
    if (found === null) return;
    const verdict = judgeReplication(found);
    isSynchronous = verdict.isSynchronous;
    status = { counts: verdict.counts, isUnsafe: verdict.problem !== null };
    const problem = verdict.problem ?? (required && !isSynchronous ? 'no synchronous replica is attached' : null);
    if (problem !== null && problem !== said) logger.warn({ ...verdict.counts, required }, `replication: ${problem}`);
    if (problem === null && said !== null) logger.info({ ...verdict.counts }, 'replication is safe again');
    said = problem;
  }

  return {
    status: () => status,
    refuses: () => required && !isSynchronous,
    look,
    start: (signal) =>
      startLoop(look, {
        name: 'replication',
        intervalMs: required ? REQUIRED_INTERVAL_MS : INTERVAL_MS,
        signal,
        logger,
      }),
  };
}
