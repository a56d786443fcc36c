import { usesOwn } from '../../core/swap/paths.js';
import { termsGas } from '../../core/swap/pricing.js';
import type { Address } from '../../core/types.js';
import { groupBy } from '../../ledger/db/lists.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import {
  changeAttempt,
  changeRefusal,
  endedKeys,
  insertAttempt,
  insertOutcome,
  readAttempts,
  listPending,
  readPending,
  readTransactions,
  MOST_TURNS,
  type PendingOrder,
  type SwapAttempt,
  type SwapOutcome,
} from '../../ledger/swaps/swap-log.js';
import { holdPending } from '../../ledger/swaps/swap-cancellations.js';
import { readUndecidedSales } from '../../ledger/swaps/swap-wallets.js';
import type { GenerationRow, Transaction } from '../../ledger/types.js';
import { codeAt, type Head } from '../../liquidity/eth.js';
import { checkGasIn, decodeRoute } from '../../liquidity/planner.js';
import { UnwantedError } from '../chain/outbox.js';
import { MAX_REORG_BLOCKS } from '../watcher/reconcile.js';
import { startLoop, type Loop } from '../loop.js';
import type { Filling } from './covered.js';
import { createOrderCosts } from './costs.js';
import type { ExecutorDeps } from './deps.js';
import { createEconomics, type Terms } from './economics.js';
import { EXECUTOR_UNFUNDED, NONCE_USED, TOKEN_QUARANTINED } from './refusals.js';
import { createFillings } from './fillings.js';
import { createLimitOrders } from './limit-orders.js';
import { readNewcomers } from './newcomers.js';
import { withNeededPermit } from './permits.js';
import { riskOf, sentAs } from './risk.js';
import { isNonceUsedIn } from './simulate.js';
import { orderCalldata } from './transaction.js';
import { createTidy } from './tidy.js';
import { createTurns } from './turns.js';
import { walletsOf, type Wallet } from './wallets.js';

export interface Executor {
  start(signal: AbortSignal): Loop;
  /** Handles pending orders once: first new ones, then those that were not handled for the longest time. */
  round(): Promise<void>;
}

/** What was tried for an order. */
interface Progress {
  attempts: readonly SwapAttempt[];
  /** Attempts of which a transaction was signed. */
  signed: number;
  /** A transaction is signed, and the chain has not used its nonce yet. */
  isUnderWay: boolean;
  /** Key of the newest attempt if nothing was signed for it, for example because the node did not answer. */
  begun: string | null;
}

const ORDERS_PER_ROUND = 128;
/** Limit orders beside them, which wait for weeks and must not delay the others. */
const LIMITS_PER_ROUND = 32;
/** No limit order is begun so long after the first one of a round, not even another one of the same owner. */
const LIMITS_MS = 500;
/** Owners whose orders are handled at the same time. */
const CONCURRENCY = 8;
/** Most transactions that may be unmined, and how many of those limit orders may use; further orders wait for the next block. */
const MAX_UNMINED = 48;
const MAX_UNMINED_LIMITS = 16;
/** Limit orders are sent again without an end, but no more often than `maxSends` in this time. */
const SENDS_MS = 86_400_000;
/** Nothing is sent for an order that ends within so long of the newest block, two blocks: it could land behind its last second, and revert. */
const LATE_SEC = 4;
/**
 * Executes signed orders. Whether one was filled is decided by the settler's event in a durable generation alone; that it is not filled
 * twice, by Permit2's nonce. An order that is not filled ends as expired when a scanned block is past its last second, and as failed only
 * when no transaction of it is under way and none will be sent.
 */
