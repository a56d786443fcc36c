import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import {
  compactionBounds,
  compactStep,
  surplusSeqOf,
  type CompactionBounds,
  type CompactionStep,
} from '../ledger/orders/compaction.js';
import { readCompactionPosition } from '../ledger/orders/compacted-book.js';
import { createForgetting } from '../ledger/orders/forgetting.js';
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
/** A step blocks order commits while it runs, so how much it does follows from how long the ones before it took. Between two steps commits run. */
const HOLD_MS = 50;
/** Effects of the rows of a step: in smaller ones most of the time is that of any step. A round begins with no more than `first`. */
const EFFECTS = { least: 500, first: 2_000, most: 20_000 };
const EFFECTS_PER_GENERATION = 10;

/** Compacts the rows of the order log that are no longer needed one by one into the compacted book. */
export function createCompactor(deps: CompactorDeps): Compactor {
  const { writer, retentionMs, maxRows, closedOrders, logger } = deps;
  const forgetting = createForgetting();
  const size = createStepSize();
  let wasOver = false;

  /** One step, and how long it held the writer. */
  async function runStep(rule: Parameters<typeof compactionBounds>[1]) {
    const limits = { ...size.limits(), closedOrders };
    let beganMs = 0;
    try {
      const done = await writer.tx(async (tx) => {
        beganMs = performance.now();
        // Computed in the same transaction: later publications are cut from newer rows.
        const bounds: CompactionBounds | null = await compactionBounds(tx, rule);
        const step = bounds === null ? null : await compactStep(tx, bounds, limits, forgetting);
        return { step, at: await readCompactionPosition(tx) };
      });
      const heldMs = performance.now() - beganMs;
      size.note(heldMs, done.step);
      return { ...done, heldMs };
    } catch (error) {
      forgetting.reset();
      throw error;
    }
  }

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
    size.restart();
    while (!signal.aborted) {
      const { step, at, heldMs } = await runStep(rule);
      heldRows = Math.max(0, rule.surplusSeq - at.orderSeq);
      if (step === null || (step.orderRows === 0 && step.generations === 0)) break;
      total.orderRows += step.orderRows;
      total.surplusRows += step.surplusRows;
      total.generations += step.generations;
      // Half of the time is left to everything else that this process does.
      await delay(Math.min(HOLD_MS, heldMs), undefined, { signal }).catch(() => undefined);
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

interface StepSize {
  limits(): { effects: number; generations: number };
  /** Halves what a step may do after one that took too long, and lets it grow after one that used it up in less than half the time. */
  note(heldMs: number, step: { effects: number; generations: number } | null): void;
  /** For a new round. */
  restart(): void;
}

export function createStepSize(): StepSize {
  let effects = EFFECTS.first;
  const limits = () => ({ effects, generations: Math.ceil(effects / EFFECTS_PER_GENERATION) });
  return {
    limits,
    note(heldMs, step) {
      // Without this, rounds that find little to do would make the next step as large as possible.
      const isUsed = step !== null && (step.effects > effects / 2 || step.generations === limits().generations);
      if (heldMs > HOLD_MS) effects = Math.max(EFFECTS.least, Math.floor(effects / 2));
      else if (heldMs < HOLD_MS / 2 && isUsed) effects = Math.min(EFFECTS.most, effects * 2);
    },
    restart: () => void (effects = Math.min(effects, EFFECTS.first)),
  };
}
