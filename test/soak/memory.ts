import { readFileSync } from 'node:fs';

/** Resident memory of a process in KiB, as Linux tells it. */
export function residentKb(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number.parseInt(line?.[1] ?? '0', 10);
}

/** Medians of the third and the last quarter of the samples, and by how much the last is above the third. */
export function steadiness(samplesKb: readonly number[]): { thirdKb: number; lastKb: number; growth: number } {
  const quarter = Math.max(1, Math.floor(samplesKb.length / 4));
  const median = (part: readonly number[]): number => [...part].sort((a, b) => a - b)[Math.floor(part.length / 2)] ?? 0;
  const lastKb = median(samplesKb.slice(-quarter));
  const thirdKb = median(samplesKb.slice(-2 * quarter, -quarter));
  return { thirdKb, lastKb, growth: thirdKb === 0 ? 0 : lastKb / thirdKb - 1 };
}
