/** Several simulations at once, each in a process of its own. */
import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { simulate, type RunOptions, type RunResult } from './run.js';

interface CrewOptions {
  seeds: readonly number[];
  options: Omit<RunOptions, 'seed'>;
  processes: number;
  /** Called for each run, in the order in which they end. True ends all. */
  onResult(result: RunResult): boolean;
}

/** What a worker answers to the options of a run. */
export type Answer = RunResult | { failed: string };

/** Test runs have no loader, and the same modules elsewhere. */
const WORKER =
  process.env.TRANSPILED === undefined
    ? fileURLToPath(new URL('./worker.ts', import.meta.url))
    : join(process.env.TRANSPILED, 'test/simulation/worker.js');

/** What lives for an event of a simulation alone is collected more cheaply the more of it there is. */
const YOUNG_FLAG = '--max-semi-space-size=64';

/**
 * Runs every seed. One process is this one. Rejects when a process ends before its time. Processes, not threads: those share the
 * locks of their process, as of its allocator, and take some 5 % longer.
 */
export async function simulateAll({ seeds, options, processes, onResult }: CrewOptions): Promise<void> {
  let isOver = false;
  const rest = seeds.values();
  const seen = (result: RunResult): void => void (isOver = onResult(result) || isOver);
  if (processes <= 1) {
    for (const seed of rest) {
      seen(await simulate({ ...options, seed }));
      if (isOver) return;
    }
    return;
  }
  const work = async (): Promise<void> => {
    const worker = fork(WORKER, { execArgv: [...process.execArgv, YOUNG_FLAG], serialization: 'advanced' });
    try {
      // All take from the same list.
      for (const seed of rest) {
        seen(await runIn(worker, { ...options, seed }));
        if (isOver) return;
      }
    } finally {
      worker.kill('SIGKILL');
    }
  };
  await Promise.all(Array.from({ length: Math.min(processes, seeds.length) }, work));
}

function runIn(worker: ChildProcess, options: RunOptions): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const end = (error: Error): void => reject(error);
    const exit = (code: number | null, signal: string | null): void =>
      reject(new Error(`a process of the simulation ended with ${signal ?? code} in the run of seed ${options.seed}`));
    worker.once('error', end);
    worker.once('exit', exit);
    worker.once('message', (said: Answer) => {
      worker.off('error', end);
      worker.off('exit', exit);
      if ('failed' in said) reject(new Error(said.failed));
      else resolve(said);
    });
    worker.send(options);
  });
}
