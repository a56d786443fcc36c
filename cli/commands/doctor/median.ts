/** The middle one of what several said, the lower of two; null of nothing. One liar among three does not move it beyond the others. */
export function median<T extends number | bigint>(values: readonly T[]): T | null {
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
