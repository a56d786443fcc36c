import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { compactionBounds, compactStep, surplusSeqOf, type CompactionStep } from '../ledger/orders/compaction.js';
import { readCompactionPosition } from '../ledger/orders/compacted-book.js';
import type { Writer } from '../ledger/types.js';
import { startLoop, type Loop } from './loop.js';
import { MAX_REORG_BLOCKS } from './watcher/reconcile.js';

interface CompactorDeps {
  /** Writer of the order log. */
  writer: Writer;
  /** Order rows younger than this stay, unless they are more than `maxRows`. */
  retentionMs: number;
  /** Most order rows that stay because of their age alone; 0: as many as there are. */
  maxRows: number;
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
/**
 * Rows younger than this stay, however many there are: a poster may be preparing a curve from them that is not stored yet, and a client may
 * repeat its action over an edge.
 */
export const LEAST_AGE_MS = 300_000;
/** A step blocks order commits while it runs: some tens of milliseconds, and 0.14 s where each row replaces fifty orders. Between two steps commits run. */
const STEP = { effects: 2_000, generations: 200 };
const PAUSE_MS = 50;

/** Compacts the rows of the order log that are no longer needed one by one into the compacted book. */
export function createCompactor(deps: CompactorDeps): Compactor {
  const { writer, retentionMs, maxRows, closedOrders, logger } = deps;
  let wasOver = false;

  async function compact(signal: AbortSignal): Promise<CompactionStep> {
    const total: CompactionStep = { orderRows: 0, surplusRows: 0, generations: 0 };
    const rule = {
      nowMs: deps.nowMs(),
      retentionMs,
      // Of the rows at the beginning: a round ends however fast others come meanwhile.
      surplusSeq: await writer.tx((tx) => surplusSeqOf(tx, maxRows)),
      leastAgeMs: LEAST_AGE_MS,
      reorgBlocks: MAX_REORG_BLOCKS,
    };
    let heldRows = 0;
    while (!signal.aborted) {
      const { step, at } = await writer.tx(async (tx) => {
        // Computed in the same transaction: later publications are cut from newer rows.
        const bounds = await compactionBounds(tx, rule);
        const step = bounds === null ? null : await compactStep(tx, bounds, { ...STEP, closedOrders });
        return { step, at: await readCompactionPosition(tx) };
      });
      heldRows = Math.max(0, rule.surplusSeq - at.orderSeq);
      if (step === null || (step.orderRows === 0 && step.generations === 0)) break;
      total.orderRows += step.orderRows;
      total.surplusRows += step.surplusRows;
      total.generations += step.generations;
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    if (total.orderRows > 0) logger.info({ ...total }, 'compacted the order log');
    if (!signal.aborted) tell(heldRows);
    return total;
  }

  /** Once each time, since it may last for as long as orders come that fast. */
  function tell(heldRows: number): void {
    if (heldRows > 0 && !wasOver)
      logger.warn(
        { heldRows, maxRows },
        'more order rows stay than are wanted: they are too young, or a curve needs them',
      );
    wasOver = heldRows > 0;
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
