import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { foldBounds, foldStep, type FoldStep } from '../ledger/orders/fold-log.js';
import type { Writer } from '../ledger/types.js';
import { startLoop, type Loop } from './loop.js';
import { MAX_REORG_BLOCKS } from './watcher/reconcile.js';

export interface FolderDeps {
  /** Writer of the order log. */
  writer: Writer;
  /** Order rows younger than this stay. */
  retentionMs: number;
  /** Closed orders without a fill that stay known per maker. */
  closedOrders: number;
  nowMs(): number;
  logger: Logger;
}

export interface Folder {
  /** Looks once a minute until the signal. */
  start(signal: AbortSignal): Loop;
  /** Folds all that may be folded now, step by step; stops between two steps once the signal is aborted. */
  fold(signal: AbortSignal): Promise<FoldStep>;
}

const INTERVAL_MS = 60_000;
/** A step holds up admissions for as long as it takes, some tens of milliseconds; between two of them they have the log to themselves. */
const STEP = { effects: 2_000, generations: 200 };
const PAUSE_MS = 50;

/** Keeps the order log as long as it must be and no longer: the state it came to is what is kept of older rows. */
export function createFolder(deps: FolderDeps): Folder {
  const { writer, retentionMs, closedOrders, logger } = deps;

  async function fold(signal: AbortSignal): Promise<FoldStep> {
    const total: FoldStep = { orderRows: 0, generations: 0 };
    const rule = { nowMs: deps.nowMs(), retentionMs, reorgBlocks: MAX_REORG_BLOCKS };
    while (!signal.aborted) {
      const step = await writer.tx(async (tx) => {
        // Judged in the same transaction: what is prepared from now on is cut from newer rows.
        const bounds = await foldBounds(tx, rule);
        if (bounds === null) return null;
        return foldStep(tx, bounds, { ...STEP, closedOrders });
      });
      if (step === null || (step.orderRows === 0 && step.generations === 0)) break;
      total.orderRows += step.orderRows;
      total.generations += step.generations;
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    if (total.orderRows > 0) logger.info({ ...total }, 'folded the order log');
    return total;
  }

  return {
    fold,
    start: (signal) =>
      startLoop(async () => void (await fold(signal)), { name: 'folder', intervalMs: INTERVAL_MS, signal, logger }),
  };
}
