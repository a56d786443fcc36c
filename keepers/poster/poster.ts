import type { Logger } from 'pino';
import { buildCurve } from '../../core/curve/build.js';
import type { PostRecord } from '../../core/curve/post.js';
import { trimToInventory } from '../../core/exposure.js';
import { snapshotHash, snapshotOf } from '../../core/snapshot.js';
import type { Address, Hex, Market, MarketSnapshot, Trim } from '../../core/types.js';
import { createFollower } from '../../ledger/follower.js';
import { insertPublications, readPublication } from '../../ledger/publication-log.js';
import type { SnapshotStore } from '../../ledger/snapshots.js';
import type { Db, Publication, Writer } from '../../ledger/types.js';
import type { Outbox } from '../chain/outbox.js';
import { startLoop, type Loop } from '../loop.js';
import { postCalldata } from './calldata.js';
import { planStep, type Step } from './plan.js';
import { readPosterView, type MarketView, type PosterView } from './view.js';

export interface PosterDeps {
  db: Db;
  /** Writer of the publication log. */
  writer: Writer;
  outbox: Outbox;
  curveBook: Address;
  markets: readonly Market[];
  snapshots: SnapshotStore;
  /** Publishing stops while the ledger is not ready; the live curve then expires by itself. */
  readiness(): { ready: boolean; reason: string | null };
  curveTtlSec: number;
  touchBeforeSec: number;
  maxKnots: 7 | 15 | 31;
  pollIntervalMs: number;
  nowMs(): number;
  logger: Logger;
}

/** What one round published. */
export interface PostRound {
  publications: { pair: string; seq: number; kind: 'post' | 'touch' }[];
  txHash: Hex;
}

export interface Poster {
  start(signal: AbortSignal): Loop;
  /** One round: cut, limit, compress, prepare, send. Null when nothing is due. */
  round(): Promise<PostRound | null>;
}

/** Gas of a transaction that posts `count` markets, with room for first-time slots. */
const gasLimitFor = (count: number): bigint => 150_000n + 250_000n * BigInt(count);

/**
 * Cuts the book once per generation and publishes what changed, in one transaction for all markets. A publication is durable
 * before it is signed, and no two different curves ever share a sequence number.
 */
