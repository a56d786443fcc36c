import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

export interface Loop {
  /** Cuts the current pause short. */
  wake(): void;
  /** Resolves when the loop has ended, after `signal` was aborted or a step asked for it. */
  readonly done: Promise<void>;
}

interface LoopOptions {
  name: string;
  intervalMs: number;
  /** Pause after a step that did not fail; called each time. Default: `intervalMs`. */
  pauseMs?(): number;
  /** Longest pause after steps that failed one after the other; each of them doubles it. Default: no longer than usual. */
  maxBackoffMs?: number;
  signal: AbortSignal;
  logger: Logger;
  /** Called for an error that a step did not handle; the loop goes on. */
  onError?(error: unknown): void;
}

/** Runs `step` again and again, never two at a time, with a pause in between that `wake` cuts short. */
export function startLoop(step: (signal: AbortSignal) => Promise<void>, options: LoopOptions): Loop {
  const { name, intervalMs, signal, logger, maxBackoffMs = intervalMs } = options;
  let wakeUp = new AbortController();
  let failures = 0;

  async function pause(): Promise<void> {
    const either = AbortSignal.any([signal, wakeUp.signal]);
    const backoffMs = Math.max(intervalMs, Math.min(maxBackoffMs, intervalMs * 2 ** Math.min(failures, 16)));
    const pauseMs = failures === 0 && options.pauseMs !== undefined ? options.pauseMs() : backoffMs;
    await delay(pauseMs, undefined, { signal: either }).catch(() => undefined);
    if (wakeUp.signal.aborted) wakeUp = new AbortController();
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await step(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        logger.warn({ keeper: name, err: error }, 'a step failed');
        options.onError?.(error);
      }
      if (!signal.aborted) await pause();
    }
  }

  return { wake: () => wakeUp.abort(), done: run() };
}
