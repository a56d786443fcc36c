/** What a catch-up has done and has left. */
interface ProgressLine {
  nextBlock: number;
  head: number;
  blocksLeft: number;
  blocksPerSec: number;
  secondsLeft: number | null;
}

const LINE_INTERVAL_MS = 1_000;

/** Says now and then how far a catch-up is. A line comes at most once a second, and none while there is nothing to catch up with. */
export function createProgress(nowMs: () => number): {
  line(at: { nextBlock: number; head: number; catchingUp: boolean }): ProgressLine | null;
} {
  let started: { ms: number; block: number } | null = null;
  let saidMs = Number.NEGATIVE_INFINITY;

  return {
    line({ nextBlock, head, catchingUp }) {
      const ms = nowMs();
      if (!catchingUp) {
        started = null;
        return null;
      }
      started ??= { ms, block: nextBlock };
      if (ms - saidMs < LINE_INTERVAL_MS) return null;
      saidMs = ms;
      const blocksPerSec = ms === started.ms ? 0 : ((nextBlock - started.block) * 1_000) / (ms - started.ms);
      const blocksLeft = head - nextBlock + 1;
      return {
        nextBlock,
        head,
        blocksLeft,
        blocksPerSec: Math.round(blocksPerSec),
        secondsLeft: blocksPerSec === 0 ? null : Math.ceil(blocksLeft / blocksPerSec),
      };
    },
  };
}
