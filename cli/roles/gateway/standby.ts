import { setTimeout as delay } from 'node:timers/promises';
import { judgeReadiness } from '../../../keepers/watcher/status.js';
import { createRemoteStatus } from '../../../keepers/watcher/remote-status.js';
import { LedgerReversedError, LogCompactedError } from '../../../ledger/errors.js';
import { ListenError } from '../../../server/listen.js';
import type { Writer } from '../../../ledger/types.js';
import { startHttp, type HttpHandle, type HttpOptions } from './http.js';
import type { Config } from '../../config.js';
import type { RoleContext } from '../context.js';
import { wakeByHints } from '../wakes.js';

/** How long a process waits for its logs before it serves reads meanwhile. */
const PATIENCE_MS = 1_000;

/** How long it waits before it starts again from what is stored. */
const REBUILD_MS = 100;

interface StandbyOptions {
  signal: AbortSignal;
  metrics: HttpOptions['metrics'];
  failure: HttpOptions['failure'];
  /** Called when reads begin to be served, with what serves them, and with null before that ends, promoted or not. */
  onServing(http: HttpHandle | null): void;
  /** Of the roles, for after the promotion. */
  onSwapOrder: HttpOptions['onSwapOrder'];
  onOutdated: HttpOptions['onOutdated'];
  /** Of a process that never gets logs; by default readiness is that of a standby, and there is no lag. */
  reader?: HttpOptions['reader'];
}

/** A standby whose process has its logs, and that still serves reads. */
export interface Standing {
  http: HttpHandle;
  /**
   * Makes it the gateway: the rest of the logs is read, and then actions are accepted at the same address and on the same connections.
   * Rejects when its state is out of date or it has stopped; then it must be closed, and another one started.
   */
  promote(writer: Writer): Promise<void>;
}

/**
 * Serves reads while a process waits for logs that another one holds: everything but actions, which get 503 `standby`, and it says
 * of itself that it is not active. When part of the ledger is taken back, rows are
 * compacted before they were read, or what was read can't be applied, it starts again from what is stored, at the same door; clients of its
 * sockets connect anew. Ends when `acquired` does, with what serves, to be promoted or closed, or when the signal is aborted. Null when nothing
 * serves, because the wait was short, the address is the holder's, what was followed is out of date, or it was told to stop; then requests wait
 * at the door for the roles themselves.
 */
export async function serveStandby(
  context: RoleContext<Config>,
  acquired: Promise<void>,
  options: StandbyOptions,
): Promise<Standing | null> {
  const { signal } = options;
  const { logger } = context;
  let isOver = false;
  const ended = acquired
    .catch(() => undefined)
    .then(() => {
      isOver = true;
    });
  await Promise.race([ended, delay(PATIENCE_MS)]);
  while (!isOver && !signal.aborted) {
    try {
      const standing = await serveOnce(context, ended, options);
      if (standing !== null) return standing;
    } catch (error) {
      if (error instanceof ListenError && (options.reader ?? null) === null) {
        logger.warn({ err: error }, 'on standby without serving reads');
        await ended;
        return null;
      }
      // What is stored moved on between two reads of the start.
      if (!(error instanceof LogCompactedError) && !(error instanceof LedgerReversedError)) throw error;
    }
    if (!isOver) await Promise.race([ended, delay(REBUILD_MS)]);
  }
  return null;
}

/** Serves what is stored now and follows it, until `ended` does; null when it is out of date before. */
async function serveOnce(
  context: RoleContext<Config>,
  ended: Promise<void>,
  { signal, metrics, failure, onServing, onSwapOrder, onOutdated, reader = null }: StandbyOptions,
): Promise<Standing | null> {
  const { config, db, logger } = context;
  const stopping = new AbortController();
  const both = AbortSignal.any([signal, stopping.signal]);
  const waiting = new AbortController();
  let isPromoted = false;
  const outdated = Promise.withResolvers<void>();
  let isOutdated = false;
  void outdated.promise.then(() => (isOutdated = true));
  const remote = createRemoteStatus({
    db,
    // A process that gets its logs later reads the listings then, into its own list.
    markets: reader === null ? [] : context.markets,
    deploymentBlock: config.manifest.deploymentBlock,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    logger,
    onGeneration: () => undefined,
    onReversal: outdated.resolve,
  });
  const whileWaiting = AbortSignal.any([both, waiting.signal]);
  const loop = remote.start(whileWaiting);
  const view: RoleContext<Config> = {
    ...context,
    watcherStatus: () => (isPromoted ? context.watcherStatus() : remote.status()),
    readiness() {
      if (isPromoted) return context.readiness();
      if (reader === null) return { ready: false, reason: 'standby' };
      return reader.isBehind()
        ? { ready: false, reason: 'replica_lag' }
        : judgeReadiness(remote.status(), context.nowMs());
    },
  };
  let http: HttpHandle | null = null;

  async function end(): Promise<void> {
    stopping.abort();
    if (http !== null) onServing(null);
    await http?.close();
    await loop.done;
  }

  try {
    const served = await startHttp(view, null, {
      ...{ signal: both, metrics, failure, reader },
      onSwapOrder: () => isPromoted && onSwapOrder(),
      onOutdated: () => (isPromoted ? onOutdated() : outdated.resolve()),
    });
    http = served;
    onServing(http);
    wakeByHints(context, ['ledger', 'operator'], loop.wake, whileWaiting);
    wakeByHints(context, ['ledger', 'orders', 'operator'], http.onGeneration, whileWaiting);
    logger.info({ url: http.url }, reader === null ? 'on standby: another process holds a log' : 'serving reads only');
    const isCurrent = await Promise.race([ended.then(() => true), outdated.promise.then(() => false)]);
    if (!isCurrent || signal.aborted) {
      await end();
      return null;
    }
    return {
      http: { ...served, close: end },
      async promote(writer) {
        // Rows after the last read are found by the gateway itself, which reads both logs again before it accepts actions.
        if (isOutdated) throw new Error('what the standby holds is out of date');
        const startedMs = context.monotonicMs();
        await Promise.race([
          served.promote(writer),
          outdated.promise.then(() => Promise.reject(new Error('what the standby holds is out of date'))),
        ]);
        isPromoted = true;
        waiting.abort();
        logger.info({ tookMs: Math.round(context.monotonicMs() - startedMs) }, 'the standby takes actions');
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
