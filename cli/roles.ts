import type { Logger } from 'pino';
import { createMinOrderUnits } from '../core/min-order.js';
import type { Market } from '../core/types.js';
import type { Loop } from '../keepers/loop.js';
import { createRemoteStatus } from '../keepers/watcher/remote-status.js';
import type { PosterMemory } from '../keepers/poster/memory.js';
import { narrate } from '../keepers/watcher/narrate.js';
import { judgeReadiness, type WatcherStatus } from '../keepers/watcher/status.js';
import { createTransferWatch } from '../keepers/watcher/tokens/transfer-watch.js';
import { createReplicationWatch } from '../keepers/replication.js';
import { createWatcher } from '../keepers/watcher/watcher.js';
import { createPace } from '../keepers/watcher/wakes.js';
import { NO_HINTS, listenForHints } from '../ledger/db/hints.js';
import { openDb, prepareDb } from '../ledger/db/db.js';
import { LedgerReversedError } from '../ledger/errors.js';
import { createSnapshotStore } from '../ledger/orders/snapshots.js';
import type { GenerationWrite, LogName, Writer } from '../ledger/types.js';
import { acquireWriter } from '../ledger/db/writers.js';
import { type Config, type Role } from './config.js';
import { ConfigError } from './errors.js';
import { fillLine } from './fill-line.js';
import { startHttp, type HttpHandle, type HttpOptions } from './http.js';
import { createLogger } from './logger.js';
import { startCompactor, startPoster, startSettler, warmPoster, type PosterWarming } from './keepers.js';
import { startOps, type Ops } from './ops.js';
import { checkChain, rpcPool, type Doors, type Shared } from './shared.js';
import { serveStandby, type Standing } from './standby.js';
import { startExecutor } from './swap.js';
import { startSwapCheck } from './swap-check.js';
import { unusedNames } from './unused-names.js';
import { wakeByHeads, wakeByHints } from './wakes.js';

/** The ledger was reconciled with the chain, or rows were compacted before they were read: roles start again from what is stored. */
export class RolesOutdatedError extends Error {
  override readonly name = 'RolesOutdatedError';

  constructor() {
    super('what the roles hold in memory is out of date; starting them again');
  }
}

/** A running set of roles. */
interface Running {
  /** Where the HTTP server listens, null when no role of this process needs one. */
  url: string | null;
  /** Stops the roles in order, closes the database. */
  stop(): Promise<void>;
  /** Resolves when a log was lost to another process, or a keeper ended for another reason than `stop`. */
  readonly failed: Promise<Error>;
}

const LOG_OF: Partial<Record<Role, LogName>> = {
  gateway: 'order',
  watcher: 'ledger',
  poster: 'publication',
  settler: 'settlement',
  executor: 'swap',
};

interface StartOptions {
  /** Gives the start up, which may wait for logs that another process holds. A set of roles that runs is stopped by `stop`. */
  signal: AbortSignal;
  /** Where the roles answer; they stay open when the roles end. */
  doors: Doors;
  /** Gets one line per fill. */
  printLine(line: string): void;
}

/**
 * Starts the configured roles over one database. Each writer role waits until it owns its log. Resolves with null, and leaves nothing
 * behind, when it was told to give up before that.
 */
