/** Several simulations at once, each in a thread of its own. */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { simulate, type RunOptions, type RunResult } from './run.js';

interface CrewOptions {
  seeds: readonly number[];
  options: Omit<RunOptions, 'seed'>;
  threads: number;
  /** Called for each run, in the order in which they end. True ends all. */
  onResult(result: RunResult): boolean;
}

/** Test runs have no loader, and the same modules elsewhere. */
const WORKER =
  process.env.TRANSPILED === undefined
    ? new URL('./worker.js', import.meta.url)
    : join(process.env.TRANSPILED, 'test/simulation/worker.js');

/** What lives for an event of a simulation alone is collected more cheaply the more of it there is. */
const YOUNG_MB = 192;

/** Runs every seed. One thread is this one. Rejects when a thread ends before its time. */
export async function simulateAll({ seeds, options, threads, onResult }: CrewOptions): Promise<void> {
  let isOver = false;
  const rest = seeds.values();
  const seen = (result: RunResult): void => void (isOver = onResult(result) || isOver);
  if (threads <= 1) {
    for (const seed of rest) {
      seen(await simulate({ ...options, seed }));
      if (isOver) return;
    }
    return;
  }
  const work = async (): Promise<void> => {
    const worker = new Worker(WORKER, { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    try {
      // All take from the same list.
      for (const seed of rest) {
        seen(await runIn(worker, { ...options, seed }));
        if (isOver) return;
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(threads, seeds.length) }, work));
}

function runIn(worker: Worker, options: RunOptions): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const end = (error: Error): void => reject(error);
    worker.once('error', end);
    worker.once('message', (said: RunResult | { failed: string }) => {
      worker.off('error', end);
      if ('failed' in said) reject(new Error(said.failed));
      else resolve(said);
    });
    worker.postMessage(options);
  });
}
