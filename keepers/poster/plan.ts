import { snapshotChanged } from '../../core/snapshot.js';
import type { MarketSnapshot } from '../../core/types.js';

/** The newest publication of a market, as far as the next one depends on it. */
export interface LastPublication {
  seq: number;
  snapshot: MarketSnapshot;
  deadlineSec: number;
  /** Seen on-chain. */
  landed: boolean;
}

export type Step =
  | { kind: 'none' }
  /** Same snapshot, later deadline. */
  | { kind: 'touch'; baseSeq: number }
  | { kind: 'post' };

/**
 * What to publish for a market. A post is due when any order, size, price or reflected volume differs from the newest recorded
 * snapshot; equal words with another snapshot are another curve. An unchanged live curve is touched when its deadline is near, and
 * posted anew when it is dead, or when its transaction may have been lost.
 */
export function planStep(
  last: LastPublication | null,
  next: MarketSnapshot,
  head: { timestampSec: number },
  touchBeforeSec: number,
): Step {
  const empty = next.asks.length === 0 && next.bids.length === 0;
  if (last === null) return empty ? { kind: 'none' } : { kind: 'post' };
  if (snapshotChanged(last.snapshot, next)) return { kind: 'post' };
  const dead = last.deadlineSec <= head.timestampSec;
  if (empty && (last.landed || dead)) return { kind: 'none' };
  if (!last.landed || dead) return { kind: 'post' };
  return last.deadlineSec - head.timestampSec < touchBeforeSec
    ? { kind: 'touch', baseSeq: last.seq }
    : { kind: 'none' };
}
