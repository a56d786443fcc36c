/** In which blocks no curve landed, and which of these the poster could have posted in. */
import { readFileSync, readdirSync } from 'node:fs';
import type { JsonRpcProvider } from 'ethers';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';

/** Blocks from..to. */
export interface BlockRange {
  from: number;
  to: number;
}

/** In how many blocks a curve landed, and in which none did. */
export async function blocksWithoutPost(
  provider: JsonRpcProvider,
  curveBook: string,
  { from, to }: BlockRange,
): Promise<{ count: number; posts: number; missed: number[] }> {
  const contract = CurveBook__factory.connect(curveBook, provider);
  const posted = new Set<number>();
  let posts = 0;
  for (const filter of [contract.filters.CurvePosted(), contract.filters.CurveTouched()]) {
    for (const { blockNumber } of await contract.queryFilter(filter, from, to)) {
      posted.add(blockNumber);
      posts += 1;
    }
  }
  const blocks = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  return { count: blocks.length, posts, missed: blocks.filter((number) => !posted.has(number)) };
}

/** A share of the time between two blocks that processes may wait for a processor and still be in time with a post. */
const MOST_WAITING = 0.1;

/** Nanoseconds that all threads of a process have waited for a processor since their start; null where the system does not say. */
function waitedNs(pid: number): bigint | null {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.reduce((sum, task) => {
      const [, waited = '0'] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ');
      return sum + BigInt(waited.trim());
    }, 0n);
  } catch {
    return null;
  }
}

interface Waits {
  /** Notes, upon each look, how long the processes have waited until the newest block. */
  look(block: number): void;
  /** Whether they got all the time that they wanted in the time of the last two blocks before this one; true where the system does not say. */
  hadTime(block: number): boolean;
}

/**
 * Tells a post that is missing from one for which the machine had no time: between the block on which a post builds and the one in which it lands,
 * neither the chain nor the server may have waited for a processor for longer than a tenth of that time.
 */
export function createWaits(pids: readonly number[], blockMs: number): Waits {
  const total = (): bigint | null =>
    pids.map(waitedNs).reduce((sum, one) => (sum === null || one === null ? null : sum + one), 0n);
  /** What had been waited in all when a block was seen first. */
  const at = new Map<number, bigint>();
  return {
    look(block) {
      const waited = total();
      if (waited !== null && !at.has(block)) at.set(block, waited);
    },
    hadTime(block) {
      // A look may see several blocks at once when there was no time.
      const known = [...at.keys()];
      const before = known.filter((one) => one <= block - 2).at(-1);
      const after = known.find((one) => one >= block);
      if (before === undefined || after === undefined) return true;
      const waitedMs = parseInt(((at.get(after)! - at.get(before)!) / 1_000_000n).toString(), 10);
      return waitedMs <= (after - before) * blockMs * MOST_WAITING;
    },
  };
}
