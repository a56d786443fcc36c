/** What a keeper's transactions cost, from receipts, and what they cost in the last hour. */
import type { Address, Hex } from '../../core/types.js';
import { toSafeInt } from '../../core/amounts.js';
import {
  insertCosts,
  readCosts,
  readUncosted,
  type CostRole,
  type TransactionCost,
} from '../../ledger/transactions/costs.js';
import type { Db, Transaction, Writer } from '../../ledger/types.js';
import { feeOf, readReceipts, type TxReceipt } from './receipts.js';
import type { Rpc } from './rpc.js';

export const HOUR_MS = 3_600_000;
/** Nonces asked for at a time. */
const PAGE = 50;
/** A nonce whose transactions all lack a receipt for so long was taken by another transaction. */
const GIVE_UP_MS = 120_000;

export interface CostsDeps {
  role: CostRole;
  db: Db;
  writer: Writer;
  rpc: Rpc;
  signer: Address;
  nowMs(): number;
  /** For intervals; a step of the wall clock must neither free nor lock the budget. */
  monotonicMs(): number;
  /** What becomes durable with them, in the same transaction. */
  also?(tx: Transaction, costs: readonly TransactionCost[]): Promise<void>;
}

export interface Costs {
  /** Stores the costs of transactions that were mined since, of nonces up to `lastNonce` if given; returns them. */
  collect(lastNonce?: number): Promise<TransactionCost[]>;
  /** Fees of the last hour. */
  spentWei(): bigint;
}

/** Costs of one signer; what earlier processes paid in the last hour counts too. */
export async function createCosts(deps: CostsDeps): Promise<Costs> {
  const { role, db, writer, rpc, signer, nowMs, monotonicMs } = deps;
  const startedMs = nowMs();
  /** What was paid, by the clock that does not step. */
  let recent = (await readCosts(db.knex, role, { signer, sinceMs: startedMs - HOUR_MS })).map(({ feeWei, seenMs }) => ({
    feeWei,
    atMs: monotonicMs() - Math.max(startedMs - seenMs, 0),
  }));
  /** When a nonce without a receipt was asked for first. */
  const askedMs = new Map<number, number>();

  async function collect(lastNonce = Number.MAX_SAFE_INTEGER): Promise<TransactionCost[]> {
    const rows = await readUncosted(db.knex, role, { signer, limit: PAGE, lastNonce });
    if (rows.length === 0) return [];
    const answers = await readReceipts(
      rpc,
      rows.map(({ hash }) => hash),
    );
    const nonces = [...new Set(rows.map((row) => row.nonce))];
    // Of the last one the page may lack replacements.
    if (rows.length === PAGE && nonces.length > 1) nonces.pop();
    // All are looked at, so that those without a receipt are given up at one time: a node may have pruned thousands.
    const costs = nonces.map((nonce) => costOf(nonce, rows, answers));
    const missing = costs.indexOf(null);
    // In nonce order, because the highest stored nonce says where to go on.
    const found = (missing === -1 ? costs : costs.slice(0, missing)) as TransactionCost[];
    if (found.length > 0) {
      await writer.tx(async (tx) => {
        await insertCosts(tx, role, found);
        await deps.also?.(tx, found);
      });
    }
    recent = [...recent, ...found.map(({ feeWei }) => ({ feeWei, atMs: monotonicMs() }))];
    for (const { nonce } of found) askedMs.delete(nonce);
    return found;
  }

  function costOf(
    nonce: number,
    rows: readonly { nonce: number; hash: Hex; txKey: string; sentMs: number }[],
    answers: readonly (TxReceipt | null)[],
  ): TransactionCost | null {
    const seenMs = nowMs();
    for (const [i, { hash, txKey, ...row }] of rows.entries()) {
      if (row.nonce !== nonce) continue;
      const receipt = answers[i] ?? null;
      if (receipt === null) continue;
      const blockNumber = toSafeInt(BigInt(receipt.blockNumber));
      const succeeded = BigInt(receipt.status) === 1n;
      return { signer, nonce, hash, txKey, blockNumber, ...feeOf(receipt), succeeded, seenMs };
    }
    const firstMs = askedMs.get(nonce) ?? monotonicMs();
    askedMs.set(nonce, firstMs);
    if (monotonicMs() - firstMs < GIVE_UP_MS) return null;
    return { signer, nonce, hash: '0x', txKey: '', blockNumber: 0, gasUsed: 0, feeWei: 0n, succeeded: false, seenMs };
  }

  return {
    collect,
    spentWei() {
      const sinceMs = monotonicMs() - HOUR_MS;
      recent = recent.filter(({ atMs }) => atMs > sinceMs);
      return recent.reduce((sum, cost) => sum + cost.feeWei, 0n);
    },
  };
}
