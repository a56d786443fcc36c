import type { Market, MarketSnapshot } from '../../core/types.js';
import { snapshotHash, snapshotOf } from '../../core/snapshot.js';
import { LedgerReversedError, LogCompactedError } from '../errors.js';
import { createFollower, type Follower } from './follower.js';
import { readSnapshot } from '../chain/ledger-log.js';
import type { Publication, Queryable } from '../types.js';

/** A publication's snapshot can't be rebuilt as it was prepared: the logs and the publication disagree. */
export class SnapshotMismatchError extends Error {
  constructor(publication: Publication, actual: string) {
    super(
      `snapshot of market ${publication.market} seq ${publication.seq} is rebuilt as ${actual}, prepared as ${publication.snapshotHash}`,
    );
    this.name = 'SnapshotMismatchError';
  }
}

/**
 * The exact books behind publications. A publication stores only its cut and its trims; its book is rebuilt from the logs when it is
 * needed, and cached.
 */
export interface SnapshotStore {
  /** Remembers a snapshot that this process has just made, so that it need not be rebuilt again. */
  put(publication: Pick<Publication, 'market' | 'seq' | 'snapshotHash'>, snapshot: MarketSnapshot): void;
  /**
   * Throws `SnapshotMismatchError` when the logs do not give the prepared hash, and `LogCompactedError` when the rows that it was cut from
   * were compacted, which never happens to one that may still be executed.
   */
  get(q: Queryable, publication: Publication): Promise<MarketSnapshot>;
  /** Forgets the snapshots of a market below `seq`. */
  forget(market: number, seq: number): void;
}

interface Kept {
  snapshotHash: Publication['snapshotHash'];
  snapshot: MarketSnapshot;
}

/** A store over the logs. `markets` may grow while it lives. With `rebuildAlways` it uses no stored book and caches none. */
export function createSnapshotStore(markets: readonly Market[], { rebuildAlways = false } = {}): SnapshotStore {
  const kept = new Map<number, Map<number, Kept>>();
  let follower: Follower = createFollower(markets);
  /** The newest rebuild that was asked for: all move the one follower. */
  let rebuilding: Promise<unknown> = Promise.resolve();

  function keep(publication: Pick<Publication, 'market' | 'seq' | 'snapshotHash'>, snapshot: MarketSnapshot): void {
    const { market, seq, snapshotHash } = publication;
    const ofMarket = kept.get(market) ?? new Map<number, Kept>();
    ofMarket.set(seq, { snapshotHash, snapshot });
    kept.set(market, ofMarket);
  }

  /** A touch has the snapshot, and the cut, of the curve that it prolongs; rebuilding for each would mean starting over each time. */
  function find({ market, seq, snapshotHash }: Publication): MarketSnapshot | undefined {
    const ofMarket = kept.get(market);
    const own =
      ofMarket?.get(seq) ?? [...(ofMarket?.values() ?? [])].find((other) => other.snapshotHash === snapshotHash);
    return own?.snapshot;
  }

  /**
   * Moves the follower forward to the cut, or starts a new one for an earlier cut, which only happens after a restart or for a very late
   * fill.
   */
  async function rebuild(q: Queryable, publication: Publication): Promise<MarketSnapshot> {
    const market = markets[publication.market];
    if (market === undefined) throw new RangeError(`market ${publication.market} is not listed`);
    const at = follower.position();
    const { cut, trims, excluded } = publication;
    if (cut.orderSeq < at.orderSeq || cut.generation < at.generation) follower = createFollower(markets);
    try {
      await follower.advance(q, cut);
    } catch (error) {
      // A follower that failed half-way can't be used again.
      follower = createFollower(markets);
      if (!(error instanceof LedgerReversedError) && !(error instanceof LogCompactedError)) throw error;
      await follower.advance(q, cut);
    }
    const snapshot = snapshotOf(follower.book, market, follower.progress(market.index), trims, new Set(excluded));
    const actual = snapshotHash(snapshot);
    if (actual !== publication.snapshotHash) throw new SnapshotMismatchError(publication, actual);
    return snapshot;
  }

  function rebuildInTurn(q: Queryable, publication: Publication): Promise<MarketSnapshot> {
    const rebuilt = rebuilding.then(() => rebuild(q, publication));
    rebuilding = rebuilt.catch(() => undefined);
    return rebuilt;
  }

  return {
    put: keep,
    async get(q, publication) {
      if (rebuildAlways) return rebuildInTurn(q, publication);
      const { market, seq } = publication;
      const found = find(publication) ?? (await readSnapshot(q, market, seq)) ?? (await rebuildInTurn(q, publication));
      keep(publication, found);
      return found;
    },
    forget(market, below) {
      const ofMarket = kept.get(market);
      if (ofMarket === undefined) return;
      for (const seq of ofMarket.keys()) if (seq < below) ofMarket.delete(seq);
    },
  };
}