export async function startRoles(
  config: Config,
  { signal: interrupt, doors, printLine }: StartOptions,
): Promise<Running | null> {
  const logger = createLogger(config.LOG_LEVEL);
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, interrupt]);
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<Error>((resolve) => (fail = resolve));

  const db = await openDb(config.DATABASE_URL);
  const writers = new Map<LogName, Writer>();
  const loops: Pick<Loop, 'done'>[] = [];
  let http: HttpHandle | null = null;
  let ops: Ops | null = null;
  let failure: Error | null = null;
  let isStarting = true;
  let isOnStandby = false;
  void failed.then((error) => {
    failure = error;
    logger.error({ err: error }, 'the roles end');
    // While it waits for one log another one may be lost.
    if (isStarting) stopping.abort(error);
  });

  async function stop(): Promise<void> {
    stopping.abort();
    await http?.close();
    await ops?.close();
    await Promise.all(loops.map((loop) => loop.done));
    for (const writer of writers.values()) await writer.release();
    await db.close();
  }

  async function acquireWriters(roles: readonly Role[]): Promise<void> {
    for (const role of roles) {
      const log = LOG_OF[role];
      if (log !== undefined) writers.set(log, await acquireWriter(db, log, { signal, onLost: fail }));
    }
  }

  try {
    // Tables may take minutes to bring up to date: a process that does so must not pass for a dead one.
    if (config.METRICS_PORT !== undefined) await doors.ops.open();
    await prepareDb(db, config.manifest.deploymentId, (done, total) =>
      logger.info({ done, total }, 'deriving candles and positions from the fills'),
    );
    const markets: Market[] = [];
    let readStatus: (() => WatcherStatus) | null = null;
    const watcherStatus = (): WatcherStatus => {
      if (readStatus === null) throw new Error('no role follows the ledger yet');
      return readStatus();
    };
    const replication = createReplicationWatch({ db, required: config.REQUIRE_SYNC_REPLICA, logger });
    loops.push(replication.start(signal));
    const hints = config.WAKE ? listenForHints(db, { signal, logger }) : NO_HINTS;
    loops.push(hints);
    const shared: Shared = {
      config,
      doors,
      db,
      hints,
      logger,
      markets,
      minOrderUnits: createMinOrderUnits(config.MIN_ORDER_VALUES),
      writers,
      keepers: { signers: [], endpoints: [], poster: null, settler: null, transfers: null, proofs: null, heads: null },
      watcherStatus,
      readiness() {
        const readiness = judgeReadiness(watcherStatus(), Date.now());
        return readiness.ready && replication.refuses() ? { ready: false, reason: 'no_sync_replica' } : readiness;
      },
      replication: replication.status,
      nowMs: () => Date.now(),
      monotonicMs: () => performance.now(),
    };
    // Before the writers, so that a process that waits for its logs can be seen to wait.
    ops = await startOps(shared, {
      started: () => readStatus !== null && !isStarting,
      serving: () => http !== null || isOnStandby,
      gateway: () => http?.facts() ?? null,
      failure: () => failure?.message ?? null,
    });
    // Beside the start: no role uses an endpoint before it has proven its chain.
    void checkChain(shared, fail);
    loops.push(startSwapCheck(shared, signal, fail));
    const acquired = acquireWriters(config.ROLES);
    acquired.catch(() => undefined);
    const { metrics } = ops;
    const onReversal = () => fail(new RolesOutdatedError());
    const warming = config.ROLES.includes('poster') ? warmPoster(shared, acquired, signal) : undefined;
    if (warming !== undefined) loops.push(warming);
    let executor: Loop | null = null;
    const httpOptions: HttpOptions = {
      signal,
      metrics,
      failure: () => failure?.message ?? null,
      onSwapOrder: () => executor?.wake(),
      onOutdated: onReversal,
    };
    let standing: Standing | null = null;
    if (config.ROLES.includes('gateway')) {
      const onServing = (isServing: boolean): void => void (isOnStandby = isServing);
      standing = await serveStandby(shared, acquired, { ...httpOptions, onServing });
      http = standing?.http ?? null;
    }
    await acquired;
    signal.throwIfAborted();
    await warming?.takeOver();
    signal.throwIfAborted();
    const listeners: (() => void)[] = [];
    /** Of who waits for deposits and withdrawals. */
    const claims: (() => void)[] = [];
    const notify = () => listeners.forEach((listener) => listener());
    let toldUnused = false;
    listeners.push(() => {
      // Before that, a market that a setting names may just not have been read yet.
      if (toldUnused || !shared.readiness().ready) return;
      toldUnused = true;
      for (const line of unusedNames(markets, config)) logger.warn(line);
    });

    const ledger = await startLedger(shared, signal, { notify, onReversal }, (write) => {
      for (const one of write.fills) {
        const market = markets[one.fill.market];
        if (market !== undefined) printLine(fillLine(market, one));
      }
      if (write.custody.length > 0) claims.forEach((wake) => wake());
    });
    loops.push(ledger.loop);
    signal.throwIfAborted();
    readStatus = ledger.status;
    const ownsLedger = writers.has('ledger');
    const nextBlock = (): number => ledger.status().nextBlock;
    if (ownsLedger) loops.push({ done: wakeByHeads(shared, { wake: ledger.loop.wake, nextBlock }, signal) });
    // What this process commits itself it knows already.
    wakeByHints(shared, ownsLedger ? ['operator'] : ['ledger', 'operator'], ledger.loop.wake, signal);
    wakeByHints(shared, ['operator'], notify, signal);
    loops.push(...startTransferWatch(shared, signal));
    const orderWriter = writers.get('order');
    if (orderWriter !== undefined) {
      http = await promoted(standing, orderWriter, logger);
      signal.throwIfAborted();
      http ??= await startHttp(shared, orderWriter, httpOptions);
      signal.throwIfAborted();
      // First, since fills are told by it.
      listeners.push(http.onGeneration);
      loops.push(startCompactor(shared, orderWriter, signal));
    }
    if (config.ROLES.includes('executor')) {
      executor = startExecutor(shared, signal);
      listeners.push(executor.wake);
      if (!writers.has('order')) wakeByHints(shared, ['swaps'], executor.wake, signal);
      loops.push(executor);
    }
    if (config.ROLES.includes('poster')) {
      // Not before: a round that was under way may replay a long log, and neither the ledger nor the gateway waits for that.
      const loop = await startPoster(shared, signal, await warmedMemory(warming, onReversal));
      listeners.push(loop.wake);
      loops.push(loop);
      signal.throwIfAborted();
    }
    if (config.ROLES.includes('settler')) {
      const loop = await startSettler(shared, signal);
      claims.push(loop.wake);
      wakeByHints(shared, ownsLedger ? ['operator'] : ['claims', 'operator'], loop.wake, signal);
      loops.push(loop);
    }
  } catch (error) {
    await stop();
    if (interrupt.aborted) return null;
    const cause = failure as Error | null;
    throw cause instanceof ConfigError ? cause : error;
  }
  isStarting = false;
  logger.info({ roles: config.ROLES, url: http?.url, metrics: ops.url, database: db.kind }, 'roles started');
  return { url: http?.url ?? null, stop, failed };
}

