import { pino, type Logger } from 'pino';
import type { Market } from '../core/types.js';
import { createOutbox } from '../keepers/chain/outbox.js';
import { createRpcPool, type RpcPool } from '../keepers/chain/pool.js';
import type { Loop } from '../keepers/loop.js';
import { createPoster } from '../keepers/poster/poster.js';
import { createSettler } from '../keepers/settler/settler.js';
import { createRemoteStatus } from '../keepers/watcher/remote-status.js';
import { judgeReadiness, type Readiness, type WatcherStatus } from '../keepers/watcher/status.js';
import { createWatcher } from '../keepers/watcher/watcher.js';
import { bindDeployment, migrate, openDb } from '../ledger/db.js';
import { createSnapshotStore } from '../ledger/snapshots.js';
import type { Db, GenerationWrite, LogName, Writer } from '../ledger/types.js';
import { acquireWriter } from '../ledger/writers.js';
import type { Config, Role } from './config.js';
import { fillLine } from './fill-line.js';
import { startHttp, type HttpHandle } from './http.js';
import { startExecutor } from './swap.js';

/** The ledger was reconciled with the chain: what roles hold in memory is out of date, and they start again. */
export class RolesOutdatedError extends Error {
  override readonly name = 'RolesOutdatedError';

  constructor() {
    super('the ledger was reconciled; starting the roles again');
  }
}

/** A running set of roles. */
export interface Running {
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

/** Everything the roles of one process share. */
export interface Shared {
  config: Config;
  db: Db;
  logger: Logger;
  markets: Market[];
  writers: Map<LogName, Writer>;
  watcherStatus(): WatcherStatus;
  readiness(): Readiness;
  nowMs(): number;
}

/**
 * Starts the configured roles over one database. Each writer role waits until it owns its log. `printLine` gets one line per fill.
 */
export async function startRoles(config: Config, printLine: (line: string) => void): Promise<Running> {
  const logger = pino({ level: config.LOG_LEVEL, base: undefined }, pino.destination({ fd: 2, sync: true }));
  const stopping = new AbortController();
  const { signal } = stopping;
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<Error>((resolve) => (fail = resolve));

  const db = await openDb(config.DATABASE_URL);
  const writers = new Map<LogName, Writer>();
  const loops: Loop[] = [];
  let http: HttpHandle | null = null;

  async function stop(): Promise<void> {
    stopping.abort();
    await http?.close();
    await Promise.all(loops.map((loop) => loop.done));
    for (const writer of writers.values()) await writer.release();
    await db.close();
  }

  try {
    await migrate(db);
    await bindDeployment(db, config.manifest.deploymentId);
    for (const role of config.ROLES) {
      const log = LOG_OF[role];
      if (log !== undefined) writers.set(log, await acquireWriter(db, log, { signal, onLost: fail }));
    }
    const markets: Market[] = [];
    let readStatus: () => WatcherStatus = () => {
      throw new Error('no role follows the ledger yet');
    };
    const shared: Shared = {
      config,
      db,
      logger,
      markets,
      writers,
      watcherStatus: () => readStatus(),
      readiness: () => judgeReadiness(readStatus(), Date.now()),
      nowMs: () => Date.now(),
    };
    const listeners: (() => void)[] = [];
    const notify = () => listeners.forEach((listener) => listener());

    const onReversal = () => fail(new RolesOutdatedError());
    const ledger = await startLedger(shared, signal, { notify, onReversal }, (write) => {
      for (const one of write.fills) {
        const market = markets[one.fill.market];
        if (market !== undefined) printLine(fillLine(market, one));
      }
    });
    readStatus = ledger.status;
    loops.push(ledger.loop);
    const executor = config.ROLES.includes('executor') ? startExecutor(shared, signal) : null;
    if (executor !== null) {
      listeners.push(executor.wake);
      loops.push(executor);
    }
    const orderWriter = writers.get('order');
    if (orderWriter !== undefined) {
      http = await startHttp(shared, orderWriter, signal, () => executor?.wake());
      listeners.push(http.onGeneration);
    }
    if (config.ROLES.includes('poster')) {
      const loop = startPoster(shared, signal);
      listeners.push(loop.wake);
      loops.push(loop);
    }
    if (config.ROLES.includes('settler')) loops.push(startSettler(shared, signal));
  } catch (error) {
    await stop();
    throw error;
  }
  logger.info({ roles: config.ROLES, url: http?.url, database: db.kind }, 'roles started');
  return { url: http?.url ?? null, stop, failed };
}

async function startLedger(
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
    rpc: rpcPool(shared),
    contracts: { custodian, curveBook, entrypoint, orderSettler },
    deploymentId: config.manifest.deploymentId,
    deploymentBlock: config.manifest.deploymentBlock,
    operator: config.operator,
    markets,
    snapshots,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    scanMaxBlocks: config.SCAN_MAX_BLOCKS,
    nowMs: shared.nowMs,
    logger,
    onGeneration(write) {
      onFills(write);
      notify();
    },
    onReversal,
  });
  return { status: watcher.status, loop: watcher.start(signal), snapshots };
}

