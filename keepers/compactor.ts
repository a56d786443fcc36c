import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { compactionBounds, compactStep, type CompactionStep } from '../ledger/orders/compaction.js';
import type { Writer } from '../ledger/types.js';
import { startLoop, type Loop } from './loop.js';
import { MAX_REORG_BLOCKS } from './watcher/reconcile.js';

interface CompactorDeps {
  /** Writer of the order log. */
  writer: Writer;
  /** Order rows younger than this stay. */
  retentionMs: number;
  /** Closed orders without a fill that stay known per maker. */
  closedOrders: number;
  nowMs(): number;
  logger: Logger;
}

interface Compactor {
  /** Compacts once a minute until the signal. */
  start(signal: AbortSignal): Loop;
  /** Compacts all that may be compacted now, step by step; stops between two steps once the signal is aborted. */
  compact(signal: AbortSignal): Promise<CompactionStep>;
}

const INTERVAL_MS = 60_000;
/** A step blocks order commits while it runs, some tens of milliseconds; between two steps commits run. */
const STEP = { effects: 2_000, generations: 200 };
const PAUSE_MS = 50;

/** Compacts the rows of the order log that are no longer needed one by one into the compacted book. */
export function createCompactor(deps: CompactorDeps): Compactor {
  const { writer, retentionMs, closedOrders, logger } = deps;

  async function compact(signal: AbortSignal): Promise<CompactionStep> {
    const total: CompactionStep = { orderRows: 0, generations: 0 };
    const rule = { nowMs: deps.nowMs(), retentionMs, reorgBlocks: MAX_REORG_BLOCKS };
    while (!signal.aborted) {
      const step = await writer.tx(async (tx) => {
        // Computed in the same transaction: later publications are cut from newer rows.
        const bounds = await compactionBounds(tx, rule);
        if (bounds === null) return null;
        return compactStep(tx, bounds, { ...STEP, closedOrders });
      });
      if (step === null || (step.orderRows === 0 && step.generations === 0)) break;
      total.orderRows += step.orderRows;
      total.generations += step.generations;
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    if (total.orderRows > 0) logger.info({ ...total }, 'compacted the order log');
    return total;
  }

  return {
    compact,
    start: (signal) =>
      startLoop(async () => void (await compact(signal)), {
        name: 'compactor',
        intervalMs: INTERVAL_MS,
        signal,
        logger,
      }),
  };
}
