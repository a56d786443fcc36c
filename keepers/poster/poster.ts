import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { KnotPolicy } from '../../core/curve/compress.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { makersWithRequestsAfter } from '../../ledger/claims.js';
import { LedgerReversedError, LogFoldedError } from '../../ledger/errors.js';
import { createFollower, type Follower } from '../../ledger/follower.js';
import { lastGeneration } from '../../ledger/ledger-log.js';
import { readOperatorState, type OperatorState } from '../../ledger/operator-log.js';
import { insertPublications } from '../../ledger/publication-log.js';
import type { SnapshotStore } from '../../ledger/snapshots.js';
import type { Db, GenerationRow, PublicationKind, Writer } from '../../ledger/types.js';
import { FeeCeilingError } from '../chain/fees.js';
import type { Outbox, SentTx, TxRequest } from '../chain/outbox.js';
import type { Rpc } from '../chain/rpc.js';
import { startLoop, type Loop } from '../loop.js';
import { postCalldata } from './calldata.js';
import { createBlockClock } from './clock.js';
import { createCosts, HOUR_MS, type Costs } from './costs.js';
import { gasLimitOf } from './gas.js';
import { createMeter, type PosterMetrics } from './metrics.js';
import { prepareDue, type Due, type Prepared } from './prepare.js';
import { readPosterView, type PosterView } from './view.js';

export interface PosterDeps {
  db: Db;
  /** Writer of the publication log. */
  writer: Writer;
  outbox: Outbox;
  /** For receipts. */
  rpc: Rpc;
  curveBook: Address;
  markets: readonly Market[];
  /** The poster's own: folding is not shared between keepers. */
  snapshots: SnapshotStore;
  /** Publishing stops while the ledger is not ready; the live curve then expires by itself. */
  readiness(): { ready: boolean; reason: string | null };
  curveTtlSec: number;
  touchBeforeSec: number;
  knots: KnotPolicy;
  /** How long before the next block is expected a post is out; the book is cut earlier by as long as that took lately. */
  cutBeforeBlockMs: number;
  /** Most that posting may cost in an hour; null for no limit. Beyond it nothing is posted, and curves expire. */
  budgetWei: bigint | null;
  pollIntervalMs: number;
  nowMs(): number;
  logger: Logger;
}

/** What one round published. */
export interface PostRound {
  publications: { pair: string; seq: number; kind: PublicationKind }[];
  txHash: Hex;
}

