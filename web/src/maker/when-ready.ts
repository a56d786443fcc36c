import { CurvebookError } from '../../../sdk/src/index.js';

/** The time of blocks is behind that of this machine by so much at most, on a chain that goes on. */
const MAX_TRIES = 60;
const PAUSE_MS = 1_000;

/**
 * Executes a claim whose countdown is over by this machine's clock. The contract goes by the time of blocks, which is behind: while it
 * refuses the claim as not ready yet, this asks again each second, for a minute; then its error is thrown, any other one at once. Once `signal` is
 * aborted it asks no more, and throws its reason.
 */
export async function whenReady(
  execute: () => Promise<string>,
  signal: AbortSignal,
  pause: () => Promise<unknown> = () => new Promise((done) => setTimeout(done, PAUSE_MS)),
): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await execute();
    } catch (error) {
      if (!(error instanceof CurvebookError && error.code === 'ClaimNotReady') || tries === MAX_TRIES) throw error;
      await pause();
      signal.throwIfAborted();
    }
  }
}
