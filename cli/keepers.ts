/** The keepers that send transactions, put together from the configuration. The executor is in swap.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Address, Hex, Market } from '../core/types.js';
import { openArchive } from '../keepers/archive/archive.js';
import { ArchiveError } from '../keepers/archive/format.js';
import { createFolderStore } from '../keepers/archive/store.js';
import { createCompactor } from '../keepers/compactor.js';
import { startGasMeter, withMeter } from '../keepers/gas-meter.js';
import type { Loop } from '../keepers/loop.js';
import { mayPost } from '../keepers/chain/quorum.js';
import type { RpcPool } from '../keepers/chain/pool.js';
import type { ServedContract } from '../keepers/chain/retired-signers.js';
import { createPosterMemory, startWarming, type PosterMemory, type Warming } from '../keepers/poster/memory.js';
import { createPoster, type PosterDeps } from '../keepers/poster/poster.js';
import { createSettler } from '../keepers/settler/settler.js';
import { LedgerReversedError } from '../ledger/errors.js';
import { createSnapshotStore } from '../ledger/orders/snapshots.js';
import type { Writer } from '../ledger/types.js';
import { MAX_CLOSED_ORDERS } from '../server/orders/limits.js';
import { settlePace } from './config.js';
import { ConfigError } from './errors.js';
import { keeperOutbox, rpcPool, type Shared } from './shared.js';

/** Posts curves. Throws unless its log and its key are there, which the configuration has checked. */
export async function startPoster(shared: Shared, signal: AbortSignal, memory?: PosterMemory): Promise<Loop> {
  const { config, db, logger, markets, nowMs, monotonicMs } = shared;
  const writer = shared.writers.get('publication');
  const privateKey = config.posterPrivateKey;
  if (writer === undefined || privateKey === null) throw new Error('the poster needs its log and its key');
  const rpc = rpcPool(shared, 'poster');
  const poster = createPoster({
    db,
    writer,
    outbox: keeperOutbox(shared, 'poster', {
      ...{ writer, rpc, privateKey, order: 'replace' },
      serves: posterContract(rpc, config.manifest.contracts.curveBook),
    }),
    rpc,
    curveBook: config.manifest.contracts.curveBook,
    markets,
    // Keepers do not share one: two of them replaying at once would wait for each other.
    snapshots: createSnapshotStore(markets),
    memory,
    readiness: shared.readiness,
    curveTtlSec: config.CURVE_TTL_SEC,
    touchBeforeSec: config.TOUCH_BEFORE_SEC,
    small: {
      quoteUnits: (market) => shared.minOrderUnits(market) * BigInt(config.SMALL_CHANGE_ORDERS),
      intervalMs: config.SMALL_CHANGE_INTERVAL_MS,
    },
    knots: {
      maxKnots: config.MAX_KNOTS,
      enoughMilliBps: config.CURVE_ERROR_MILLI_BPS,
      wordGainMilliBps: config.WORD_GAIN_MILLI_BPS,
      maxErrorMilliBps: config.MAX_CURVE_ERROR_MILLI_BPS,
    },
    cutBeforeBlockMs: config.CUT_BEFORE_BLOCK_MS,
    operatorFloors: config.STOP_BELOW_FLOOR ? { operator: config.operator, floors: config.OPERATOR_FLOORS } : null,
    archive: await archiveOf(shared, privateKey),
    budgetWei: config.POST_BUDGET_GWEI_PER_HOUR === 0n ? null : config.POST_BUDGET_GWEI_PER_HOUR,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    nowMs,
    monotonicMs,
    logger,
  });
  shared.keepers.poster = () => poster.status();
  return poster.start(signal);
}

/** How long a process waits for its logs before it follows what it is to post from. */
const PATIENCE_MS = 1_000;

/** A poster to be, in a process that waits for its logs. */
export interface PosterWarming {
  /** Ends the reading of listings, for another role to read them; those that a reversal has taken back since are dropped from the shared list. */
  takeOver(): Promise<void>;
  /**
   * What there is to go on from, after the round that was under way; undefined for nothing. Throws LedgerReversedError when the ledger was
   * reversed since `takeOver`, and what the signal was aborted with.
   */
  memory(): Promise<PosterMemory | undefined>;
  /** Resolves when nothing is read any more. */
  readonly done: Promise<void>;
}

