/** The median, the lower one of two; null for an empty list. One wrong value among three can't move it beyond the others. */
export function median<T extends number | bigint>(values: readonly T[]): T | null {
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
