import { setTimeout as delay } from 'node:timers/promises';
import { readFileSync } from 'node:fs';
import { describeEnd } from './child.js';
import type { Child } from './child.js';

const POLL_MS = 100;
const LOG_TAIL_LINES = 15;

/** A process of the sandbox did not come up. */
export class StartError extends Error {
  readonly code = 'SANDBOX_START_FAILED';
  constructor(message: string, logPath: string) {
    super(`${message}\n${tailOf(logPath)}`);
    this.name = 'StartError';
  }
}

/**
 * Polls `probe` until it returns a value. Throws StartError when `child` ends first or after `timeoutMs`, and the reason of `signal`
 * when that aborts. A probe that throws counts as "not yet".
 */
export async function waitFor<T>(
  probe: () => Promise<T | null>,
  { child, logPath, timeoutMs, signal }: { child: Child; logPath: string; timeoutMs: number; signal: AbortSignal },
): Promise<T> {
  const deadlineMs = Date.now() + timeoutMs;
  while (Date.now() < deadlineMs) {
    signal.throwIfAborted();
    const end = child.result();
    if (end !== undefined) throw new StartError(`the ${child.name} ended early: ${describeEnd(end)}`, logPath);
    const found = await probe().catch(() => null);
    if (found !== null) return found;
    await delay(POLL_MS, undefined, { signal });
  }
  throw new StartError(`the ${child.name} is not ready after ${timeoutMs / 1000} s`, logPath);
}

function tailOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  } catch {
    return '';
  }
}
