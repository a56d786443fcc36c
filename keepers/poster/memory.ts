/** What a poster holds in memory: books that take long to replay from a long log. A standby keeps it up to date before it may post. */
import type { Logger } from 'pino';
import type { Address, Market, OrderLogRow } from '../../core/types.js';
import { lastGeneration, readMarkets } from '../../ledger/chain/ledger-log.js';
import { lastReversal } from '../../ledger/chain/reversals.js';
import { readTx } from '../../ledger/db/db.js';
import { LedgerReversedError, LogCompactedError } from '../../ledger/errors.js';
import { createFollower, type Follower } from '../../ledger/orders/follower.js';
import { createSnapshotStore, type SnapshotStore } from '../../ledger/orders/snapshots.js';
import type { OperatorState } from '../../ledger/operator/operator-log.js';
import type { Db } from '../../ledger/types.js';
import { startLoop, type Loop } from '../loop.js';
import { readPosterView } from './view.js';

/** Nothing of it is durable or unique to one poster: it follows the logs. */
export interface PosterMemory {
  /** The book at the newest cut. */
  readonly follower: Follower;
  /** Books of what was published. */
  readonly snapshots: SnapshotStore;
  /** Newest order row that carried out a scheduled cancel, by maker. */
  readonly triggered: Map<Address, number>;
  /** Begins anew: what the follower holds can't be moved on. */
  restart(): void;
  /** Drops everything, snapshots included: part of the ledger that it was read from was taken back. */
  forget(): void;
  /** Sees each order row after it was applied, from now on. */
  onRow(listener: (row: OrderLogRow) => void): void;
}

/** `markets` may grow while it lives. */
export function createPosterMemory(
  markets: readonly Market[],
  kept: SnapshotStore = createSnapshotStore(markets),
): PosterMemory {
  let snapshots = kept;
  const triggered = new Map<Address, number>();
  let listener: (row: OrderLogRow) => void = () => undefined;
  const newFollower = (): Follower =>
    createFollower(markets, (row) => {
      for (const { type } of row.effects) if (type === 'trigger') triggered.set(row.maker, row.orderSeq);
      listener(row);
    });
  let follower = newFollower();
  return {
    get follower() {
      return follower;
    },
    get snapshots() {
      return snapshots;
    },
    triggered,
    restart: () => (follower = newFollower()),
    forget() {
      follower = newFollower();
      snapshots = createSnapshotStore(markets);
      triggered.clear();
    },
    onRow: (next) => (listener = next),
  };
}

interface WarmingDeps {
  db: Db;
  /** Listed markets by index, filled from the ledger until the warming is told to end; from then on another reader may fill it. */
  markets: Market[];
  memory: PosterMemory;
  pollIntervalMs: number;
  nowMs(): number;
  logger: Logger;
}

export interface Warming extends Loop {
  /** False when the ledger was reversed since the markets were read: neither they nor the memory may be gone on from. */
  isCurrent(): Promise<boolean>;
}

/**
 * Reads what a round would read, round after round, so that the first one that counts has little left to read. Writes nothing. `signal`
 * ends it after the round that runs, and `abort`, which it may be given beside it, within that.
 */
export function startWarming(deps: WarmingDeps, signal: AbortSignal, abort: AbortSignal = signal): Warming {
  const { db, markets, memory } = deps;
  let operator: OperatorState | undefined;
  /** Newest generation at which it was read. */
  let seen = 0;
  /** Newest reversal when the markets were read; null before they were. */
  let reversal: number | null = null;

  /** In one view of the database: a listing that a reversal took back, and another in its place, must not pass for the same. */
  const look = () =>
    readTx(db, async (tx) => ({
      generation: (await lastGeneration(tx))?.generation ?? 0,
      reversed: await lastReversal(tx),
      listed: await readMarkets(tx),
    }));

  async function step(): Promise<void> {
    if (((await lastGeneration(db.reads))?.generation ?? 0) === seen) return;
    const { generation, reversed, listed } = await look();
    if (signal.aborted) return;
    if (reversed !== (reversal ?? reversed)) {
      markets.length = 0;
      memory.forget();
    }
    reversal = reversed;
    for (const market of listed) markets[market.index] ??= market;
    const { follower, snapshots, triggered } = memory;
    try {
      const read = { db, markets, snapshots, follower, operator, triggered, operatorFloors: null };
      operator = (await readPosterView(read, deps.nowMs()))?.operator ?? operator;
      seen = generation;
    } catch (error) {
      // A follower that failed half-way is not at any cut.
      memory.restart();
      // The next look sees the reversal, and begins anew for it.
      if (!(error instanceof LedgerReversedError) && !(error instanceof LogCompactedError)) throw error;
    }
  }

  memory.onRow(() => abort.throwIfAborted());
  const loop = startLoop(step, {
    name: 'poster-standby',
    intervalMs: deps.pollIntervalMs,
    signal,
    logger: deps.logger,
  });
  return { ...loop, isCurrent: async () => (await lastReversal(db.reads)) === (reversal ?? 0) };
}
