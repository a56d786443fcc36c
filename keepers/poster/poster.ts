import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { KnotPolicy } from '../../core/curve/compress.js';
import type { Address, Hex, Market, Readiness } from '../../core/types.js';
import { makersWithRequestsAfter } from '../../ledger/chain/claims.js';
import { LedgerReversedError, LogCompactedError } from '../../ledger/errors.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import { accountsAssignedAfter, readOperatorState, type OperatorState } from '../../ledger/operator/operator-log.js';
import { insertPublications } from '../../ledger/publications/publication-log.js';
import type { SnapshotStore } from '../../ledger/orders/snapshots.js';
import type { Db, GenerationRow, PublicationKind, Writer } from '../../ledger/types.js';
import { FeeCeilingError } from '../chain/fees.js';
import type { Outbox, SentTx, TxRequest } from '../chain/outbox.js';
import type { Rpc } from '../chain/rpc.js';
import { startLoop, type Loop } from '../loop.js';
import type { Archive, ArchiveStatus } from '../archive/archive.js';
import { postCalldata } from './post-call.js';
import { createBlockClock, seenAtMs } from './clock.js';
import { createCosts, HOUR_MS, type Costs } from '../chain/costs.js';
import { gasLimitOf, splitByGas } from './gas.js';
import { createPosterMemory, type PosterMemory } from './memory.js';
import { createMeter, type PosterMetrics } from './metrics.js';
import { createOwnerWatch, type OwnerState } from './owner-state.js';
import { createNotices } from './notices.js';
import { BELOW_FLOOR, prepareDue, type Due } from './prepare.js';
import { createRevertWatch } from './reverts.js';
import type { SmallChanges } from './small.js';
import { readPosterView, type PosterView, type ViewDeps } from './view.js';

export interface PosterDeps {
  db: Db;
  /** Writer of the publication log. */
  writer: Writer;
  outbox: Outbox;
  /** For receipts. */
  rpc: Rpc;
  curveBook: Address;
  markets: readonly Market[];
  /** The poster's own store; keepers do not share one. */
  snapshots: SnapshotStore;
  /** Memory that a standby has kept up to date, with its own snapshots; absent: starts without. */
  memory?: PosterMemory | undefined;
  /** Publishing stops while the ledger is not ready; the live curve then expires by itself. */
  readiness(): Readiness;
  curveTtlSec: number;
  touchBeforeSec: number;
  small: SmallChanges;
  knots: KnotPolicy;
  /** How long before the next block a post is to be sent; the book is cut earlier by the time that recent rounds took. */
  cutBeforeBlockMs: number;
  /** Most gas of one transaction. Default: the chain's limit. */
  maxTxGas?: bigint;
  /** Posting stops for markets with a token of which the operator's row is too far below its floor; null: never for that reason. */
  operatorFloors: ViewDeps['operatorFloors'];
  /** Where publications and their books are kept outside the database; null for nowhere. */
  archive: { archive: Archive; required: boolean } | null;
  /** Most that posting may cost in an hour; null for no limit. Beyond it nothing is posted, and curves expire. */
  budgetWei: bigint | null;
  pollIntervalMs: number;
  /** Wall clock, for what is stored and told. */
  nowMs(): number;
  /** For intervals; a step of the wall clock must not change them. Default: `nowMs`. */
  monotonicMs?(): number;
  logger: Logger;
}

/** What one round published. */
interface PostRound {
  publications: { pair: string; seq: number; kind: PublicationKind }[];
  /** Hash of the first transaction, and of all. */
  txHash: Hex;
  txHashes: Hex[];
}

