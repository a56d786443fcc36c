import { CommandError } from './command-error.js';
import type { Io } from './command.js';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs work that has something to remove when it is interrupted: instead of ending the process, the first SIGINT or SIGTERM aborts its
 * signal, whose reason is a CommandError `INTERRUPTED` with `message`. Work that is over all the same when it hears of it may resolve.
 */
export async function interruptible<T>(io: Io, message: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const stop = (): void => interrupt.abort(new CommandError('INTERRUPTED', message));
  for (const name of SIGNALS) process.on(name, stop);
  if (io.signal?.aborted === true) stop();
  io.signal?.addEventListener('abort', stop);
  try {
    return await work(interrupt.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, stop);
    io.signal?.removeEventListener('abort', stop);
  }
}
