import { snapshotChanged } from '../../core/snapshot.js';
import type { MarketSnapshot } from '../../core/types.js';

/** The newest publication of a market, as far as the next one depends on it. */
export interface LastPublication {
  seq: number;
  /** Null when the rows that it was cut from were folded, which only happens long after its deadline. */
  snapshot: MarketSnapshot | null;
  deadlineSec: number;
  /** The block that it was cut from. */
  blockNumber: number;
  /** A transaction with it was signed; one that never was can't land any more. */
  signed: boolean;
  /** Seen on-chain. */
  landed: boolean;
}

/** Where and when the next publication would be made. */
export interface PlanContext {
  head: { timestampSec: number; blockNumber: number };
  /** Deadline that it would have. */
  deadlineSec: number;
  touchBeforeSec: number;
}

export type Step =
  /** `born_expired`: what would be published could not live until the next block. `in_flight`: the last one may still land. */
  | { kind: 'none'; reason: 'unchanged' | 'empty' | 'in_flight' | 'born_expired' }
  /** Same snapshot, later deadline. */
  | { kind: 'touch'; baseSeq: number }
  /** `amend`: words of the live curve may stay. */
  | { kind: 'post'; amend: boolean };

/** A touch or a partial post that lands on a dead curve reverts, with all that shares its transaction. */
const BUILD_ON_MARGIN_SEC = 3;
/** An unchanged publication that did not land is sent again as a new one from the second block on that went by without it. */
const PATIENCE_BLOCKS = 2;

/**
 * What to publish for a market. A post is due when any order, size, price or reflected volume differs from the newest recorded
 * snapshot; equal words with another snapshot are another curve. An unchanged live curve is touched when its deadline is near, and
 * posted anew when it is dead, or when its transaction may have been lost.
 */
export function planStep(last: LastPublication | null, next: MarketSnapshot, context: PlanContext): Step {
  const { head, deadlineSec, touchBeforeSec } = context;
  const empty = next.asks.length === 0 && next.bids.length === 0;
  const post = (amend: boolean): Step =>
    deadlineSec <= head.timestampSec ? { kind: 'none', reason: 'born_expired' } : { kind: 'post', amend };
  if (last === null) return empty ? { kind: 'none', reason: 'empty' } : post(false);

  const leftSec = last.deadlineSec - head.timestampSec;
  if (last.snapshot === null) return empty ? { kind: 'none', reason: 'empty' } : post(false);
  const mayBuildOn = last.landed && leftSec >= BUILD_ON_MARGIN_SEC;
  if (snapshotChanged(last.snapshot, next)) return post(mayBuildOn);
  if (empty && (last.landed || leftSec <= 0)) return { kind: 'none', reason: 'empty' };
  if (leftSec <= 0) return post(false);
  if (!last.landed) {
    const waited = head.blockNumber - last.blockNumber;
    return last.signed && waited < PATIENCE_BLOCKS ? { kind: 'none', reason: 'in_flight' } : post(false);
  }
  if (leftSec >= touchBeforeSec || deadlineSec <= last.deadlineSec) return { kind: 'none', reason: 'unchanged' };
  return mayBuildOn ? { kind: 'touch', baseSeq: last.seq } : post(false);
}
