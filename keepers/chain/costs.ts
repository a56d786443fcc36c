/** What a keeper's transactions cost, from receipts, and what they cost in the last hour. */
import { Transaction as SignedTransaction } from 'ethers';
import type { Logger } from 'pino';
import type { Address, Hex } from '../../core/types.js';
import {
  UNKNOWN_HASH,
  insertCosts,
  readCosts,
  readUncosted,
  type CostRole,
  type TransactionCost,
} from '../../ledger/transactions/costs.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readSignedAt } from '../../ledger/transactions/outbox.js';
import type { Db, Transaction, Writer } from '../../ledger/types.js';
import { MAX_REORG_BLOCKS } from '../watcher/reconcile.js';
import { createCostRepair } from './cost-repair.js';
import { readReceipts, saidBy, type TxReceipt } from './receipts.js';
import { revertReason } from './reverts.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from './rpc.js';
import { createUnknownCosts } from './unknown-costs.js';

export const HOUR_MS = 3_600_000;
/** Nonces asked for at a time. */
const PAGE = 50;
/** When all transactions of a used nonce lack a receipt for so long, another transaction is taken to have used it. */
const GIVE_UP_MS = 120_000;
/** When the endpoint in use has shown no receipt of a used nonce for so long, all are asked: it may hide them, or lag. */
const HIDDEN_MS = 5_000;
/** How long until all are asked again, at most; twice as long each time that nobody has one. */
const MAX_SURVEY_MS = 40_000;
/** How often receipts of transactions that have become final are read again. */
const CONFIRM_MS = 60_000;
const NO_BLOCK = -1;

export interface CostsDeps {
  role: CostRole;
  db: Db;
  writer: Writer;
  rpc: Rpc;
  signer: Address;
  nowMs(): number;
  /** For intervals; a step of the wall clock must neither free nor lock the budget. */
  monotonicMs(): number;
  logger: Logger;
  /** Further writes in the same transaction. */
  also?(tx: Transaction, costs: readonly TransactionCost[]): Promise<void>;
}

export interface Costs {
  /** Stores the costs of transactions that were mined since, of nonces up to `lastNonce` if given; returns them. */
  collect(lastNonce?: number): Promise<TransactionCost[]>;
  /**
   * Stores costs of nonces that were given up and whose receipts have come to light since, whichever key of the role signed them. Asks now and then.
   */
  findUnknown(): Promise<void>;
  /**
   * Corrects the stored costs of this signer that a reorganisation changed: at once those whose transactions are sent again, and now and then
   * those in blocks that have become final.
   */
  repair(): Promise<void>;
  /** Fees of the last hour. Of a nonce without a receipt it is the most that was bid for it: a limit must not rest on who hides one. */
  spentWei(): bigint;
}

