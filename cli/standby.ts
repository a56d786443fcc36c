import { setTimeout as delay } from 'node:timers/promises';
import { createRemoteStatus } from '../keepers/watcher/remote-status.js';
import { LogCompactedError } from '../ledger/errors.js';
import { ListenError } from '../server/listen.js';
import { startHttp, type HttpOptions } from './http.js';
import type { Shared } from './shared.js';

/** How long a process waits for its logs before it serves reads meanwhile. */
const PATIENCE_MS = 1_000;

/** How long it waits before it starts again from what is stored. */
const REBUILD_MS = 100;

export interface StandbyOptions {
  signal: AbortSignal;
  metrics: HttpOptions['metrics'];
  failure: HttpOptions['failure'];
  /** Called when reads begin to be served, and before they end. */
  onServing(isServing: boolean): void;
}

/**
 * Serves reads while a process waits for logs that another one holds: everything but actions, which get 503 `standby`, and it says
 * of itself that it is not active. When the ledger is reconciled, or rows are compacted before they were read, it starts again from what
 * is stored, at the same door; clients of its sockets connect anew. Ends when `acquired` does: requests wait at the door for the roles
 * themselves. Nothing is served when the wait is short, or the address is the holder's.
 */
export async function serveStandby(shared: Shared, acquired: Promise<void>, options: StandbyOptions): Promise<void> {
  const { signal } = options;
  const { logger } = shared;
  let isOver = false;
  const ended = acquired
    .catch(() => undefined)
    .then(() => {
      isOver = true;
    });
  await Promise.race([ended, delay(PATIENCE_MS)]);
  while (!isOver && !signal.aborted) {
    try {
      await serveOnce(shared, ended, options);
    } catch (error) {
      if (error instanceof ListenError) {
        logger.warn({ err: error }, 'on standby without serving reads');
        return ended;
      }
      // Rows were compacted before they were read.
      if (!(error instanceof LogCompactedError)) throw error;
    }
    if (!isOver) await Promise.race([ended, delay(REBUILD_MS)]);
  }
}

/** Serves what is stored now and follows it, until `ended` does or it is out of date. */
async function serveOnce(
  shared: Shared,
  ended: Promise<void>,
  { signal, metrics, failure, onServing }: StandbyOptions,
): Promise<void> {
  const { config, db, logger } = shared;
  const stopping = new AbortController();
  const both = AbortSignal.any([signal, stopping.signal]);
  let onOutdated: () => void = () => undefined;
  const outdated = new Promise<void>((resolve) => (onOutdated = resolve));
  const remote = createRemoteStatus({
    db,
    markets: [],
    deploymentBlock: config.manifest.deploymentBlock,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    logger,
    onGeneration: () => undefined,
    onReversal: onOutdated,
  });
  const loop = remote.start(both);
  try {
    const http = await startHttp(
      { ...shared, watcherStatus: remote.status, readiness: () => ({ ready: false, reason: 'standby' }) },
      null,
      { signal: both, metrics, failure, onSwapOrder: () => undefined, onOutdated },
    );
    onServing(true);
    logger.info({ url: http.url }, 'on standby: another process holds a log');
    await Promise.race([ended, outdated]);
    stopping.abort();
    onServing(false);
    await http.close();
  } finally {
    stopping.abort();
    await loop.done;
  }
}
