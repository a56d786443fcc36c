import { setTimeout as delay } from 'node:timers/promises';
import type { Loop } from '../../../keepers/loop.js';
import { createPosterMemory, startWarming, type PosterMemory, type Warming } from '../../../keepers/poster/memory.js';
import { createPoster } from '../../../keepers/poster/poster.js';
import { LedgerReversedError } from '../../../ledger/errors.js';
import { createSnapshotStore } from '../../../ledger/orders/snapshots.js';
import { storeKeeper } from '../../../ledger/transactions/senders.js';
import type { Writer } from '../../../ledger/types.js';
import type { BaseConfig } from '../../base-config.js';
import type { Preparation, RoleRun } from '../role.js';
import { keeperOutbox, keyOf, rpcPool, type RoleContext } from '../context.js';
import { archiveOf, posterContract } from '../sender.js';
import type { PosterSettings } from './settings.js';

type PosterContext = RoleContext<BaseConfig & PosterSettings>;

/** Posts curves, going on from `memory` where there is one. Throws unless its key is there, which the configuration has checked. */
async function startPoster(
  context: PosterContext,
  writer: Writer,
  signal: AbortSignal,
  memory?: PosterMemory,
): Promise<Loop> {
  const { config, db, logger, markets, nowMs, monotonicMs } = context;
  const privateKey = keyOf(context, 'poster');
  const rpc = rpcPool(context, 'poster');
  const budgetWei = config.POST_BUDGET_GWEI_PER_HOUR === 0n ? null : config.POST_BUDGET_GWEI_PER_HOUR;
  const outbox = keeperOutbox(context, 'poster', {
    ...{ writer, rpc, privateKey, order: 'replace' },
    serves: posterContract(rpc, config.manifest.contracts.curveBook),
  });
  await writer.tx((tx) => storeKeeper(tx, 'poster', { signer: outbox.signer, budgetWei }));
  const poster = createPoster({
    db,
    writer,
    outbox,
    rpc,
    curveBook: config.manifest.contracts.curveBook,
    markets,
    // Keepers do not share a store, because two of them replaying at once would wait for each other.
    snapshots: createSnapshotStore(markets),
    memory,
    readiness: context.readiness,
    curveTtlSec: config.CURVE_TTL_SEC,
    touchBeforeSec: config.TOUCH_BEFORE_SEC,
    small: {
      quoteUnits: (market) => context.minOrderUnits(market) * BigInt(config.SMALL_CHANGE_ORDERS),
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
    archive: await archiveOf(context, privateKey),
    budgetWei,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    nowMs,
    monotonicMs,
    logger,
  });
  context.keepers.poster = () => poster.status();
  return poster.start(signal);
}

/** How long a process waits for its logs before it begins to follow the logs that posting reads. */
const PATIENCE_MS = 1_000;

/**
 * Follows what a poster posts from until `acquired` ends or the process takes over. Nothing is followed when the wait is short. What was
 * followed is used unless the ledger was reversed meanwhile: then listings that were taken back are dropped from the shared list, and a
 * reversal after that makes all roles start again.
 */
export function warmPoster(
  context: PosterContext,
  acquired: Promise<void>,
  signal: AbortSignal,
): Preparation<BaseConfig & PosterSettings> {
  const { config, db, markets, logger, nowMs } = context;
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

  /** After the round that was under way; undefined for nothing to go on from. */
  async function warmed(): Promise<PosterMemory | undefined> {
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => aborted.resolve(), { once: true });
    if (!signal.aborted) await Promise.race([done, aborted.promise]);
    signal.throwIfAborted();
    if (warming === null || isStale) return undefined;
    if (!(await warming.isCurrent())) throw new LedgerReversedError(memory.follower.position().generation);
    return memory;
  }

  return {
    done,
    async takeOver() {
      ended.abort();
      if (warming === null || (await warming.isCurrent())) return;
      isStale = true;
      markets.length = 0;
    },
    async start(run) {
      try {
        return await runPoster(run, await warmed());
      } catch (error) {
        if (error instanceof LedgerReversedError) run.onOutdated();
        throw error;
      }
    },
  };
}

/** The poster as a role: woken by each generation. */
export async function runPoster(
  { context, writer, signal, wakeBy }: RoleRun<BaseConfig & PosterSettings>,
  memory?: PosterMemory,
): Promise<Loop[]> {
  const loop = await startPoster(context, writer, signal, memory);
  wakeBy(['generations'], loop.wake);
  return [loop];
}