/** Costs of one signer; the last hour's costs of earlier processes are included. */
export async function createCosts(deps: CostsDeps): Promise<Costs> {
  const { role, db, writer, rpc, signer, nowMs, monotonicMs, logger } = deps;
  const startedMs = nowMs();
  /** Fees paid, by monotonic time. */
  let recent: { nonce: number; feeWei: bigint; atMs: number }[] = [];
  await countAll(await readCosts(db.knex, role, { signer, sinceMs: startedMs - HOUR_MS }));
  /** When a nonce without a receipt was first asked for. */
  const askedMs = new Map<number, number>();

  /** When costs were first noted that were deleted since, because the chain has them otherwise: that is when they were paid. */
  const correctedMs = new Map<number, number>();
  const repair = createCostRepair({ role, db, writer, rpc, logger, only: signer });
  let confirmedMs = Number.NEGATIVE_INFINITY;
  let survey = { lastMs: Number.NEGATIVE_INFINITY, pauseMs: HIDDEN_MS };

  const isGivenUp = (firstMs: number): boolean => monotonicMs() - firstMs >= GIVE_UP_MS;

  /** Whether the others are to be asked, too, for receipts that the endpoint in use does not have. */
  function isSurvey(nonces: readonly number[]): boolean {
    const waitedMs = monotonicMs() - Math.min(...nonces.map((nonce) => askedMs.get(nonce) ?? monotonicMs()));
    return waitedMs >= GIVE_UP_MS || (waitedMs >= HIDDEN_MS && monotonicMs() - survey.lastMs >= survey.pauseMs);
  }

  async function collect(lastNonce = Number.MAX_SAFE_INTEGER): Promise<TransactionCost[]> {
    const rows = await readUncosted(db.knex, role, { signer, limit: PAGE, lastNonce });
    if (rows.length === 0) return [];
    const isLast = isSurvey(rows.map(({ nonce }) => nonce));
    const answers = await readReceipts(
      rpc,
      rows.map(({ hash }) => hash),
      { isLast },
    );
    if (isLast) {
      const isFound = answers.some((receipt) => receipt !== null);
      const pauseMs = isFound ? HIDDEN_MS : Math.min(2 * survey.pauseMs, MAX_SURVEY_MS);
      survey = { lastMs: monotonicMs(), pauseMs };
    }
    const nonces = [...new Set(rows.map((row) => row.nonce))];
    // The page may lack replacements of its last nonce.
    if (rows.length === PAGE && nonces.length > 1) nonces.pop();
    // All are checked in one pass, so that those without a receipt are given up together: a node may have pruned thousands.
    const costs = nonces.map((nonce) => costOf(nonce, rows, answers));
    const missing = costs.indexOf(null);
    // In nonce order without gaps, because the next call continues after the highest stored nonce.
    const found = await explained((missing === -1 ? costs : costs.slice(0, missing)) as TransactionCost[]);
    if (found.length > 0) {
      await writer.tx(async (tx) => {
        await insertCosts(tx, role, found);
        await deps.also?.(tx, found);
      });
    }
    await countAll(found);
    for (const { nonce } of found) {
      askedMs.delete(nonce);
      correctedMs.delete(nonce);
    }
    return found;
  }

  /** With why each reverted, as far as the endpoint in use says it; a page bounds how many are asked for. */
  async function explained(costs: readonly TransactionCost[]): Promise<TransactionCost[]> {
    return Promise.all(
      costs.map(async (cost) => {
        if (cost.succeeded || cost.hash === UNKNOWN_HASH) return cost;
        const reason = await revertReason(rpc, cost.hash, cost.blockNumber);
        return reason === null ? cost : { ...cost, revertReason: reason };
      }),
    );
  }

  async function countAll(costs: readonly TransactionCost[]): Promise<void> {
    for (const cost of costs) {
      const isUnknown = cost.hash === UNKNOWN_HASH;
      count(cost, isUnknown ? mostOf(await readSignedAt(db.knex, signer, cost.nonce, nowMs() - HOUR_MS)) : cost.feeWei);
    }
  }

  function count({ nonce, seenMs }: TransactionCost, feeWei: bigint): void {
    const atMs = monotonicMs() - Math.max(nowMs() - seenMs, 0);
    recent.push({ nonce, feeWei, atMs });
  }

  function costOf(
    nonce: number,
    rows: readonly { nonce: number; hash: Hex; txKey: string; sentMs: number }[],
    answers: readonly (TxReceipt | null)[],
  ): TransactionCost | null {
    const seenMs = correctedMs.get(nonce) ?? nowMs();
    for (const [i, { hash, txKey, ...row }] of rows.entries()) {
      if (row.nonce !== nonce) continue;
      const receipt = answers[i] ?? null;
      if (receipt === null) continue;
      return { signer, nonce, hash, txKey, ...saidBy(receipt), seenMs };
    }
    const firstMs = askedMs.get(nonce) ?? monotonicMs();
    askedMs.set(nonce, firstMs);
    if (!isGivenUp(firstMs)) return null;
    const nothing = { txKey: '', blockNumber: 0, gasUsed: 0, feeWei: 0n, succeeded: false };
    return { signer, nonce, hash: UNKNOWN_HASH, ...nothing, seenMs };
  }

  const unknown = createUnknownCosts({ role, db, writer, rpc, monotonicMs });

  /** What was deleted of blocks that have become final. An endpoint that does not answer is no error: it is asked again later. */
  async function confirm(): Promise<TransactionCost[]> {
    const head = await lastGeneration(db.knex);
    if (head === null || monotonicMs() - confirmedMs < CONFIRM_MS) return [];
    confirmedMs = monotonicMs();
    try {
      return await repair.repair(head.toBlock - MAX_REORG_BLOCKS);
    } catch (error) {
      if (error instanceof RpcUnavailableError || error instanceof RpcResponseError) return [];
      throw error;
    }
  }

  async function correct(): Promise<void> {
    // The first asks no endpoint anything.
    const dropped = [...(await repair.repair(NO_BLOCK)), ...(await confirm())];
    for (const { nonce, seenMs } of dropped) {
      correctedMs.set(nonce, seenMs);
      recent = recent.filter((one) => one.nonce !== nonce);
    }
    if (correctedMs.size === 0) return;
    while ((await collect()).length > 0);
    for (const [nonce, seenMs] of correctedMs) if (nowMs() - seenMs >= HOUR_MS) correctedMs.delete(nonce);
  }

  return {
    collect,
    repair: correct,
    async findUnknown() {
      // What was sent before the last hour was no part of it, however late it comes to light.
      for (const { nonce, feeWei } of (await unknown.find()).filter((cost) => cost.signer === signer))
        recent = recent.map((one) => (one.nonce === nonce ? { ...one, feeWei } : one));
    },
    spentWei() {
      const sinceMs = monotonicMs() - HOUR_MS;
      recent = recent.filter(({ atMs }) => atMs > sinceMs);
      return recent.reduce((sum, cost) => sum + cost.feeWei, 0n);
    },
  };
}

/** The most in wei that any of these signed transactions may pay for its gas. */
function mostOf(signed: readonly Hex[]): bigint {
  const bids = signed.map((raw) => {
    const { gasLimit, maxFeePerGas, gasPrice } = SignedTransaction.from(raw);
    return gasLimit * (maxFeePerGas ?? gasPrice ?? 0n);
  });
  return bids.reduce((most, one) => (one > most ? one : most), 0n);
}