/** Follows what a poster posts from until `acquired` ends or `takeOver` is called. Nothing is followed when the wait is short. */
export function warmPoster(shared: Shared, acquired: Promise<void>, signal: AbortSignal): PosterWarming {
  const { config, db, logger, markets, nowMs } = shared;
  const memory = createPosterMemory(markets);
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  const deps = { db, markets, memory, pollIntervalMs: config.POLL_INTERVAL_MS, nowMs, logger };
  let warming: Warming | null = null;
  let isStale = false;
  void acquired.catch(() => undefined).then(() => ended.abort());
  const done = delay(PATIENCE_MS, undefined, { signal: either }).then(
    () => (warming = startWarming(deps, either, signal)).done,
    () => undefined,
  );
  return {
    done,
    async takeOver() {
      ended.abort();
      if (warming === null || (await warming.isCurrent())) return;
      isStale = true;
      markets.length = 0;
    },
    async memory() {
      const aborted = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => aborted.resolve(), { once: true });
      if (!signal.aborted) await Promise.race([done, aborted.promise]);
      signal.throwIfAborted();
      if (warming === null || isStale) return undefined;
      if (!(await warming.isCurrent())) throw new LedgerReversedError(memory.follower.position().generation);
      return memory;
    },
  };
}

/** A contract with posters. */
function posterContract(rpc: RpcPool, address: Address): ServedContract {
  const contract = address.toLowerCase() as Address;
  return { contract, mayAct: (signer) => mayPost(rpc, contract, signer) };
}

/** The archive in its folder; null where none is configured. Throws ConfigError for one that is damaged or another deployment's. */
async function archiveOf({ config, logger, nowMs }: Shared, privateKey: Hex): Promise<PosterDeps['archive']> {
  const { ARCHIVE_DIR: dir, ARCHIVE_REQUIRED: required, manifest } = config;
  if (dir === undefined) {
    // A sandbox's manifest has accounts; nobody restores one.
    if (manifest.accounts.length === 0) logger.warn('ARCHIVE_DIR is not set: a lost database can not be made again');
    return null;
  }
  try {
    const { deploymentId } = manifest;
    return { archive: await openArchive({ store: createFolderStore(dir), deploymentId, privateKey, nowMs }), required };
  } catch (error) {
    if (error instanceof ArchiveError) throw new ConfigError([`ARCHIVE_DIR: ${error.message}`]);
    throw error;
  }
}

/** Compacts old rows of the order log, beside the gateway that writes it. */
export function startCompactor({ config, logger, nowMs }: Shared, writer: Writer, signal: AbortSignal): Loop {
  const retentionMs = config.RETENTION_HOURS * 3_600_000;
  return createCompactor({ writer, retentionMs, closedOrders: MAX_CLOSED_ORDERS, nowMs, logger }).start(signal);
}

/** Settles withdrawals and cuts checkpoints. Throws unless its log and its key are there, which the configuration has checked. */
export async function startSettler(shared: Shared, signal: AbortSignal): Promise<Loop> {
  const { config, db, logger, nowMs, monotonicMs } = shared;
  const writer = shared.writers.get('settlement');
  const privateKey = config.settlerPrivateKey;
  if (writer === undefined || privateKey === null) throw new Error('the settler needs its log and its key');
  const rpc = rpcPool(shared, 'settler');
  // It follows listings by itself: a round computes on one state of the ledger.
  const markets: Market[] = [];
  const outbox = keeperOutbox(shared, 'settler', {
    ...{ writer, rpc, privateKey, order: 'queue' },
    serves: posterContract(rpc, config.manifest.contracts.custodian),
  });
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
    pace: settlePace(config),
    archive: await archiveOf(shared, privateKey),
    nowMs,
    monotonicMs,
    logger,
  });
  shared.keepers.settler = () => settler.status();
  const { signer } = outbox;
  const meter = startGasMeter({ role: 'settler', db, writer, rpc, signer, nowMs, monotonicMs, logger }, signal);
  return withMeter(settler.start(signal), meter);
}