export interface PosterStatus extends PosterMetrics {
  /** Generation of the newest cut, 0 before the first. */
  generation: number;
  /** Why nothing was published in the last round, null when something was or nothing was due. */
  blockedBy: string | null;
  /** Pairs that it posts for, listed or not any more. */
  pairs: readonly string[];
  /** Those for which nothing is posted because the operator's row has too little of one of their tokens. */
  stopped: readonly string[];
  /** Orders that the newest cut left out because they cross larger ones. */
  crossing: { pair: string; orders: number }[];
  /** The contract's error of the newest post that reverted; null before the first. */
  lastRevert: string | null;
  /** Null without an archive. */
  archive: ArchiveStatus | null;
  fees: { spentLastHourWei: bigint; budgetWei: bigint | null; lastGasUsed: number | null };
}

export interface Poster {
  start(signal: AbortSignal): Loop;
  /** One round at once, whatever the block clock says: cut, limit, compress, prepare, send. Null when nothing is due. */
  round(): Promise<PostRound | null>;
  status(): PosterStatus;
}

/** Obstacle that a round meets only when it sends. */
const FEE_CEILING = 'fee_ceiling';
/** The owner has not allowed this key to post, or no longer does. */
const NOT_POSTER = 'not_poster';
/** Posts have reverted, and all due ones would revert, too. */
const POSTS_REVERT = 'posts_revert';
/** The archive can't be written; after a loss of the database the posts could not be explained. */
const ARCHIVE_FAILS = 'archive_fails';
/** What is stored of the order log does not lead to the newest cut. */
const BOOK_UNREADABLE = 'book_unreadable';
/** Obstacles that stay until something is sent. */
const SENDING: readonly (string | null)[] = [FEE_CEILING, POSTS_REVERT, ARCHIVE_FAILS];
/** Rounds tried for one generation when they fail. */
const MAX_TRIES = 3;
/** Recent rounds; the slowest of them decides how much earlier to cut. */
const REMEMBERED_ROUNDS = 16;
/** Pause between two lines of the log that sum up the status. */
const REPORT_MS = 60_000;

/**
 * Cuts the book once per generation and publishes what changed, in one transaction for all markets. A publication is durable before it is
 * signed, and no two different curves ever share a sequence number: after any publication the next one has the next number. Whether it
 * landed, was superseded or is dead follows from the ledger log and is never stored here.
 */
