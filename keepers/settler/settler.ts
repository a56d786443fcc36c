import type { Logger } from 'pino';
import { longestWaitMs, settlesFromMs, type SettlePace } from '../../core/claim-state.js';
import type { Address, Hex, Market, Readiness } from '../../core/types.js';
import { maySettleAny, readClaim, type PendingClaim } from '../../ledger/chain/claims.js';
import { readTx } from '../../ledger/db/db.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import { nextLowering, readOperatorState, type OperatorState } from '../../ledger/operator/operator-log.js';
import { publicationsSince } from '../../ledger/publications/publication-log.js';
import {
  claimKey,
  countEmptySettlements,
  insertOutcomes,
  insertSettlements,
  landedSettlements,
  lastSettlementNo,
  openSettlements,
  reversedSettlementKeys,
  signersOf,
  type SignedKey,
} from '../../ledger/settlements/settlement-log.js';
import type { SnapshotStore } from '../../ledger/orders/snapshots.js';
import { concerns, readConcerns } from '../../ledger/chain/suspense.js';
import type {
  CheckpointHead,
  Db,
  GenerationRow,
  Publication,
  Settlement,
  SettlementOutcome,
  Transaction,
  Writer,
} from '../../ledger/types.js';
import { waitForWriter } from '../../ledger/db/writers.js';
import { groupBy } from '../../ledger/db/lists.js';
import { readQuarantined } from '../../ledger/chain/token-findings.js';
import type { Archive, ArchiveStatus } from '../archive/archive.js';
import type { Outbox } from '../chain/outbox.js';
import { mayPost } from '../chain/quorum.js';
import type { Rpc } from '../chain/rpc.js';
import { startLoop, type Loop } from '../loop.js';
import {
  settleCalldata,
  settleGasLimit,
  backoffMs,
  planLowering,
  planSettlements,
  type PlannedSettlement,
} from './plan.js';
import { createCheckpointer, type NewCheckpoint } from './checkpointer.js';
import { CANDIDATES_MAX, readSettlerView, type PendingView, type SettlerView } from './view.js';

export interface SettlerDeps {
  db: Db;
  /** Writer of the settlement log. */
  writer: Writer;
  outbox: Outbox;
  rpc: Rpc;
  custodian: Address;
  markets: Market[];
  snapshots: SnapshotStore;
  /** Nothing is settled and no checkpoint published while the ledger is not ready. */
  readiness(): Readiness;
  pollIntervalMs: number;
  checkpointIntervalMs: number;
  /** Most settlements in one transaction. */
  batchMax: number;
  /** Most settlements per hour that raise no claim. */
  emptyPerHour: number;
  /** How soon a claim is settled again. */
  pace: SettlePace;
  /** Where settlements and checkpoints are kept outside the database; null for nowhere. */
  archive: { archive: Archive; required: boolean } | null;
  /** Wall clock, for what is stored. */
  nowMs(): number;
  /** For intervals; a step of the wall clock must not change them. Default: `nowMs`. */
  monotonicMs?(): number;
  logger: Logger;
}

/** What one round did. */
interface SettleRound {
  /** Number of the checkpoint that was published, null for none. */
  checkpointSeq: number | null;
  settlements: Settlement[];
  txHash: Hex | null;
}

export interface Settler {
  start(signal: AbortSignal): Loop;
  /** One round: see how the last settlements ended, cut a checkpoint, prepare, send. */
  round(): Promise<SettleRound>;
  /** Why nothing is settled; null while something may be. */
  status(): { blockedBy: string | null; archive: ArchiveStatus | null };
}

const HOUR_MS = 3_600_000;
/** Checkpoint number of a settlement that only lowers a claim. */
const NO_CHECKPOINT = 0;
/** The custodian's owner has not allowed this key to settle, or no longer does. */
const NOT_SETTLER = 'not_settler';
/** The archive can't be written; after a loss of the database the settlements could not be explained. */
const ARCHIVE_FAILS = 'archive_fails';
/** How long a successful check that the key may settle is valid. */
const MAY_SETTLE_MS = 30_000;
/** Longest wait before a lowering without effect is sent again; it is short because the claim's delay runs meanwhile. */
const LOWERING_BACKOFF_MS = 10_000;
/** Curves of one market that are prepared while a round computes. */
const PUBLICATIONS_MAX = 1_000;

/**
 * Settles withdrawals. One transaction is in flight at a time; its settlements are durable before it is signed, together with the
 * checkpoint that they were computed from. The next one waits until a scanned block has used its nonce, so that its outcome is in the
 * ledger.
 */
