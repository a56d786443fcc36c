/** A device that stands still for longer than this does not make up for it. */
const MOST_BEHIND_MS = 250;

/**
 * Says at which frames of the screen something that changes all the time is drawn: `perSec` times a second on average, whatever the screen's own rate, and
 * with frames of the screen that come late made up for by those after them. So in any time not more than `perSec` of it, and five more.
 */
export function createPace(perSec: number): { isDue(nowMs: number): boolean } {
  const stepMs = 1_000 / perSec;
  let dueMs: number | null = null;
  return {
    /** Whether to draw at this frame, which is counted then. */
    isDue(nowMs) {
      const wasDueMs = Math.max(dueMs ?? nowMs, nowMs - MOST_BEHIND_MS);
      if (nowMs < wasDueMs) return false;
      dueMs = wasDueMs + stepMs;
      return true;
    },
  };
}
