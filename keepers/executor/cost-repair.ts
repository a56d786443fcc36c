/** Corrects the stored costs of orders' transactions when the chain drops one, and when no endpoint had its receipt. */
import { dropReverts, insertPresumedRevert, insertReverts, readUnfilledAt } from '../../ledger/swaps/swap-wallets.js';
import { UNKNOWN_HASH, type TransactionCost } from '../../ledger/transactions/costs.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import type { Transaction } from '../../ledger/types.js';
import { createCostRepair } from '../chain/cost-repair.js';
import { createUnknownCosts } from '../chain/unknown-costs.js';
import type { ExecutorDeps } from './deps.js';
import { sentOf } from './risk.js';

interface OrderCostRepair {
  /**
   * Deletes stored costs and reverts of transactions that the chain has dropped, of all keys, as `keepers/chain/cost-repair.ts` does. Missing
   * receipts are requested again from time to time. Returns whether anything was deleted.
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

export function createOrderCostRepair({
  db,
  writer,
  rpc,
  nowMs,
  monotonicMs = nowMs,
  logger,
}: Pick<ExecutorDeps, 'db' | 'writer' | 'rpc' | 'nowMs' | 'monotonicMs' | 'logger'>): OrderCostRepair {
  const costs = createCostRepair({ role: 'executor', db, writer, rpc, logger, also: dropReverts });
  const unknown = createUnknownCosts({
    ...{ role: 'executor', db, writer, rpc, monotonicMs },
    async also(tx, { signer, nonce }, found) {
      if (found === null && (await readUnfilledAt(tx, signer, nonce)) !== null) return;
      await dropReverts(tx, signer, [nonce]);
      if (found !== null) await insertReverts(tx, [found]);
    },
  });
  return {
    async repair(finalBlock) {
      const dropped = await costs.repair(finalBlock);
      for (const { signer, nonce, hash } of await unknown.find())
        logger.info({ signer, nonce, hash }, 'a receipt was found that nobody had');
      return dropped.length > 0;
    },
  };
}