function startPoster(shared: Shared, signal: AbortSignal): Loop {
  const { config, db, logger, markets } = shared;
  const writer = shared.writers.get('publication');
  if (writer === undefined || config.posterPrivateKey === null) throw new Error('the poster needs its log and its key');
  const rpc = rpcPool(shared);
  const outbox = createOutbox({
    db,
    writer,
    rpc,
    chainId: config.manifest.chainId,
    privateKey: config.posterPrivateKey,
    feeCeilingWei: config.FEE_CEILING_GWEI,
    lowBalanceWei: config.LOW_BALANCE_ETHER,
    nowMs: shared.nowMs,
    logger,
  });
  const poster = createPoster({
    db,
    writer,
    outbox,
    rpc,
    curveBook: config.manifest.contracts.curveBook,
    markets,
    // Keepers do not share one: two of them folding at once would wait for each other.
    snapshots: createSnapshotStore(markets),
    readiness: shared.readiness,
    curveTtlSec: config.CURVE_TTL_SEC,
    touchBeforeSec: config.TOUCH_BEFORE_SEC,
    knots: {
      maxKnots: config.MAX_KNOTS,
      enoughMilliBps: config.CURVE_ERROR_MILLI_BPS,
      wordGainMilliBps: config.WORD_GAIN_MILLI_BPS,
    },
    cutBeforeBlockMs: config.CUT_BEFORE_BLOCK_MS,
    budgetWei: config.POST_BUDGET_GWEI_PER_HOUR === 0n ? null : config.POST_BUDGET_GWEI_PER_HOUR,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    nowMs: shared.nowMs,
    logger,
  });
  return poster.start(signal);
}

function startSettler(shared: Shared, signal: AbortSignal): Loop {
  const { config, db, logger } = shared;
  const writer = shared.writers.get('settlement');
  if (writer === undefined || config.settlerPrivateKey === null)
    throw new Error('the settler needs its log and its key');
  const rpc = rpcPool(shared);
  const outbox = createOutbox({
    db,
    writer,
    rpc,
    chainId: config.manifest.chainId,
    privateKey: config.settlerPrivateKey,
    order: 'queue',
    feeCeilingWei: config.FEE_CEILING_GWEI,
    lowBalanceWei: config.LOW_BALANCE_ETHER,
    nowMs: shared.nowMs,
    logger,
  });
  // It follows listings by itself: a round computes on one state of the ledger.
  const markets: Market[] = [];
  const settler = createSettler({
    db,
    writer,
    outbox,
    rpc,
    custodian: config.manifest.contracts.custodian,
    markets,
    snapshots: createSnapshotStore(markets),
    readiness: shared.readiness,
    pollIntervalMs: config.SETTLE_INTERVAL_MS,
    checkpointIntervalMs: config.CHECKPOINT_INTERVAL_SEC * 1_000,
    batchMax: config.SETTLE_BATCH_MAX,
    emptyPerHour: config.EMPTY_SETTLEMENTS_PER_HOUR,
    nowMs: shared.nowMs,
    logger,
  });
  return settler.start(signal);
}

/** Endpoints of one role: their health is judged by what that role sees. */
function rpcPool({ config, nowMs, logger }: Shared): RpcPool {
  return createRpcPool(config.rpcUrls, { nowMs, logger, chainId: config.manifest.chainId });
}
