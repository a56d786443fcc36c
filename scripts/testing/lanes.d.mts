/** What TypeScript sees of lanes.mjs. */
export function inLanes<T>(
  jobs: readonly (() => Promise<T>)[],
  lanes: number,
  options?: { spare?: readonly ('next' | 'last')[]; idleShare?: () => number; waitMs?: number },
): Promise<T[]>;