export interface PosterStatus extends PosterMetrics {
  /** Generation of the newest cut, 0 before the first. */
  generation: number;
  /** Why nothing was published in the last round, null when something was or nothing was due. */
  blockedBy: string | null;
  /** Orders that the newest cut left out because they cross larger ones. */
  crossing: { pair: string; orders: number }[];
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
/** Rounds tried for one generation when they fail. */
const MAX_TRIES = 3;
/** Rounds whose slowest says how much earlier to cut. */
const REMEMBERED_ROUNDS = 16;
/** Pause between two lines of the log that sum up the status. */
const REPORT_MS = 60_000;

/**
 * Cuts the book once per generation and publishes what changed, in one transaction for all markets. A publication is durable
 * before it is signed, and no two different curves ever share a sequence number: whatever becomes of a publication, the next one has the
 * next number. Landed, superseded and dead are what the ledger log says of it, never written here.
 */
export function createPoster(deps: PosterDeps): Poster {
  const { db, writer, outbox, markets, snapshots, logger } = deps;
  const startedMs = deps.nowMs();
  const meter = createMeter();
  const clock = createBlockClock();
  let follower = newFollower();
  let operator: OperatorState | undefined;
  let costs: Costs | null = null;
  let lastGasUsed: number | null = null;
  let cutGeneration = 0;
  let settledGeneration = 0;
  let failedRounds = 0;
  /** From the cut to the broadcast, of the newest rounds that published. */
  let tookMs: number[] = [];
  let blockedBy: string | null = null;
  let reportedMs = deps.nowMs();
  /** Of the newest cut, by market. */
  const crossingOrders = new Map<number, number>();

  function newFollower(): Follower {
    return createFollower(markets, (row) => {
      // Rows from before this process started say nothing about its speed.
      if (row.timeMs < startedMs) return;
      const opened = row.effects.flatMap((effect) => (effect.type === 'open' ? [effect.market] : []));
      for (const market of new Set(opened)) meter.ordered(market, row.timeMs);
    });
  }

  /** Why nothing may be published now; whatever it is, the live curve expires by itself. */
  function obstacle(): string | null {
    const { ready, reason } = deps.readiness();
    if (!ready) return reason ?? 'not_ready';
    if (deps.budgetWei !== null && costs !== null && costs.spentWei() >= deps.budgetWei) return 'budget_spent';
    return null;
  }

  /** Says so once when the obstacle changes. */
  function block(by: string | null): void {
    if (by !== blockedBy && by !== null) logger.warn({ reason: by }, 'nothing is published');
    if (by !== blockedBy && by === null) logger.info({ was: blockedBy }, 'publishing again');
    blockedBy = by;
  }

  /** Once per generation: what became of earlier transactions. It comes before the cut, so as not to delay the signature. */
  async function settle(head: GenerationRow): Promise<void> {
    if (head.generation === settledGeneration) return;
    clock.observe(head.toBlock, head.scannedMs);
    await outbox.resume(toSec(head.blockTimestampMs));
    costs ??= await createCosts({ db, writer, rpc: deps.rpc, signer: outbox.signer, nowMs: deps.nowMs });
    for (const cost of await costs.collect()) {
      if (cost.gasUsed > 0) lastGasUsed = cost.gasUsed;
      meter.counters.transactions[cost.succeeded ? 'landed' : 'reverted'] += 1;
      if (!cost.succeeded) logger.warn({ hash: cost.hash, txKey: cost.txKey }, 'a post was mined and failed');
    }
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
    // Whether gas is still dearer than the ceiling shows when something is sent.
    if (blockedBy !== FEE_CEILING) block(null);
    for (const { market, landedSeq } of view.markets) meter.landed(market.index, landedSeq, view.head.scannedMs);
    const { delisted } = view.operator;
    const waiting = view.markets.some(
      ({ market, last }) => last !== null && last.signed && !last.landed && !delisted.has(market.index),
    );
    if (waiting && view.head.generation > cutGeneration) meter.counters.missedBlocks += 1;
    const { due, skipped, crossing } = prepareDue(view, follower, { ...deps, preparedMs: deps.nowMs() });
    for (const { reason } of skipped) meter.counters.skipped[reason] = (meter.counters.skipped[reason] ?? 0) + 1;
    noteCrossing(crossing);
    cutGeneration = view.head.generation;
    if (due.length > 0) return publish(view, due);
    block(null);
    return null;
  }

  /** Says so when something begins to cross; how much does, the status says. */
  function noteCrossing(found: Prepared['crossing']): void {
    for (const { market, orders } of found) {
      const before = crossingOrders.get(market.index) ?? 0;
      crossingOrders.set(market.index, orders);
      if (before === 0 && orders > 0) {
        logger.info({ pair: market.pair, orders }, 'left out orders that cross larger ones');
      }
    }
  }

  /** A follower that failed half-way is not at any cut; the next round folds anew. */
  async function readView(): Promise<PosterView | null> {
    try {
      return await readPosterView({ db, markets, snapshots, follower, operator }, deps.nowMs());
    } catch (error) {
      follower = newFollower();
      // What the follower held was taken back by a reorganisation, or the rows after it were folded; a new one starts from what stands.
      if (error instanceof LedgerReversedError || error instanceof LogFoldedError) return readView();
      throw error;
    }
  }

  async function publish(view: PosterView, due: readonly Due[]): Promise<PostRound | null> {
    const txKey = `post:${due.map(({ publication }) => `${publication.market}.${publication.seq}`).join(',')}`;
    const prepared = await writer.tx(async (tx) => {
      // A halt that came since the cut holds: nothing is prepared after it.
      if ((await readOperatorState(tx, view.operator)).halted !== null) return false;
      // So does a withdrawal: it may be settled before this lands, by a settler that saw it and did not see this.
      const withdrawing = new Set(await makersWithRequestsAfter(tx, view.cut.generation));
      if (withdrawing.size > 0 && due.some((one) => quotesAny(one, withdrawing))) return false;
      await insertPublications(
        tx,
        due.map(({ publication }) => ({ ...publication, txKey })),
      );
      return true;
    });
    if (!prepared) return null;
    for (const { publication, snapshot } of due) snapshots.put(publication, snapshot);
    const data = postCalldata(
      { number: view.head.toBlock, hash: view.head.blockHash },
      due.map(({ record }) => record),
    );
    const validUntilSec = Math.min(...due.map(({ publication }) => publication.deadlineSec));
    const sent = await sendBelowCeiling({ txKey, to: deps.curveBook, data, gasLimit: gasLimitOf(due), validUntilSec });
    if (sent === null) return null;
    const signedMs = deps.nowMs();
    meter.counters.transactions.sent += 1;
    if (sent.replaced) meter.counters.transactions.replacements += 1;
    for (const { market, publication, leftOutLots } of due) {
      meter.counters.sent[publication.kind] += 1;
      if (publication.kind !== 'touch') meter.signed(market.index, publication.seq, signedMs);
      if (leftOutLots > 0n) {
        logger.debug({ pair: market.pair, lots: leftOutLots.toString() }, 'left out depth too far away to be encoded');
      }
    }
    logger.debug({ txKey, ...sent }, 'sent a post');
    return {
      publications: due.map(({ market, publication: { seq, kind } }) => ({ pair: market.pair, seq, kind })),
      txHash: sent.hash,
    };
  }

  /** Null when gas is dearer than the ceiling; what was prepared is then never signed. */
  async function sendBelowCeiling(request: TxRequest): Promise<SentTx | null> {
    try {
      const sent = await outbox.send(request);
      block(null);
      return sent;
    } catch (error) {
      if (!(error instanceof FeeCeilingError)) throw error;
      block(FEE_CEILING);
      return null;
    }
  }

  async function step(signal: AbortSignal): Promise<void> {
    report();
    const head = await lastGeneration(db.knex);
    if (head === null || head.generation === cutGeneration) return;
    try {
      await settle(head);
      const waitMs = clock.waitMs(deps.nowMs(), deps.cutBeforeBlockMs + Math.max(0, ...tookMs));
      if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const cutMs = deps.nowMs();
      if ((await cut()) !== null) tookMs = [...tookMs, deps.nowMs() - cutMs].slice(-REMEMBERED_ROUNDS);
      failedRounds = 0;
    } catch (error) {
      meter.counters.transactions.failedRounds += 1;
      failedRounds += 1;
      // What was prepared and not signed is due again; what was signed and not sent is sent again.
      if (failedRounds < MAX_TRIES) [cutGeneration, settledGeneration] = [0, 0];
      throw error;
    }
  }

  function status(): PosterStatus {
    return {
      ...meter.read((market) => markets[market]?.pair ?? String(market)),
      generation: cutGeneration,
      blockedBy,
      crossing: [...crossingOrders].map(([market, orders]) => ({ pair: markets[market]?.pair ?? `${market}`, orders })),
      fees: { spentLastHourWei: costs?.spentWei() ?? 0n, budgetWei: deps.budgetWei, lastGasUsed },
    };
  }

  function report(): void {
    if (deps.nowMs() - reportedMs < REPORT_MS) return;
    reportedMs = deps.nowMs();
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

/** Whether a new curve offers orders of one of the makers. A touch offers nothing that was not counted already. */
function quotesAny({ publication, snapshot }: Due, makers: ReadonlySet<Address>): boolean {
  return publication.kind !== 'touch' && [...snapshot.asks, ...snapshot.bids].some((order) => makers.has(order.maker));
}