export function createPoster(deps: PosterDeps): Poster {
  const { db, writer, outbox, markets, snapshots, logger } = deps;
  let follower = createFollower(markets);
  let lastGeneration = 0;

  async function round(): Promise<PostRound | null> {
    if (!deps.readiness().ready) return null;
    const view = await readView();
    if (view === null || view.head.generation === lastGeneration) return null;
    await outbox.resume(toSec(view.head.blockTimestampMs));
    const due = await dueRecords(view);
    lastGeneration = view.head.generation;
    if (due.length === 0) return null;
    return publish(view, due);
  }

  /** A follower that failed half-way is not at any cut; the next round folds anew. */
  async function readView(): Promise<PosterView | null> {
    try {
      return await readPosterView({ db, markets, snapshots, follower }, deps.nowMs());
    } catch (error) {
      follower = createFollower(markets);
      throw error;
    }
  }

  interface Due {
    publication: Omit<Publication, 'txKey'>;
    snapshot: MarketSnapshot;
    record: PostRecord;
    market: Market;
    kind: 'post' | 'touch';
  }

  async function dueRecords(view: PosterView): Promise<Due[]> {
    const candidates = view.markets.map(({ market }) =>
      snapshotOf(follower.book, market, follower.progress(market.index)),
    );
    const limited = trimToInventory(
      view.markets.map(({ market, older }, i) => ({ market, older, candidate: candidates[i] ?? null })),
      view.availableUnits,
    );
    const due: Due[] = [];
    for (const [i, marketView] of view.markets.entries()) {
      const { snapshot, trims } = limited[i] ?? { snapshot: null, trims: [] };
      if (snapshot === null) continue;
      const step = planStep(
        marketView.last,
        snapshot,
        { timestampSec: toSec(view.head.blockTimestampMs) },
        deps.touchBeforeSec,
      );
      const one = await prepare(view, marketView, snapshot, trims, step);
      if (one !== null) due.push(one);
    }
    return due;
  }

  async function prepare(
    view: PosterView,
    { market, last }: MarketView,
    snapshot: MarketSnapshot,
    trims: Trim[],
    step: Step,
  ): Promise<Due | null> {
    if (step.kind === 'none') return null;
    const seq = (last?.seq ?? 0) + 1;
    const deadlineSec = toSec(view.head.blockTimestampMs) + Math.min(deps.curveTtlSec, market.maxTtlSec);
    const common = { marketId: market.id, seq, deadlineSec };
    if (step.kind === 'touch') {
      const before = await readPublication(db.knex, market.index, step.baseSeq);
      if (before === null) throw new RangeError(`publication ${step.baseSeq} of ${market.pair} is missing`);
      const { txKey: _, ...rest } = before;
      return {
        publication: { ...rest, seq, baseSeq: step.baseSeq, deadlineSec, preparedMs: deps.nowMs() },
        snapshot,
        record: { kind: 'touch', ...common, baseSeq: step.baseSeq },
        market,
        kind: 'touch',
      };
    }
    const curve = buildCurve(market, snapshot, { maxKnots: deps.maxKnots });
    const { askWords, bidWords, wordsHash, askLeftOutLots, bidLeftOutLots } = curve;
    if (askLeftOutLots + bidLeftOutLots > 0n) {
      const lots = { askLots: askLeftOutLots.toString(), bidLots: bidLeftOutLots.toString() };
      logger.debug({ pair: market.pair, ...lots }, 'left out depth too far from the best price to be encoded');
    }
    return {
      publication: {
        market: market.index,
        seq,
        baseSeq: seq,
        cut: view.cut,
        fillSeq: snapshot.fillSeq,
        askVolumeUnits: snapshot.askVolumeUnits,
        bidVolumeUnits: snapshot.bidVolumeUnits,
        trims,
        snapshotHash: snapshotHash(snapshot),
        askWords,
        bidWords,
        wordsHash,
        deadlineSec,
        preparedMs: deps.nowMs(),
      },
      snapshot,
      record: {
        kind: 'full',
        ...common,
        snapAskUnits: snapshot.askVolumeUnits,
        snapBidUnits: snapshot.bidVolumeUnits,
        askWords,
        bidWords,
      },
      market,
      kind: 'post',
    };
  }

  async function publish(view: PosterView, due: readonly Due[]): Promise<PostRound> {
    const txKey = `post:${due.map(({ publication }) => `${publication.market}.${publication.seq}`).join(',')}`;
    await writer.tx((tx) =>
      insertPublications(
        tx,
        due.map(({ publication }) => ({ ...publication, txKey })),
      ),
    );
    for (const { publication, snapshot } of due) snapshots.put(publication, snapshot);
    const data = postCalldata(
      { number: view.head.toBlock, hash: view.head.blockHash },
      due.map(({ record }) => record),
    );
    const sent = await outbox.send({
      txKey,
      to: deps.curveBook,
      data,
      gasLimit: gasLimitFor(due.length),
      validUntilSec: Math.min(...due.map(({ publication }) => publication.deadlineSec)),
    });
    logger.debug({ txKey, ...sent }, 'sent a post');
    return {
      publications: due.map(({ market, publication, kind }) => ({ pair: market.pair, seq: publication.seq, kind })),
      txHash: sent.hash,
    };
  }

  async function step(): Promise<void> {
    await round();
  }

  return {
    round,
    start: (signal) => startLoop(step, { name: 'poster', intervalMs: deps.pollIntervalMs, signal, logger }),
  };
}

/** Block times are whole seconds. */
function toSec(timestampMs: number): number {
  return Math.floor(timestampMs / 1_000);
}
