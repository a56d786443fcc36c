/** A process that writes nothing: a reader, or an edge, on the primary or a streaming replica, without a migration, a log or a key. */
import { setTimeout as delay } from 'node:timers/promises';
import { startLoop } from '../../keepers/loop.js';
import { createReplicaWatch } from '../../keepers/replica-lag.js';
import { beforeFirstScan } from '../../keepers/watcher/status.js';
import { openDb } from '../../ledger/db/db.js';
import { NO_HINTS, listenForHints } from '../../ledger/db/hints.js';
import { DatabaseError } from '../../ledger/errors.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readReplicaLag, readTablesState, type ReplicaLag, type TablesState } from '../../ledger/db/replica.js';
import type { Db } from '../../ledger/types.js';
import { createLogger } from '../logger.js';
import { startOps, type Ops } from '../ops.js';
import { READER } from '../settings/common.js';
import { EDGE } from '../settings/edge.js';
import type { Config } from '../config.js';
import type { HttpHandle } from './gateway/http.js';
import { checkChain, createRoleContext } from './context.js';
import { startEdge } from './edge.js';
import { serveStandby, type Standing } from './gateway/standby.js';
import { createStandstill } from './standstill.js';
import type { Running, StartOptions } from './run.js';

/** Pause between two looks at tables that are not this version's yet. */
const TABLES_PAUSE_MS = 1_000;
/** How long an edge that ends waits for answers. */
const EDGE_GRACE_MS = 1_000;
/** What is stored is served within a second, unless nobody answers who reads it. */
const STANDSTILL_MS = 20_000;
/** Pause between two looks whether a newer version has changed the tables. */
const VERSION_INTERVAL_MS = 2_000;

/**
 * Serves reads, and as an edge actions, until it is stopped. Waits while the tables are older than this version: a replica gets them from the primary. Null when it
 * was told to give up before. Throws as `openDb` and `readTablesState` do.
 */
export async function startReader(
  config: Config,
  { signal: interrupt, doors, onFailing }: Pick<StartOptions, 'signal' | 'doors' | 'onFailing'>,
): Promise<Running | null> {
  const logger = createLogger(config.LOG_LEVEL);
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, interrupt]);
  const failing = Promise.withResolvers<Error>();
  let failure: string | null = null;
  let serving: Promise<Standing | null> = Promise.resolve(null);
  let http: HttpHandle | null = null;
  let ops: Ops | null = null;

  function fail(error: unknown): void {
    if (signal.aborted) return;
    const known = error instanceof Error ? error : new Error(String(error));
    if (failure === null) logger.error({ err: known }, 'the roles end');
    failure = known.message;
    failing.resolve(known);
  }

  const db = await openDb(config.DATABASE_URL, { create: false });
  const isEdge = config.ROLES.includes(EDGE);
  // A replica announces no commits, and does not let itself be listened to.
  const hints = isEdge && config.WAKE && !(await isReplica(db)) ? listenForHints(db, { signal, logger }) : NO_HINTS;
  const edge = isEdge ? startEdge(config, db, logger) : null;
  const standsStill = createStandstill(STANDSTILL_MS, () => performance.now());

  /** Each look has a connection that answers, and a limit. */
  async function look(): Promise<ReplicaLag> {
    const lag = await readReplicaLag(db);
    if (http !== null && standsStill((await lastGeneration(db.reads))?.generation ?? 0, http.generation()))
      fail(new Error('what is served stands still while the ledger goes on: a connection to the database may be dead'));
    return lag;
  }
  const replica = createReplicaWatch({
    db,
    maxLagMs: config.READER_MAX_LAG_MS,
    monotonicMs: () => performance.now(),
    logger,
    onChange: (isBehind) => isBehind && http?.disconnect(),
    read: look,
  });
  const lag = replica.start(signal);
  const versions = startLoop(
    async () => {
      await readTablesState(db, config.manifest.deploymentId).catch((error: unknown) => {
        // This code does not know what a newer version writes.
        if (!(error instanceof DatabaseError)) throw error;
        fail(error);
      });
    },
    { name: 'tables', intervalMs: VERSION_INTERVAL_MS, signal, logger },
  );

  async function stop(): Promise<void> {
    stopping.abort();
    const standing = await serving.catch(() => null);
    // What was handed over is answered within milliseconds, unless nobody answers: then the edge says so, and clients need not be waited for.
    const closed = Promise.resolve(standing?.http.close());
    closed.catch(() => undefined);
    if (edge !== null) await Promise.race([closed, delay(EDGE_GRACE_MS)]);
    await edge?.close();
    await closed;
    await ops?.close();
    await Promise.all([lag.done, versions.done, hints.done]);
    await db.close();
  }

  try {
    if (config.METRICS_PORT !== undefined) await doors.ops.open();
    await tablesCurrent(db, config.manifest.deploymentId, signal, (state) =>
      logger.warn({ state }, 'waiting for the tables of this version'),
    );
    if (signal.aborted) {
      await stop();
      return null;
    }
    const context = createRoleContext({
      ...{ config, doors, db, logger },
      writers: new Map(),
      hints,
      watcherStatus: () => beforeFirstScan(config.manifest.deploymentBlock),
      readiness: () => ({ ready: false, reason: 'starting' }),
      replication: () => null,
    });
    ops = await startOps(context, {
      started: () => false,
      serving() {
        if (http === null) return { ready: false, reason: 'starting' };
        const reason = replica.isBehind() ? 'replica_lag' : (edge?.unready() ?? null);
        return { ready: reason === null, reason };
      },
      edge: () => edge?.facts() ?? null,
      gateway: () => null,
      nats: () => edge?.facts().connected ?? null,
      failure: () => failure,
      // An alert can't be about a series that is not there.
      replica: () => ({ lagMs: replica.lagMs() ?? Infinity, isBehind: replica.isBehind() }),
    });
    void checkChain(context, fail);
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const started = Promise.withResolvers<void>();
    serving = serveStandby(context, stopped, {
      signal,
      metrics: ops.metrics,
      failure: () => failure,
      reader: edge === null ? replica : { ...replica, edge },
      onServing(handle) {
        http = handle;
        if (handle !== null) started.resolve();
      },
      onSwapOrder: () => undefined,
      onOutdated: () => undefined,
    });
    serving.catch((error: unknown) => {
      started.resolve();
      fail(error);
    });
    await Promise.race([started.promise, stopped, failing.promise]);
  } catch (error) {
    if (!interrupt.aborted) onFailing(error);
    await stop();
    if (interrupt.aborted) return null;
    throw error;
  }
  return {
    roles: [edge === null ? READER : EDGE],
    url: (http as HttpHandle | null)?.url ?? null,
    stop,
    failed: failing.promise,
  };
}

async function isReplica(db: Db): Promise<boolean> {
  try {
    return (await readReplicaLag(db)).isReplica;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Resolves once the tables are this version's, or the signal is aborted. */
async function tablesCurrent(
  db: Db,
  deploymentId: string,
  signal: AbortSignal,
  onWait: (state: TablesState) => void,
): Promise<void> {
  let said: TablesState = 'current';
  while (!signal.aborted) {
    const state = await readTablesState(db, deploymentId);
    if (state === 'current') return;
    if (state !== said) onWait(state);
    said = state;
    await delay(TABLES_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}
