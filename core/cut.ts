/**
 * What a cut leaves out of the book, and how long a curve cut from it may live. A maker's armed time is when its scheduled cancel takes
 * effect, in milliseconds, null when it armed none.
 */
import { snapshotSide } from './snapshot.js';
import type { Address, MarketSnapshot, Side } from './types.js';

export type ArmedMs = (maker: Address) => number | null;

/** A maker whose armed time is nearer than this, or has passed, is left out of cuts; its orders stay open until the cancel itself. */
export const ARMED_MARGIN_MS = 4_000;

/**
 * True when the maker is left out of a cut at `timeMs`. Due cancels count even if the gateway has not written them yet: while a gateway is
 * down, their orders are not quoted, and later curves do not expire before they land.
 */
export function isArmedWithin(armedMs: number | null, timeMs: number): boolean {
  return armedMs !== null && armedMs - timeMs < ARMED_MARGIN_MS;
}

const SIDES: readonly Side[] = ['ask', 'bid'];

/**
 * Deadline of a curve: `ttlSec` after the head block, and no later than the earliest armed time of the makers in the snapshot, in whole
 * seconds of chain time, rounded down. `armed` must be that of the cut.
 */
export function cutDeadlineSec(snapshot: MarketSnapshot, headSec: number, ttlSec: number, armed: ArmedMs): number {
  const makers = new Set(SIDES.flatMap((side) => snapshotSide(snapshot, side).map(({ maker }) => maker)));
  let deadlineSec = headSec + ttlSec;
  for (const maker of makers) {
    const armedMs = armed(maker);
    if (armedMs !== null) deadlineSec = Math.min(deadlineSec, Math.floor(armedMs / 1_000));
  }
  return deadlineSec;
}
