/** Makes durable what mined transactions of orders cost and brought. */
import { worthWei } from '../../core/swap/pricing.js';
import { insertFee, readUnvaluedFills } from '../../ledger/swaps/swap-costs.js';
import { insertReverts } from '../../ledger/swaps/swap-wallets.js';
import type { TransactionCost } from '../../ledger/transactions/costs.js';
import { createCosts, type Costs } from '../chain/costs.js';
import type { ExecutorDeps } from './deps.js';

interface OrderCosts {
  /**
   * Notes what was mined since, whosever order it was for, and reverts with it. Until that is done a transaction counts as one that may still
   * revert.
   */
  collect(): Promise<void>;
  /** Notes what the fees of fills were worth that the ledger has and of which that is not known, some of them per call. */
  noteFills(): Promise<void>;
}

/** Fills that are valued at once. */
const FILLS_PER_ROUND = 64;

export function createOrderCosts(deps: ExecutorDeps): OrderCosts {
  const { db, writer, rpc, outbox, marketData, nowMs, monotonicMs = nowMs, logger } = deps;
  let costs: Costs | null = null;

  function report(collected: readonly TransactionCost[]): void {
    for (const { txKey, hash, gasUsed, succeeded } of collected) {
      if (!succeeded && gasUsed > 0) logger.warn({ txKey, hash, gasUsed }, 'an order reverted');
    }
  }

  return {
    async collect() {
      const { signer } = outbox;
      const also = insertReverts;
      costs ??= await createCosts({ role: 'executor', db, writer, rpc, signer, nowMs, monotonicMs, also });
      // A page at a time: after a long pause there may be several.
      for (let found = await costs.collect(); found.length > 0; found = await costs.collect()) report(found);
    },
    async noteFills() {
      const fills = await readUnvaluedFills(db.knex, FILLS_PER_ROUND);
      if (fills.length === 0) return;
      const head = await marketData.head();
      for (const { feeUnits, ...fill } of fills) {
        const price = await marketData.gasPrice(fill.token, head, Math.floor(nowMs() / 1_000));
        const feeWei = price === null ? 0n : worthWei(feeUnits, price);
        await writer.tx((tx) => insertFee(tx, { ...fill, feeWei, timeMs: nowMs() }));
      }
    },
  };
}