export function createSettler(deps: SettlerDeps): Settler {
  const { db, writer, outbox, logger, monotonicMs = deps.nowMs } = deps;
  const checkpointer = createCheckpointer(db);
  let operator: OperatorState | undefined;
  let blockedBy: string | null = null;
  /** When the custodian was last seen to take settlements of this key. */
  let maySettleMs = Number.NEGATIVE_INFINITY;
  /** Refusals in a row, per maker and token. */
  const refusals = new Map<string, { count: number; lastMs: number }>();

  async function round(): Promise<SettleRound> {
    const nothing: SettleRound = { checkpointSeq: null, settlements: [], txHash: null };
    const head = await lastGeneration(db.knex);
    if (head === null) return nothing;
    await outbox.resume(Math.floor(head.blockTimestampMs / 1_000), () => reversedSettlementKeys(db.knex));
    const open = await closeEnded(head);
    if (!(await maySettle())) return nothing;
    const lowered = await lower(open);
    if (lowered !== null) return { ...nothing, ...lowered };
    if (!deps.readiness().ready) return nothing;
    // A settlement that landed in a block that was lost is in flight again, although its end is stored.
    return (await settle(open.length === 0 && outbox.status().unminedCount === 0)) ?? nothing;
  }

  /** Whether the custodian accepts settlements of this key; a change is logged once. */
  async function maySettle(): Promise<boolean> {
    if (monotonicMs() - maySettleMs < MAY_SETTLE_MS) return true;
    const isAllowed = await mayPost(deps.rpc, deps.custodian, outbox.signer);
    if (isAllowed) maySettleMs = monotonicMs();
    if (isAllowed ? blockedBy === NOT_SETTLER : blockedBy !== NOT_SETTLER) block(isAllowed ? null : NOT_SETTLER);
    return isAllowed;
  }

  function block(by: string | null): void {
    if (by !== blockedBy && by !== null) logger.error({ reason: by, signer: outbox.signer }, 'nothing is settled');
    if (by !== blockedBy && by === null) logger.info({ was: blockedBy }, 'settling again');
    blockedBy = by;
  }

  /** Writes to the archive what is about to be sent; false when it failed and the archive is required. */
  async function archived(
    settlements: readonly Settlement[],
    checkpoint: CheckpointHead | null,
    isUrgent: boolean,
  ): Promise<boolean> {
    if (deps.archive === null) return true;
    const { archive, required } = deps.archive;
    try {
      await archive.write({ settlements, checkpoint }, { keep: !required || isUrgent || settlements.length === 0 });
      if (blockedBy === ARCHIVE_FAILS) block(null);
      return true;
    } catch (error) {
      const { dropped } = archive.status();
      logger.error({ err: error, required, dropped }, 'the archive can not be written');
      if (required) block(ARCHIVE_FAILS);
      return !required;
    }
  }

  /** Stores the ends of settlements whose nonces a scanned block has used; returns those that are still open. */
  async function closeEnded(head: GenerationRow): Promise<Settlement[]> {
    const open: Settlement[] = [];
    const ended: { settlement: Settlement; outcome: SettlementOutcome }[] = [];
    for (const [txKey, batch] of groupBy(await openSettlements(db.knex), (one) => one.txKey)) {
      const { isSigned, open: signed } = await signersOf(db.knex, txKey);
      if (!isSigned) ended.push(...batch.map((settlement) => ({ settlement, outcome: 'abandoned' as const })));
      else if (await isUnderWay(signed, head.toBlock)) open.push(...batch);
      else {
        const numbers = batch.map((one) => one.settlementNo);
        const landed = await landedSettlements(db.knex, numbers);
        for (const settlement of batch) {
          ended.push({ settlement, outcome: landed.has(settlement.settlementNo) ? 'landed' : 'refused' });
        }
      }
    }
    if (ended.length === 0) return open;
    const rows = ended.map(({ settlement, outcome }) => ({ settlementNo: settlement.settlementNo, outcome }));
    await writer.tx((tx) => insertOutcomes(tx, rows, deps.nowMs()));
    for (const { settlement, outcome } of ended) noteOutcome(settlement, outcome);
    return open;
  }

  /** Whether a nonce at which the batch was signed, by any key, is still unused. */
  async function isUnderWay(signed: readonly SignedKey[], block: number): Promise<boolean> {
    for (const { signer, nonce } of signed) if ((await outbox.usedAt(block, signer)) <= nonce) return true;
    return false;
  }

  function noteOutcome(settlement: Settlement, outcome: SettlementOutcome): void {
    const { maker, token, settlementNo } = settlement;
    const key = claimKey(settlement);
    if (outcome === 'landed') {
      refusals.delete(key);
      return;
    }
    // Perhaps because the key was removed.
    maySettleMs = Number.NEGATIVE_INFINITY;
    const count = (refusals.get(key)?.count ?? 0) + 1;
    refusals.set(key, { count, lastMs: monotonicMs() });
    logger.warn({ maker, token, settlementNo, outcome, count }, 'a settlement had no effect; it will be computed anew');
  }

  /** Carries out the operator's lowerings, also while the ledger is halted, because they can only lower a claim. */
  async function lower(open: readonly Settlement[]): Promise<Pick<SettleRound, 'settlements' | 'txHash'> | null> {
    const act = await nextLowering(db.knex);
    if (act?.lower === undefined || act.maker === null) return null;
    const { maker, lower } = act;
    if (open.some((one) => one.maker === maker && one.token === lower.token)) return null;
    if (!isDue({ maker, token: lower.token }, LOWERING_BACKOFF_MS)) return null;
    // Read in one transaction, since the ledger may have changed since the round began: the row states the block of the claim.
    const { head, claim } = await readTx(db, async (q) => ({
      head: await lastGeneration(q),
      claim: await readClaim(q, { maker, token: lower.token }),
    }));
    if (head === null) return null;
    const planned = planLowering(act, claim);
    // Its cut is before any pending request, so that it drops none.
    const cutBlock = claim.pendingSinceBlock === null ? head.toBlock : claim.pendingSinceBlock - 1;
    if (planned !== null) return send([planned], { ...head, toBlock: cutBlock });
    // Nothing to lower; a row records that the act was handled, so that it does not lower a later claim.
    const row = { amountUnits: claim.claimUnits, previousUnits: claim.claimUnits, basis: claim.basis };
    const noted = { ...row, maker: claim.maker, token: claim.token, preparedBy: 'operator' as const };
    await writer.tx(async (tx) => {
      const [settlement] = await number(tx, [{ ...noted, operatorSeq: act.operatorSeq }], head, NO_CHECKPOINT);
      await insertSettlements(tx, [settlement!]);
      await insertOutcomes(tx, [{ settlementNo: settlement!.settlementNo, outcome: 'abandoned' }], deps.nowMs());
    });
    logger.info(
      { maker: act.maker, token: act.lower.token },
      'a claim that was to be lowered is not above that amount',
    );
    return { settlements: [], txHash: null };
  }

  /** A checkpoint when one is due or settlements need it, and the settlements, unless some are in flight. Null when nothing is due. */
  async function settle(mayPrepare: boolean): Promise<SettleRound | null> {
    const sinceGeneration = await checkpointer.generation();
    // Compares both ways: a checkpoint with a future time was published before the clock was set back.
    const sinceMs = Math.abs(deps.nowMs() - (await checkpointer.publishedMs()));
    const isCheckpointDue = sinceMs >= deps.checkpointIntervalMs;
    if (!isCheckpointDue && (!mayPrepare || !(await maySettleAny(db.knex)))) return null;
    const emptyBudget = deps.emptyPerHour - (await countEmptySettlements(db.knex, deps.nowMs() - HOUR_MS));
    const isRipe = (one: PendingClaim, lastSettledMs: number | null): boolean =>
      isDue(one) && settlesFromMs(one, lastSettledMs, deps.pace) <= deps.nowMs();
    const plan = (view: PendingView): PlannedSettlement[] =>
      mayPrepare ? planSettlements({ ...view, batchMax: deps.batchMax, emptyBudget }) : [];
    const settledSinceMs = deps.nowMs() - longestWaitMs(deps.pace);
    const view = await readSettlerView(
      { ...deps, operator },
      { sinceGeneration, isCheckpointDue, settledSinceMs, isRipe, plan },
    );
    if (view === null) return null;
    operator = view.operator;
    if (view.operator.halted !== null) return null;
    if (view.crowded) logger.warn({ limit: CANDIDATES_MAX }, 'more withdrawals wait than one round looks at');
    if (view.planned.length === 0 && !isCheckpointDue) return null;
    return publish(view, await checkpointer.cut(view, deps.nowMs()));
  }

  function isDue(claim: { maker: Address; token: Address }, longestMs = Number.POSITIVE_INFINITY): boolean {
    const refused = refusals.get(claimKey(claim));
    return refused === undefined || monotonicMs() >= refused.lastMs + Math.min(backoffMs(refused.count), longestMs);
  }

  /** Makes the checkpoint and the settlements computed from it durable together, then sends the settlements. */
  async function publish(view: SettlerView, cut: NewCheckpoint): Promise<SettleRound> {
    const { checkpointSeq } = cut.head;
    const { planned } = view;
    const settlements = await checkpointer.commit(cut, (store) =>
      writer.tx(async (tx) => {
        await store(tx);
        if (planned.length === 0 || !(await stillHolds(tx, view))) return [];
        const numbered = await number(tx, planned, view.head, checkpointSeq);
        await insertSettlements(tx, numbered);
        return numbered;
      }),
    );
    logger.debug({ checkpointSeq, root: cut.head.root, settlements: settlements.length }, 'published a checkpoint');
    return { checkpointSeq, settlements, txHash: await broadcast(settlements, cut.head) };
  }

  /**
   * Whether the view still holds: no halt, nothing in suspense that concerns these withdrawals, and no new curve from a cut without these
   * withdrawals. A publication being prepared now holds its log's row, so waiting for that row waits for it, and later publications read
   * this generation first. A touch prolongs a curve that the view saw, or can't land.
   */
  async function stillHolds(tx: Transaction, view: SettlerView): Promise<boolean> {
    await waitForWriter(tx, 'publication');
    if ((await readOperatorState(tx, view.operator)).halted !== null) return false;
    const quarantined = await readQuarantined(tx);
    if (view.planned.some(({ token }) => quarantined.has(token))) return false;
    // An item that is being assigned now is seen, or its command sees these withdrawals.
    await waitForWriter(tx, 'operator');
    const open = await readConcerns(tx);
    if (view.planned.some((one) => concerns(open, one))) return false;
    for (const { index: market } of deps.markets) {
      const mark = view.publicationMarks[market] ?? { era: 0, seq: 0 };
      const since = await publicationsSince(tx, { market, mark, limit: PUBLICATIONS_MAX });
      const isOlder = ({ kind, cut }: Publication): boolean =>
        kind !== 'touch' && cut.generation < view.head.generation;
      if (since === null || since.some(isOlder)) {
        logger.info(
          { market, generation: view.head.generation },
          'withdrawals wait for the next round: a curve was prepared without them',
        );
        return false;
      }
    }
    return true;
  }

  /** Prepares and sends what needs no checkpoint. */
  async function send(
    planned: readonly PlannedSettlement[],
    head: GenerationRow,
  ): Promise<Pick<SettleRound, 'settlements' | 'txHash'>> {
    const settlements = await writer.tx(async (tx) => {
      const numbered = await number(tx, planned, head, NO_CHECKPOINT);
      await insertSettlements(tx, numbered);
      return numbered;
    });
    return { settlements, txHash: await broadcast(settlements, null, { isUrgent: true }) };
  }

  async function number(
    tx: Transaction,
    planned: readonly PlannedSettlement[],
    head: GenerationRow,
    checkpointSeq: number,
  ): Promise<Settlement[]> {
    const first = (await lastSettlementNo(tx)) + 1;
    const cut = { cutGeneration: head.generation, cutBlock: head.toBlock, checkpointSeq, preparedMs: deps.nowMs() };
    return planned.map((one, i) => ({ settlementNo: first + i, ...one, ...cut, txKey: `settle:${first}` }));
  }

  /**
   * Settlements that could not be archived are not signed; the next round sees that and computes them again. A lowering is urgent, because
   * it prevents a wrong payment, and is sent even if the archive fails.
   */
  async function broadcast(
    settlements: readonly Settlement[],
    checkpoint: CheckpointHead | null,
    { isUrgent = false } = {},
  ): Promise<Hex | null> {
    const isArchived = await archived(settlements, checkpoint, isUrgent);
    const [first] = settlements;
    if (first === undefined || !(isArchived || isUrgent)) return null;
    const { hash } = await outbox.send({
      txKey: first.txKey,
      to: deps.custodian,
      data: settleCalldata(settlements),
      gasLimit: settleGasLimit(settlements.length),
      validUntilSec: null,
    });
    logger.info({ txKey: first.txKey, count: settlements.length, hash }, 'sent settlements');
    return hash;
  }

  async function step(): Promise<void> {
    await round();
  }

  return {
    round,
    status: () => ({ blockedBy, archive: deps.archive?.archive.status() ?? null }),
    start: (signal) => startLoop(step, { name: 'settler', intervalMs: deps.pollIntervalMs, signal, logger }),
  };
}
