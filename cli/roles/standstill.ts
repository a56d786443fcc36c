/** Whether what a process serves stands still while what is stored goes on. */

/**
 * A network that drops connections without a word leaves the reads that are under way without an answer for as long as TCP waits, minutes or hours, while
 * those on new connections are answered: then nothing else shows that a process serves an old book. The returned function is told, again and
 * again, the newest generation that is stored and the one that is served; it returns true once the latter has been behind, and the same, for longer
 * than `limitMs`.
 */
export function createStandstill(
  limitMs: number,
  monotonicMs: () => number,
): (stored: number, served: number) => boolean {
  let at: { served: number; sinceMs: number } | null = null;
  return (stored, served) => {
    if (stored <= served) at = null;
    else if (at?.served !== served) at = { served, sinceMs: monotonicMs() };
    return at !== null && monotonicMs() - at.sinceMs > limitMs;
  };
}
