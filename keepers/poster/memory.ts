/**
 * The poster's memory: books, which take long to replay from a long log. A standby keeps it up to date so that it can post at once after a
 * take-over.
 */
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

/** Derived from the logs only; nothing in it is durable. */
export interface PosterMemory {
  /** The book at the newest cut. */
  readonly follower: Follower;
  /** Books of what was published. */
  readonly snapshots: SnapshotStore;
  /** Newest order row that carried out a scheduled cancel, by maker. */
  readonly triggered: Map<Address, number>;
  /** Starts a new follower, because the present one can't be moved forward. */
  restart(): void;
  /** Drops everything, including snapshots, because part of the ledger was reversed. */
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
  /** Listed markets by index, filled from the ledger until warming ends; after that another reader may fill it. */
  markets: Market[];
  memory: PosterMemory;
  pollIntervalMs: number;
  nowMs(): number;
  logger: Logger;
}

export interface Warming extends Loop {
  /** False when the ledger was reversed since the markets were read; then neither they nor the memory may be used. */
  isCurrent(): Promise<boolean>;
}

/**
 * Reads repeatedly what a round of posting would read, so that the first real round has little left to read. Writes nothing. `signal` ends
 * it after the present read, the optional `abort` within it.
 */
export function startWarming(deps: WarmingDeps, signal: AbortSignal, abort: AbortSignal = signal): Warming {
  const { db, markets, memory } = deps;
  let operator: OperatorState | undefined;
  /** Newest generation at which it was read. */
  let seen = 0;
  /** Newest reversal when the markets were read; null before they were. */
  let reversal: number | null = null;

  /** In one transaction, so that a listing that was reversed is not confused with one that replaced it. */
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
      // The next read sees the reversal and starts again.
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
