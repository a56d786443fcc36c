/** Corrects the stored costs of orders' transactions when the chain drops one, and when no endpoint had its receipt. */
import type { Address } from '../../core/types.js';
import {
  dropReverts,
  insertPresumedRevert,
  insertReverts,
  readCostedSigners,
  readReopened,
  readUnfilledAt,
} from '../../ledger/swaps/swap-wallets.js';
import { UNKNOWN_HASH, dropCosts, readCostsAfter, type TransactionCost } from '../../ledger/transactions/costs.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import type { Transaction } from '../../ledger/types.js';
import { createUnknownCosts, endsOf } from '../chain/unknown-costs.js';
import type { ExecutorDeps } from './deps.js';
import { sentOf } from './risk.js';

/** Nonces handled at a time. */
const PAGE = 50;
/** Newest nonces of each key that are checked again after a start. */
const AGAIN_AFTER_START = 64;

interface CostRepair {
  /**
   * Deletes stored costs and reverts of transactions that the chain has dropped: at once where their keeper has seen it; for all others
   * their receipts are read again once they are at `finalBlock` or before. A cost of a key that is no longer in use stays while no endpoint
   * has another receipt. Missing receipts are requested again from time to time. Returns whether anything was deleted.
   */
  repair(finalBlock: number): Promise<boolean>;
}

/**
 * Charges transactions without a receipt to the owners of their orders, each by the most gas that it may have burnt; a receipt that is
 * found later corrects it. A transaction whose fill is in the ledger burnt nothing.
 */
export async function presumeReverts(tx: Transaction, costs: readonly TransactionCost[]): Promise<void> {
  for (const { signer, nonce, hash, seenMs } of costs) {
    if (hash !== UNKNOWN_HASH) continue;
    const sent = await readUnfilledAt(tx, signer, nonce);
    if (sent === null) continue;
    const head = await lastGeneration(tx);
    const { gasLimit } = sentOf(sent.raw);
    await insertPresumedRevert(tx, sent, { gasUsed: gasLimit, blockNumber: head?.toBlock ?? 0, timeMs: seenMs });
  }
}

export function createCostRepair({
  db,
  writer,
  rpc,
  nowMs,
  monotonicMs = nowMs,
  logger,
}: Pick<ExecutorDeps, 'db' | 'writer' | 'rpc' | 'nowMs' | 'monotonicMs' | 'logger'>): CostRepair {
  /** Up to these nonces the stored costs are those of the final chain. */
  const confirmed = new Map<Address, number>();
  let hasDropped = false;
  const unknown = createUnknownCosts({
    ...{ role: 'executor', db, writer, rpc, nowMs, monotonicMs },
    async also(tx, { signer, nonce }, found) {
      if (found === null && (await readUnfilledAt(tx, signer, nonce)) !== null) return;
      await dropReverts(tx, signer, [nonce]);
      if (found !== null) await insertReverts(tx, [found]);
    },
  });

  async function drop(signer: Address, from: number, why: string): Promise<void> {
    const dropped = await writer.tx(async (tx) => {
      const costs = await dropCosts(tx, 'executor', { signer, from });
      const nonces = costs.map(({ nonce }) => nonce);
      await dropReverts(tx, signer, nonces);
      return nonces;
    });
    hasDropped = true;
    logger.warn({ signer, nonces: dropped }, why);
  }

  /** Checks nonces that have become final, each once. */
  async function confirm(signer: Address, lastNonce: number, toBlock: number): Promise<void> {
    const after = Math.min(confirmed.get(signer) ?? lastNonce - AGAIN_AFTER_START, lastNonce);
    const costs = await readCostsAfter(db.knex, 'executor', { signer, after, toBlock, limit: PAGE });
    if (costs.length === 0) return void confirmed.set(signer, after);
    const ends = await endsOf({ db, rpc }, costs);
    for (const [i, cost] of costs.entries()) {
      const end = ends[i];
      // Without any receipt the stored cost stays: the nonce is used, and nothing shows that another transaction used it.
      const isSame =
        end === null ||
        end === undefined ||
        (end.hash === cost.hash && end.blockNumber === cost.blockNumber && end.gasUsed === cost.gasUsed);
      if (!isSame) return drop(signer, cost.nonce, 'the chain has transactions of orders elsewhere than noted');
      confirmed.set(signer, cost.nonce);
    }
  }

  return {
    async repair(finalBlock) {
      hasDropped = false;
      for (const { signer, nonce } of await readReopened(db.knex)) {
        await drop(signer, nonce, 'the chain has dropped transactions of orders');
        confirmed.set(signer, Math.min(confirmed.get(signer) ?? nonce - 1, nonce - 1));
      }
      for (const { signer, lastNonce } of await readCostedSigners(db.knex))
        await confirm(signer, lastNonce, finalBlock);
      for (const { signer, nonce, hash } of await unknown.find())
        logger.info({ signer, nonce, hash }, 'a receipt was found that nobody had');
      return hasDropped;
    },
  };
}