export function createExecutor(deps: ExecutorDeps): Executor {
  const { db, writer, outbox, rpc, marketData, logger, ordersPerRound = ORDERS_PER_ROUND } = deps;
  const { monotonicMs = deps.nowMs } = deps;
  const economics = createEconomics(deps);
  const costs = createOrderCosts(deps);
  const limits = createLimitOrders(deps);
  const turns = createTurns();
  const tidy = createTidy({ db, writer, nowMs: deps.nowMs, monotonicMs });
  const { transactionsOf, trustedOf } = createFillings(deps, economics);
  /** Block at which an order was last tried. */
  const tried = new Map<string, number>();
  /** Unmined transactions at this point of the round. */
  let unmined = 0;

  async function round(): Promise<void> {
    // Read before the orders, so that each fill in this generation is seen.
    const generation = await lastGeneration(db.knex);
    const final = generation === null ? 0 : generation.toBlock - MAX_REORG_BLOCKS;
    // Before orders are removed, since the value of their fees can't be found out later.
    await note(() => costs.noteFills(final));
    await tidy(final);
    const pending = await takeTurns();
    if (generation === null) return;
    // A transaction of an order that ended meanwhile is in flight again where the block in which it reverted was lost.
    await outbox.resume(toSec(generation.blockTimestampMs), (keys) => endedKeys(db.knex, keys));
    await note(() => costs.collect(final));
    if (pending.length === 0 && !economics.isDue()) return;
    const head = await marketData.head();
    await economics.noteFunds(head);
    if (pending.length === 0) return;
    unmined = outbox.status().unminedCount;
    const undecided = await readUndecidedSales(db.knex);
    const newcomers = await readNewcomers(deps, undecided);
    const wallets = walletsOf(pending, undecided, newcomers);
    const inTurn = async (some: readonly PendingOrder[], isDue: () => boolean): Promise<void> => {
      const next = groupBy(some, ({ order }) => order.owner).entries();
      // Each takes the next owner from the same list.
      const work = async (): Promise<void> => {
        for (const [owner, orders] of next) {
          for (const one of orders) {
            if (!isDue()) return;
            turns.note(one.order.id);
            await tryToAdvance(one, wallets.get(owner)!, generation, head);
          }
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, work));
    };
    await inTurn(
      pending.filter(({ quote }) => !quote.isLimit),
      () => true,
    );
    const lastMs = monotonicMs() + LIMITS_MS;
    await inTurn(
      pending.filter(({ quote }) => quote.isLimit),
      () => monotonicMs() < lastMs,
    );
  }

  /** A failure to read costs must not block orders of owners without mined transactions. */
  async function note(costsOrFees: () => Promise<void>): Promise<void> {
    await costsOrFees().catch((error: unknown) => logger.warn({ err: error }, 'what orders cost could not be noted'));
  }

  /** An error of one order must not block the others. */
  async function tryToAdvance(one: PendingOrder, wallet: Wallet, generation: GenerationRow, head: Head): Promise<void> {
    try {
      await advance(one, wallet, generation, head);
    } catch (error) {
      logger.warn({ orderId: one.order.id, err: error }, 'an order could not be looked after');
    }
  }

  /**
   * The orders of this round. Each of the others is looked at, the oldest first. Limit orders may be cut off by the time, so they are in the
   * order of their turns: one that was cut off comes before all that were looked at since.
   */
  async function takeTurns(): Promise<PendingOrder[]> {
    const quoted = await listPending(db.knex, MOST_TURNS, false);
    const limited = await listPending(db.knex, MOST_TURNS, true);
    forget(new Set([...quoted, ...limited].map(({ orderId }) => orderId)));
    turns.begin();
    const turn = turns.select(limited, LIMITS_PER_ROUND);
    const place = new Map(turn.map((orderId, i) => [orderId, i]));
    const placeOf = ({ order }: PendingOrder): number => place.get(order.id) ?? -1;
    const pending = await readPending(db.knex, [...turns.select(quoted, ordersPerRound), ...turn]);
    return pending.sort((a, b) => placeOf(a) - placeOf(b));
  }

  function forget(ids: ReadonlySet<string>): void {
    for (const id of tried.keys()) if (!ids.has(id)) tried.delete(id);
    limits.keep(ids);
    turns.keep(ids);
  }

  /** One step of one order that is not filled: end it, wait, or try to execute it. */
  async function advance(one: PendingOrder, wallet: Wallet, generation: GenerationRow, head: Head): Promise<void> {
    const { order, quote } = one;
    const isPast = toSec(generation.blockTimestampMs) > quote.validToSec;
    const progress = await progressOf(order.id);
    if (isPast) return end(one, generation, 'expired', expiryReason(progress.attempts));
    if (progress.isUnderWay) return;
    const isLate = head.timestampSec + LATE_SEC >= quote.validToSec || toSec(deps.nowMs()) > quote.validToSec;
    const waits = deps.quarantined?.();
    if (waits !== undefined && (waits.has(quote.sellToken) || waits.has(quote.buyToken)))
      return noteRefusal(one, progress.attempts, TOKEN_QUARANTINED);
    if (!deps.readiness().ready || isLate || tried.get(order.id) === head.number) return;
    // A sent order may take the same funds as this one; wait until it is mined.
    if (wallet.underWay.some(({ sellToken }) => sellToken === quote.sellToken)) return;
    tried.set(order.id, head.number);
    await execute(one, wallet, progress, generation, head);
  }

  const isCode = async (owner: Address): Promise<boolean> => (await codeAt(rpc, owner)) !== '0x';

  async function progressOf(orderId: string): Promise<Progress> {
    const progress: Progress = {
      attempts: await readAttempts(db.knex, orderId),
      signed: 0,
      isUnderWay: false,
      begun: null,
    };
    for (const attempt of progress.attempts) {
      progress.begun = null;
      if (attempt.result !== 'sent') continue;
      const transactions = await readTransactions(db.knex, attempt.txKey);
      if (transactions.length === 0) progress.begun = attempt.txKey;
      else progress.signed += 1;
      if (transactions.some(({ isFinished }) => !isFinished)) progress.isUnderWay = true;
    }
    return progress;
  }

  async function execute(
    listed: PendingOrder,
    wallet: Wallet,
    progress: Progress,
    generation: GenerationRow,
    head: Head,
  ): Promise<void> {
    const { isLimit } = listed.quote;
    if (unmined >= (isLimit ? MAX_UNMINED_LIMITS : MAX_UNMINED)) return;
    const { attempts } = progress;
    const signed = isLimit ? sentSince(attempts, deps.nowMs() - SENDS_MS) : progress.signed;
    if (isLimit && !(await isLimitReached(listed, attempts, generation, head))) return;
    const needed = await withNeededPermit(rpc, listed);
    const { underWay, owner } = wallet;
    const hasCode = await isCode(owner);
    const checkGas = checkGasIn(needed.quote.route) + termsGas(deps.gasModel, needed.quote);
    const risk = await riskOf(deps, { owner, isCode: hasCode, checkGas, hasPermit: needed.permit !== null, underWay });
    const now = isLimit ? await limits.requoted(needed, head, risk) : { order: needed };
    if ('waits' in now) return noteRefusal(needed, attempts, now.waits);
    const one = now.order;
    const { fillings, refusal } = await transactionsOf(one, risk, head);
    if (refusal === null) {
      if (signed >= deps.maxSends) {
        const message = `${signed} transactions were sent, and none filled the order`;
        if (isLimit)
          return noteRefusal(one, attempts, { code: 'TOO_MANY_ATTEMPTS', message: `${message} within a day` });
        return end(one, generation, 'failed', { code: 'TOO_MANY_ATTEMPTS', message });
      }
      const trusted = await trustedOf(one, fillings, risk, head);
      if ('code' in trusted) return noteRefusal(one, attempts, trusted);
      const paid = await economics.firstPaid(one.quote, trusted, hasCode, head);
      if ('code' in paid) return noteRefusal(one, attempts, paid);
      if (!economics.isFunded()) return noteRefusal(one, attempts, EXECUTOR_UNFUNDED);
      if (risk.judge(paid) === 'wait') return;
      const sent = sentAs(paid.data, paid.gasLimit);
      const turn = risk.isNewcomer ? wallet.newcomers.take(sent) : 'send';
      if (turn === 'wait') return;
      if (turn !== 'send') return noteRefusal(one, attempts, turn);
      wallet.underWay.push({ sellToken: one.quote.sellToken, ...sent });
      return send(one, progress, paid);
    }
    if (isLimit) limits.rest(one.order.id);
    if (refusal.code === 'NONCE_USED') return waitOrFail(one, generation);
    await noteRefusal(one, attempts, refusal);
    if (refusal.isFinal) await end(one, generation, 'failed', refusal);
  }

  /** Whether the market brings what a limit order was signed for, and its owner has what is to be sold; otherwise notes why not. */
  async function isLimitReached(
    one: PendingOrder,
    attempts: readonly SwapAttempt[],
    generation: GenerationRow,
    head: Head,
  ): Promise<boolean> {
    if (limits.isResting(one.order.id)) return false;
    const unfunded = await limits.unfunded(one, attempts);
    if (unfunded !== null) {
      await noteRefusal(one, attempts, unfunded);
      if (unfunded.isOver) await end(one, generation, 'failed', unfunded);
      return false;
    }
    // Without its approval, which may be needed no more; asked with it later.
    const now = await limits.requoted({ ...one, permit: null }, head);
    if ('waits' in now) await noteRefusal(one, attempts, now.waits);
    return !('waits' in now);
  }

  /** Our own transaction may have used the nonce, in a block that the ledger has not scanned yet: its fill is there then. */
  async function waitOrFail(one: PendingOrder, generation: GenerationRow): Promise<void> {
    const data = await orderCalldata(one, decodeRoute(one.quote.route), deps.settler, marketData.venueOf, 'whole');
    const call = { from: outbox.signer, to: deps.settler, data, maxGas: 2n * deps.maxGas };
    const block = { number: generation.toBlock, hash: generation.blockHash };
    if (await isNonceUsedIn(rpc, call, block)) await end(one, generation, 'failed', NONCE_USED);
  }

  /** The attempt is durable before anything of it is signed. An attempt for which nothing was signed is reused. */
  async function send(
    { order, quote }: PendingOrder,
    { attempts, begun }: Progress,
    { data, parts, gasLimit, maxFeeWei }: Terms & Filling,
  ): Promise<void> {
    unmined += 1;
    const attemptNo = nextNo(attempts);
    const txKey = begun ?? `order:${order.id}:${attemptNo}`;
    const isOnCurve = parts.some(({ id }) => usesOwn(id));
    const attempt = { orderId: order.id, attemptNo, timeMs: deps.nowMs(), result: 'sent' as const, txKey, isOnCurve };
    const isHeld = await writer.tx(async (tx) => {
      const held = await holdPending(tx, order.id);
      if (held) await (begun === null ? insertAttempt(tx, attempt) : changeAttempt(tx, txKey, isOnCurve));
      return held;
    });
    // Its owner has cancelled it meanwhile, which is possible until it is signed.
    if (!isHeld) return;
    const isWanted = (tx: Transaction): Promise<boolean> => holdPending(tx, order.id);
    const validUntilSec = quote.isLimit ? limits.untilSec(quote) : quote.validToSec;
    const terms = { gasLimit, maxFeeWei, validUntilSec, isWanted };
    try {
      const sent = await outbox.send({ txKey, to: deps.settler, data, ...terms });
      logger.info({ orderId: order.id, txKey, hash: sent.hash }, 'sent an order');
    } catch (error) {
      if (!(error instanceof UnwantedError)) throw error;
    }
  }

  /** Stored once per reason, because an order is tried at every block; of a limit order, which may wait for weeks, the newest reason alone. */
  async function noteRefusal(
    { order, quote }: PendingOrder,
    attempts: readonly SwapAttempt[],
    { code, message }: { code: string; message: string },
  ): Promise<void> {
    const newest = attempts.at(-1);
    const isSame = newest?.result === 'refused' && newest.code === code;
    if (isSame && (!quote.isLimit || newest.message === message)) return;
    const refused = { orderId: order.id, timeMs: deps.nowMs(), result: 'refused' as const, code, message };
    if (quote.isLimit && newest?.result === 'refused') {
      const { attemptNo } = newest;
      return writer.tx((tx) => changeRefusal(tx, { ...refused, attemptNo }));
    }
    await writer.tx((tx) => insertAttempt(tx, { ...refused, attemptNo: nextNo(attempts) }));
  }

  async function end(
    { order }: PendingOrder,
    { generation }: GenerationRow,
    status: SwapOutcome['status'],
    { code, message }: { code: string; message: string },
  ): Promise<void> {
    const outcome = { orderId: order.id, status, code, message, generation, timeMs: deps.nowMs() };
    await writer.tx((tx) => insertOutcome(tx, outcome));
    logger.info({ orderId: order.id, status, code }, 'an order ended unfilled');
  }

  return {
    round,
    start: (signal) => startLoop(round, { name: 'executor', intervalMs: deps.pollIntervalMs, signal, logger }),
  };
}

/** How many attempts sent something since then. */
const sentSince = (attempts: readonly SwapAttempt[], sinceMs: number): number =>
  attempts.filter(({ result, timeMs }) => result === 'sent' && timeMs >= sinceMs).length;

const nextNo = (attempts: readonly SwapAttempt[]): number => (attempts.at(-1)?.attemptNo ?? 0) + 1;

/** The last reason why it was not executed. */
function expiryReason(attempts: readonly SwapAttempt[]): { code: string; message: string } {
  const newest = attempts.at(-1);
  if (newest?.result === 'refused') {
    return { code: newest.code, message: `${newest.message}; it stayed so until the order expired` };
  }
  return { code: 'EXPIRED', message: 'The order was not executed before it expired' };
}

/** Block times are whole seconds. */
function toSec(timestampMs: number): number {
  return Math.floor(timestampMs / 1_000);
}
