import { setTimeout as delay } from 'node:timers/promises';
import { createRemoteStatus } from '../keepers/watcher/remote-status.js';
import { ListenError } from '../server/listen.js';
import { startHttp, type HttpOptions } from './http.js';
import type { Shared } from './shared.js';

/** How long a process waits for its logs before it serves reads meanwhile. */
const PATIENCE_MS = 1_000;

export interface StandbyOptions {
  signal: AbortSignal;
  metrics: HttpOptions['metrics'];
  /** The ledger was reconciled: what is served is out of date. */
  onReversal(): void;
}

/**
 * Serves reads while a process waits for logs that another one holds: everything but actions, which get 503 `standby`, and it says
 * of itself that it is not ready. Ends when `acquired` does, so that the address is free for the roles themselves; resolves with the
 * port that was served on, or null when nothing was, because the wait was short or the address is the holder's.
 */
export async function serveStandby(
  shared: Shared,
  acquired: Promise<void>,
  { signal, metrics, onReversal }: StandbyOptions,
): Promise<number | null> {
  const ended = acquired.catch(() => undefined);
  const isWaiting = await Promise.race([ended.then(() => false), delay(PATIENCE_MS, true)]);
  if (!isWaiting) return null;
  const { config, db, logger } = shared;
  const stopping = new AbortController();
  const both = AbortSignal.any([signal, stopping.signal]);
  const remote = createRemoteStatus({
    db,
    markets: [],
    deploymentBlock: config.manifest.deploymentBlock,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    logger,
    onGeneration: () => undefined,
    onReversal,
  });
  const loop = remote.start(both);
  try {
    const http = await startHttp(
      { ...shared, watcherStatus: remote.status, readiness: () => ({ ready: false, reason: 'standby' }) },
      null,
      { signal: both, metrics, onSwapOrder: () => undefined },
    );
    logger.info({ url: http.url }, 'on standby: another process holds a log');
    await ended;
    stopping.abort();
    await http.close();
    return http.port;
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    logger.warn({ err: error }, 'on standby without serving reads');
    return null;
  } finally {
    stopping.abort();
    await loop.done;
  }
}
