/** The fewest events that still make a run fail. */
import { simulate, type RunOptions, type RunResult } from '../run.js';

/** What a violation is, whatever numbers are in it. */
export const kindOf = (violation: string): string =>
  violation
    .replace(/0x[0-9a-f]+/g, '#')
    .replace(/\d+/g, '#')
    .trim()
    .slice(0, 60);

/** Runs at most. */
const MAX_RUNS = 200;

/**
 * Takes ever smaller parts out of what happened, as long as the run still fails in the same way. Each run is of the same seed, so that all
 * that is left happens where it did.
 */
export async function shrink(options: RunOptions, failed: RunResult): Promise<RunResult> {
  const kind = kindOf(failed.violations[0]!);
  let least = failed;
  let runs = 0;

  async function stillFails(only: readonly string[], blocks: number): Promise<boolean> {
    if (runs >= MAX_RUNS) return false;
    runs += 1;
    const result = await simulate({ ...options, blocks, only: new Set(only) });
    if (result.violations.length === 0 || kindOf(result.violations[0]!) !== kind) return false;
    least = result;
    return true;
  }

  // A progress that is missing shows at the end, however soon that comes.
  for (let blocks = least.blocks; blocks > 10;) {
    blocks = Math.floor(blocks / 2);
    if (!(await stillFails(least.taken, blocks))) break;
  }
  let { blocks } = least;
  blocks = Math.min(options.blocks, Math.max(10, blocks));
  for (let size = Math.ceil(least.taken.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < least.taken.length;) {
      const rest = [...least.taken.slice(0, at), ...least.taken.slice(at + size)];
      if (!(await stillFails(rest, blocks))) at += size;
    }
  }
  return least;
}
