/**
 * What a server keeps, as against what it has touched.
 *
 * V8 lets garbage lie until its heap reaches a limit that it sets itself, and gives pages back when it likes. Under the soak's load the old
 * generation of a server that retains 35 MB swings between 40 and 180 MB with a period of a minute or more, and the resident memory stays
 * at the highest swing for minutes, then falls by half at once: two windows of such a curve tell which phases they hit, not whether anything
 * grows. So the heap is pressed before each sample: after a full collection it holds what is reachable and nothing else, and what is
 * resident is that, the space that V8 keeps ready, and memory outside of its heap.
 */
import type { Child } from '../support/child.js';

/** What the probe begins each answer with, before the answer's number. */
export const MEMORY_LINE = 'memory of the soak ';

/** Node's options for a process that is to be measured. */
export const PROBE_ARGS = ['--expose-gc', '--import', 'tsx', '--import', './test/soak/probe.ts'] as const;

/** After a full collection. */
export interface MemorySample {
  /** Reachable objects, and the buffers that they hold outside of the heap. */
  liveBytes: number;
  /** Memory of the process as the kernel counts it: the heap, buffers, and what native code holds. */
  residentBytes: number;
  /** How long the collection stopped the process: what it may have cost a block is the soak's doing. */
  pauseMs: number;
}

interface Growth {
  thirdBytes: number;
  lastBytes: number;
  /** Of the last quarter over the third: 0.01 is one percent. */
  growth: number;
}

/**
 * How much the last quarter may be above the third. What is live does not depend on V8's moods, so that its limit is narrow. Native code's
 * memory is not the collector's: what it keeps shows in the resident memory alone, the rest of which is V8's and varies more.
 */
export const MAX_GROWTH = { live: 0.03, resident: 0.05 } as const;

/** Presses the heap of a process that was started with `PROBE_ARGS`, and measures it. Rejects when it does not answer in time. */
export async function pressAndMeasure(child: Child, timeoutMs: number): Promise<MemorySample> {
  const answered = child.lines().filter((line) => line.startsWith(MEMORY_LINE)).length;
  const head = `${MEMORY_LINE}${answered} `;
  child.process.kill('SIGUSR2');
  const line = await child.line((one) => one.startsWith(head), timeoutMs);
  return JSON.parse(line.slice(head.length)) as MemorySample;
}

const QUARTERS = 4;

/** Medians of the third and the last quarter of the samples: what is loaded, compiled and filled once lies before them. */
function growthOf(samplesBytes: readonly number[]): Growth {
  const quarter = Math.max(1, Math.floor(samplesBytes.length / QUARTERS));
  const median = (part: readonly number[]): number => [...part].sort((a, b) => a - b)[Math.floor(part.length / 2)] ?? 0;
  const lastBytes = median(samplesBytes.slice(-quarter));
  const thirdBytes = median(samplesBytes.slice(-2 * quarter, -quarter));
  return { thirdBytes, lastBytes, growth: thirdBytes === 0 ? 0 : lastBytes / thirdBytes - 1 };
}

interface MemoryReport {
  live: Growth;
  resident: Growth;
  /** The longest stop for a sample. */
  longestPauseMs: number;
  /** A line for each growth that is too much. */
  problems: string[];
}

/** What the samples of a run, in their order, say of its server. */
export function judgeMemory(samples: readonly MemorySample[]): MemoryReport {
  const live = growthOf(samples.map(({ liveBytes }) => liveBytes));
  const resident = growthOf(samples.map(({ residentBytes }) => residentBytes));
  const problems = [
    ...(samples.length < QUARTERS ? [`memory can't be judged by ${samples.length} samples`] : []),
    ...tooMuch('live memory', live, MAX_GROWTH.live),
    ...tooMuch('resident memory', resident, MAX_GROWTH.resident),
  ];
  return { live, resident, longestPauseMs: Math.max(0, ...samples.map(({ pauseMs }) => pauseMs)), problems };
}

function tooMuch(what: string, { growth }: Growth, limit: number): string[] {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  return growth > limit ? [`${what} grew by ${percent(growth)} over the last half; ${percent(limit)} are allowed`] : [];
}