export function createPoster(deps: PosterDeps): Poster {
  const { db, writer, outbox, markets, logger, monotonicMs = deps.nowMs } = deps;
  const memory = deps.memory ?? createPosterMemory(markets, deps.snapshots);
  const { snapshots, triggered } = memory;
  const startedMs = deps.nowMs();
  const meter = createMeter();
  const clock = createBlockClock();
  let operator: OperatorState | undefined;
  let costs: Costs | null = null;
  let lastGasUsed: number | null = null;
  let cutGeneration = 0;
  let settledGeneration = 0;
  let failedRounds = 0;
  /** From the cut to the broadcast, of the newest rounds that published. */
  let tookMs: number[] = [];
  let blockedBy: string | null = null;
  const ownerWatch = createOwnerWatch({ rpc: deps.rpc, curveBook: deps.curveBook, signer: outbox.signer });
  let owner: OwnerState = { isPoster: true, maxTtlSec: new Map(), seqs: new Map() };
  let reportedMs = monotonicMs();
  let hasJudgedPace = false;
  const notices = createNotices(markets, logger);
  const reverts = createRevertWatch({
    ...{ rpc: deps.rpc, curveBook: deps.curveBook, signer: outbox.signer, logger },
    nowMs: monotonicMs,
    onLeftOut: () => countSkipped('would_revert'),
  });

  function countSkipped(reason: string): void {
    meter.counters.skipped[reason] = (meter.counters.skipped[reason] ?? 0) + 1;
  }

  memory.onRow((row) => {
    // Rows from before this process started say nothing about its speed.
    if (row.timeMs < startedMs) return;
    const opened = row.effects.flatMap((effect) => (effect.type === 'open' ? [effect.market] : []));
    for (const market of new Set(opened)) meter.ordered(market, row.timeMs);
  });

  /** Why nothing may be published now; null for no obstacle. The live curve then expires by itself. */
  function obstacle(): string | null {
    const { ready, reason } = deps.readiness();
    if (!ready) return reason ?? 'not_ready';
    if (!owner.isPoster) return NOT_POSTER;
    if (deps.budgetWei !== null && costs !== null && costs.spentWei() >= deps.budgetWei) return 'budget_spent';
    return null;
  }

  /** Sets the obstacle and logs a change once. */
  function block(by: string | null): void {
    if (by !== blockedBy && by !== null) logger.warn({ reason: by }, 'nothing is published');
    if (by !== blockedBy && by === null) logger.info({ was: blockedBy }, 'publishing again');
    blockedBy = by;
  }

  /** Logs once that blocks come too fast for `cutBeforeBlockMs`. */
  function judgePace(): void {
    const intervalMs = clock.intervalMs();
    if (hasJudgedPace || intervalMs === null) return;
    hasJudgedPace = true;
    if (deps.cutBeforeBlockMs < intervalMs) return;
    const facts = { cutBeforeBlockMs: deps.cutBeforeBlockMs, intervalMs: Math.round(intervalMs) };
    logger.warn(facts, 'CUT_BEFORE_BLOCK_MS is no less than the time between two blocks: books are cut at once');
  }

  /** Once per generation: handles the results of earlier transactions. It runs before the cut, so that it does not delay the signature. */
  async function settle(head: GenerationRow): Promise<void> {
    if (head.generation === settledGeneration) return;
    clock.observe(head.toBlock, seenAtMs(head.scannedMs, { wallMs: deps.nowMs(), monotonicMs: monotonicMs() }));
    judgePace();
    await outbox.resume(toSec(head.blockTimestampMs));
    costs ??= await createCosts({
      role: 'poster',
      db,
      writer,
      rpc: deps.rpc,
      signer: outbox.signer,
      nowMs: deps.nowMs,
      monotonicMs,
      logger,
    });
    let reverted = false;
    for (const cost of await costs.collect()) {
      if (cost.gasUsed > 0) lastGasUsed = cost.gasUsed;
      meter.counters.transactions[cost.succeeded ? 'landed' : 'reverted'] += 1;
      if (cost.succeeded) reverts.landed();
      else if (cost.blockNumber > 0) {
        reverted = true;
        reverts.note(cost);
      }
    }
    await costs.repair();
    await costs.findUnknown();
    owner = await ownerWatch.read(head.toBlock, markets, { seqs: reverted });
    settledGeneration = head.generation;
  }

  async function round(): Promise<PostRound | null> {
    const head = await lastGeneration(db.knex);
    if (head === null) return null;
    await settle(head);
    return cut();
  }

  async function cut(): Promise<PostRound | null> {
    const by = obstacle();
    if (by !== null) {
      block(by);
      return null;
    }
    const view = await readView();
    if (view === null || view.head.generation === cutGeneration) return null;
    operator = view.operator;
    if (view.operator.halted !== null) {
      block(`halted: ${view.operator.halted.code}`);
      return null;
    }
    // Whether gas is still above the ceiling shows only when something is sent.
    if (!SENDING.includes(blockedBy)) block(null);
    for (const { market, landedSeq } of view.markets) meter.landed(market.index, landedSeq, view.head.scannedMs);
    const { delisted } = view.operator;
    const waiting = view.markets.some(
      ({ market, last }) => last !== null && last.signed && !last.landed && !delisted.has(market.index),
    );
    if (waiting && view.head.generation > cutGeneration) meter.counters.missedBlocks += 1;
    const { due, skipped, crossing } = prepareDue(view, memory.follower, {
      ...deps,
      maxTtlSec: owner.maxTtlSec,
      usedSeq: (market) => Math.max(owner.seqs.get(market) ?? 0, deps.archive?.archive.highs().seqs[market] ?? 0),
      preparedMs: deps.nowMs(),
    });
    for (const { reason } of skipped) countSkipped(reason);
    notices.noteCrossing(crossing);
    notices.noteSkipped(skipped);
    cutGeneration = view.head.generation;
    const landing = await reverts.without(view, due);
    if (landing.length > 0) return publish(view, landing);
    block(due.length > 0 ? POSTS_REVERT : null);
    return null;
  }

  /** A follower that failed half-way is not at any cut; the next round replays anew. */
  async function readView(isNew = false): Promise<PosterView | null> {
    try {
      const { operatorFloors } = deps;
      return await readPosterView(
        { db, markets, snapshots, follower: memory.follower, operator, triggered, operatorFloors },
        deps.nowMs(),
      );
    } catch (error) {
      memory.restart();
      if (!(error instanceof LedgerReversedError) && !(error instanceof LogCompactedError)) throw error;
      // A reorganisation reversed part of the follower's state, or the rows after it were compacted; a new follower starts from the
      // compacted book. What stops that one, too, is not over at once.
      if (!isNew) return readView(true);
      block(BOOK_UNREADABLE);
      throw error;
    }
  }

  async function publish(view: PosterView, due: readonly Due[]): Promise<PostRound | null> {
    const batches = splitByGas(due, deps.maxTxGas).map((part) => ({
      part,
      txKey: `post:${part.map(({ publication }) => `${publication.market}.${publication.seq}`).join(',')}`,
    }));
    const prepared = await writer.tx(async (tx) => {
      // A halt that came since the cut holds: nothing is prepared after it.
      const { halted, lastSeq } = await readOperatorState(tx, view.operator);
      if (halted !== null) return false;
      // A withdrawal request since the cut also stops it: a settler that saw the request but not this publication may settle it before this
      // lands. So does an assignment from suspense: its command did not see this publication.
      const assigned = lastSeq > view.operator.lastSeq ? await accountsAssignedAfter(tx, view.operator.lastSeq) : [];
      const lessened = new Set([...(await makersWithRequestsAfter(tx, view.cut.generation)), ...assigned]);
      if (lessened.size > 0 && due.some((one) => quotesAny(one, lessened))) return false;
      const rows = batches.flatMap(({ part, txKey }) => part.map(({ publication }) => ({ ...publication, txKey })));
      await insertPublications(tx, rows);
      return true;
    });
    if (!prepared) return null;
    for (const { publication, snapshot } of due) snapshots.put(publication, snapshot);
    if (!(await archived(view, batches))) return null;
    const requests = batches.map(({ part, txKey }): TxRequest => {
      const records = part.map(({ record }) => record);
      return {
        txKey,
        to: deps.curveBook,
        data: postCalldata({ number: view.head.toBlock, hash: view.head.blockHash }, records),
        gasLimit: gasLimitOf(records),
        validUntilSec: Math.min(...part.map(({ publication }) => publication.deadlineSec)),
      };
    });
    const sent = await sendBelowCeiling(requests);
    const [first] = sent;
    if (first === undefined) return null;
    const signed = batches.slice(0, sent.length).flatMap(({ part }) => part);
    noteSent(signed, sent);
    return {
      publications: signed.map(({ market, publication: { seq, kind } }) => ({ pair: market.pair, seq, kind })),
      txHash: first.hash,
      txHashes: sent.map(({ hash }) => hash),
    };
  }

  /** Writes to the archive what is about to be sent; false when it failed and the archive is required. */
  async function archived(
    view: PosterView,
    batches: readonly { part: readonly Due[]; txKey: string }[],
  ): Promise<boolean> {
    if (deps.archive === null) return true;
    const { archive, required } = deps.archive;
    const rows = batches.flatMap(({ part, txKey }) =>
      part.map(({ publication, snapshot }) => ({ publication: { ...publication, txKey }, snapshot })),
    );
    try {
      const book = { orderSeq: view.cut.orderSeq, oid: memory.follower.book.lastOid() };
      await archive.write({ publications: rows, book }, { keep: !required });
      return true;
    } catch (error) {
      const { dropped } = archive.status();
      logger.error({ err: error, required, dropped }, 'the archive can not be written');
      if (required) block(ARCHIVE_FAILS);
      return !required;
    }
  }

  function noteSent(signed: readonly Due[], sent: readonly SentTx[]): void {
    const signedMs = deps.nowMs();
    meter.counters.transactions.sent += sent.length;
    meter.counters.transactions.replacements += sent.filter(({ replaced }) => replaced).length;
    for (const { market, publication, leftOut } of signed) {
      meter.counters.sent[publication.kind] += 1;
      if (publication.kind === 'touch') continue;
      meter.signed(market.index, publication.seq, signedMs);
      if (!meter.leftOut(market.index, leftOut)) continue;
      const lots = leftOut.map((one) => `${one.side} ${one.reason} ${one.lots}`);
      logger.info({ pair: market.pair, lots }, 'depth that the curve leaves out changed');
    }
    for (const one of sent) logger.debug({ ...one }, 'sent a post');
  }

  /** Requests above the ceiling are not sent; their prepared publications are then never signed. */
  async function sendBelowCeiling(requests: readonly TxRequest[]): Promise<SentTx[]> {
    try {
      const sent = await outbox.sendAll(requests);
      block(sent.length < requests.length ? FEE_CEILING : null);
      return sent;
    } catch (error) {
      if (!(error instanceof FeeCeilingError)) throw error;
      block(FEE_CEILING);
      return [];
    }
  }

  async function step(signal: AbortSignal): Promise<void> {
    report();
    const head = await lastGeneration(db.knex);
    if (head === null || head.generation === cutGeneration) return;
    try {
      await settle(head);
      const waitMs = clock.waitMs(monotonicMs(), deps.cutBeforeBlockMs + Math.max(0, ...tookMs));
      if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const cutMs = monotonicMs();
      if ((await cut()) !== null) tookMs = [...tookMs, monotonicMs() - cutMs].slice(-REMEMBERED_ROUNDS);
      failedRounds = 0;
    } catch (error) {
      meter.counters.transactions.failedRounds += 1;
      failedRounds += 1;
      // Unsigned publications are due again; signed ones that were not sent are sent again.
      if (failedRounds < MAX_TRIES) [cutGeneration, settledGeneration] = [0, 0];
      throw error;
    }
  }

  function status(): PosterStatus {
    return {
      ...meter.read((market) => markets[market]?.pair ?? String(market)),
      generation: cutGeneration,
      blockedBy,
      pairs: markets.map(({ pair }) => pair),
      stopped: notices.stopped(BELOW_FLOOR),
      crossing: notices.crossing(),
      lastRevert: reverts.last(),
      archive: deps.archive?.archive.status() ?? null,
      fees: { spentLastHourWei: costs?.spentWei() ?? 0n, budgetWei: deps.budgetWei, lastGasUsed },
    };
  }

  function report(): void {
    if (monotonicMs() - reportedMs < REPORT_MS) return;
    reportedMs = monotonicMs();
    const { fees, ...rest } = status();
    const wei = (units: bigint | null): string | null => units?.toString() ?? null;
    const spent = { spentLastHourWei: wei(fees.spentLastHourWei), budgetWei: wei(fees.budgetWei), windowMs: HOUR_MS };
    logger.info({ ...rest, fees: spent }, 'poster status');
  }

  return {
    round,
    status,
    start: (signal) => startLoop(step, { name: 'poster', intervalMs: deps.pollIntervalMs, signal, logger }),
  };
}

/** Block times are whole seconds. */
function toSec(timestampMs: number): number {
  return Math.floor(timestampMs / 1_000);
}

/** Whether a new curve offers orders of one of the makers; false for a touch, which offers nothing new. */
function quotesAny({ publication, snapshot }: Due, makers: ReadonlySet<Address>): boolean {
  return publication.kind !== 'touch' && [...snapshot.asks, ...snapshot.bids].some((order) => makers.has(order.maker));
}
