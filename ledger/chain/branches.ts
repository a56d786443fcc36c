/**
 * The ledger log is a line of generations, some of which are reversals: generation r with `keptGeneration` k reverses every live generation
 * above k. So the log is a tree, and the state after a generation is the sum of the generations that are live then. All functions are pure.
 */

export interface Reversal {
  /** The reversal's own number; as a generation it is empty. */
  generation: number;
  /** Newest generation that it does not reverse, 0 for none. */
  keptGeneration: number;
}

/** Consecutive generations, both ends included. */
interface GenerationRange {
  from: number;
  to: number;
}

/** The generations that make up the state after generation `upTo`, lowest first. `reversals` are in any order. */
export function liveRanges(reversals: readonly Reversal[], upTo: number): GenerationRange[] {
  const newestFirst = [...reversals].sort((a, b) => b.generation - a.generation);
  const ranges: GenerationRange[] = [];
  let to = upTo;
  for (const { generation, keptGeneration } of newestFirst) {
    if (generation > to) continue;
    ranges.unshift({ from: generation, to });
    to = keptGeneration;
  }
  if (to >= 1) ranges.unshift({ from: 1, to });
  return ranges;
}

/** The ranges, without generations up to `after`. */
export function rangesAfter(ranges: readonly GenerationRange[], after: number): GenerationRange[] {
  return ranges.filter(({ to }) => to > after).map(({ from, to }) => ({ from: Math.max(from, after + 1), to }));
}

/** Whether one of the reversals reversed the generation. */
export function isTakenBack(reversals: readonly Reversal[], generation: number): boolean {
  return reversals.some((one) => one.keptGeneration < generation && generation < one.generation);
}

/**
 * Whether every generation that was live after `from` is still live after `to`, so that a projection can be moved forward from one to the
 * other.
 */
export function continues(reversals: readonly Reversal[], from: number, to: number): boolean {
  return liveRanges(reversals, to).some((range) => range.from <= from && from <= range.to) || from === 0;
}

/** The newest generation that is live both after `earlier` and after `later`, 0 for none. */
export function lastShared(reversals: readonly Reversal[], earlier: number, later: number): number {
  const shared = liveRanges(reversals, later).findLast(({ from }) => from <= earlier);
  return shared === undefined ? 0 : Math.min(shared.to, earlier);
}
