import { snapshotChanged } from '../../core/snapshot.js';
import type { MarketSnapshot } from '../../core/types.js';

/** The newest publication of a market, as far as the next one depends on it. */
export interface LastPublication {
  seq: number;
  /** Null when the rows that it was cut from were compacted, which only happens long after its deadline. */
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
interface PlanContext {
  head: { timestampSec: number; blockNumber: number };
  /** Deadline that it would have. */
  deadlineSec: number;
  touchBeforeSec: number;
  /** Set when the change may wait: the deadline to which the present curve can be prolonged. */
  waiting: { deadlineSec: number } | null;
}

export type Step =
  /**
   * `born_expired`: the publication would expire before the next block. `in_flight`: the last one may still land. `small_change`: the
   * change is small and waits.
   */
  | { kind: 'none'; reason: 'unchanged' | 'empty' | 'in_flight' | 'born_expired' | 'small_change' }
  /** Same snapshot, later deadline. */
  | { kind: 'touch'; baseSeq: number }
  /** `amend`: words of the live curve may stay. */
  | { kind: 'post'; amend: boolean };

/** A touch or a partial post needs a live curve to land on: the live curve must live at least this much longer. */
const BUILD_ON_MARGIN_SEC = 3;
/** An unchanged publication is sent again as a new one after so many blocks without it. */
const PATIENCE_BLOCKS = 2;

/**
 * What to publish for a market. A post is due when any order, size, price or reflected volume differs from the newest recorded snapshot;
 * equal words with another snapshot are another curve. An unchanged live curve is touched when its deadline is near, and posted anew when
 * it is dead, or when its transaction may have been lost. A curve whose change is small enough to wait is treated as unchanged while there
 * is something to quote and it can be prolonged.
 */
export function planStep(last: LastPublication | null, next: MarketSnapshot, context: PlanContext): Step {
  const { head, deadlineSec, touchBeforeSec, waiting } = context;
  const empty = next.asks.length === 0 && next.bids.length === 0;
  const post = (amend: boolean): Step =>
    deadlineSec <= head.timestampSec ? { kind: 'none', reason: 'born_expired' } : { kind: 'post', amend };
  if (last === null) return empty ? { kind: 'none', reason: 'empty' } : post(false);

  const leftSec = last.deadlineSec - head.timestampSec;
  if (last.snapshot === null) return empty ? { kind: 'none', reason: 'empty' } : post(false);
  const mayBuildOn = last.landed && leftSec >= BUILD_ON_MARGIN_SEC;
  const changed = snapshotChanged(last.snapshot, next);
  if (changed && waiting === null) return post(mayBuildOn);
  if (!changed && empty && (last.landed || leftSec <= 0)) return { kind: 'none', reason: 'empty' };
  if (leftSec <= 0) return post(false);
  if (!last.landed) {
    const waited = head.blockNumber - last.blockNumber;
    return last.signed && waited < PATIENCE_BLOCKS ? { kind: 'none', reason: 'in_flight' } : post(false);
  }
  const untouched: Step = { kind: 'none', reason: changed ? 'small_change' : 'unchanged' };
  // A changed curve is not prolonged once the book is empty.
  if (leftSec >= touchBeforeSec || (changed && empty)) return untouched;
  const keptSec = changed && waiting !== null ? waiting.deadlineSec : deadlineSec;
  if (keptSec <= last.deadlineSec) return changed ? post(mayBuildOn) : untouched;
  return mayBuildOn ? { kind: 'touch', baseSeq: last.seq } : post(false);
}