/** What the standby serves, as the gateway; null when there is none, or when what it holds can't be brought up to date: then it is closed. */
async function promoted(standing: Standing | null, writer: Writer, logger: Logger): Promise<HttpHandle | null> {
  if (standing === null) return null;
  try {
    await standing.promote(writer);
    return standing.http;
  } catch (error) {
    logger.warn({ err: error }, 'the standby is not promoted; the gateway starts from what is stored');
    await standing.http.close();
    return null;
  }
}

/** Undefined for a poster that starts cold. A reversal since the markets were read makes every role start again. */
async function warmedMemory(
  warming: PosterWarming | undefined,
  onReversal: () => void,
): Promise<PosterMemory | undefined> {
  try {
    return await warming?.memory();
  } catch (error) {
    if (error instanceof LedgerReversedError) onReversal();
    throw error;
  }
}

/** Beside the watcher, by endpoints of its own, so that it holds up no scan. */
function startTransferWatch(shared: Shared, signal: AbortSignal): Loop[] {
  const { config, markets, logger, keepers } = shared;
  if (!config.ROLES.includes('watcher')) return [];
  const { custodian } = config.manifest.contracts;
  const watch = createTransferWatch({ rpc: rpcPool(shared, 'transfers'), custodian, markets, logger });
  keepers.transfers = watch.facts;
  return [watch.start(signal)];
}

/** The watcher where this process owns the ledger log, else what follows it. */
export async function startLedger(
  shared: Shared,
  signal: AbortSignal,
  { notify, onReversal }: { notify: () => void; onReversal: () => void },
  onFills: (write: GenerationWrite) => void,
) {
  const { config, db, logger, markets } = shared;
  const { custodian, curveBook, entrypoint, orderSettler } = config.manifest.contracts;
  const snapshots = createSnapshotStore(markets);
  const writer = shared.writers.get('ledger');
  if (writer === undefined) {
    const remote = createRemoteStatus({
      db,
      markets,
      deploymentBlock: config.manifest.deploymentBlock,
      pollIntervalMs: config.POLL_INTERVAL_MS,
      logger,
      onGeneration: notify,
      onReversal,
    });
    return { status: remote.status, loop: remote.start(signal), snapshots };
  }
  const watcher = await createWatcher({
    db,
    writer,
    rpc: rpcPool(shared, 'watcher'),
    contracts: { custodian, curveBook, entrypoint, orderSettler },
    deploymentId: config.manifest.deploymentId,
    deploymentBlock: config.manifest.deploymentBlock,
    operator: config.operator,
    markets,
    snapshots,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    pace: config.WAKE ? createPace(config.POLL_INTERVAL_MS, shared.monotonicMs) : undefined,
    haltOnSuspense: config.HALT_ON_SUSPENSE,
    scanMaxBlocks: config.SCAN_MAX_BLOCKS,
    proveBlocks: config.PROVE_BLOCKS,
    nowMs: shared.nowMs,
    monotonicMs: shared.monotonicMs,
    logger,
    onGeneration(write) {
      narrate(logger, markets, write);
      onFills(write);
      notify();
    },
    onReversal,
  });
  shared.keepers.proofs = watcher.proofCounts;
  return { status: watcher.status, loop: watcher.start(signal), snapshots };
}
