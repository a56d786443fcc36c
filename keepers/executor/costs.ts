/** Stores the costs and fees of mined transactions of orders. */
import { worthWei } from '../../core/swap/pricing.js';
import type { Address } from '../../core/types.js';
import { insertFee, readUnvaluedFills, type UnvaluedFill } from '../../ledger/swaps/swap-costs.js';
import { insertReverts, readUncostedOrders } from '../../ledger/swaps/swap-wallets.js';
import type { TransactionCost } from '../../ledger/transactions/costs.js';
import type { Transaction } from '../../ledger/types.js';
import type { Head } from '../../liquidity/eth.js';
import { createCosts, type Costs } from '../chain/costs.js';
import { createOrderCostRepair, presumeReverts } from './cost-repair.js';
import type { ExecutorDeps } from './deps.js';

interface OrderCosts {
  /**
   * Stores the costs of newly mined transactions, of all owners and keys, together with reverts; deletes those that the chain has dropped
   * since. Until then a transaction counts as one that may still revert. Blocks up to `finalBlock` are final.
   */
  collect(finalBlock: number): Promise<void>;
  /**
   * Stores the values of fees of fills in the ledger that have none yet, some per call. A fee without a price is tried again; it is stored
   * as zero, with a warning, only when there was no price for ten minutes and the fill is at `finalBlock` or before.
   */
  noteFills(finalBlock: number): Promise<void>;
}

/** Fills that are valued at once. */
const FILLS_PER_ROUND = 64;
const GIVE_UP_MS = 600_000;
/** How often failing repairs are logged. */
const WARN_INTERVAL_MS = 600_000;
/** Most fills without a price that are remembered. */
const MOST_UNPRICED = 10_000;

export function createOrderCosts(deps: ExecutorDeps): OrderCosts {
  const { db, writer, rpc, outbox, marketData, nowMs, monotonicMs = nowMs, logger } = deps;
  const costs = new Map<Address, Costs>();
  const repair = createOrderCostRepair(deps);
  let repairWarnedMs = Number.NEGATIVE_INFINITY;
  /** Fills that could not be priced, and since when. */
  const unpricedMs = new Map<string, number>();
  /** Transaction of the last handled fill, so that fills without a price do not block others. */
  let looked = '';

  async function costsOf(signer: Address): Promise<Costs> {
    const also = async (tx: Transaction, mined: readonly TransactionCost[]): Promise<void> => {
      await insertReverts(tx, mined);
      await presumeReverts(tx, mined);
    };
    const known =
      costs.get(signer) ??
      (await createCosts({ role: 'executor', db, writer, rpc, signer, nowMs, monotonicMs, logger, also }));
    costs.set(signer, known);
    return known;
  }

  async function collectOf(signer: Address, lastNonce?: number): Promise<void> {
    const own = await costsOf(signer);
    // A page at a time: after a long pause there may be several.
    for (let found = await own.collect(lastNonce); found.length > 0; found = await own.collect(lastNonce))
      report(found);
  }

  /** Null for one that can't be priced now. */
  async function worthOf({ txHash, token, feeUnits }: UnvaluedFill, head: Head): Promise<bigint | null> {
    try {
      const price = await marketData.gasPrice(token, head, Math.floor(nowMs() / 1_000));
      return price === null ? null : worthWei(feeUnits, price);
    } catch (error) {
      logger.debug({ txHash, err: error }, 'the fee of a fill can not be priced now');
      return null;
    }
  }

  /** Whether nothing more is waited for. */
  function isUnpriceable({ txHash, token, blockNumber }: UnvaluedFill, finalBlock: number): boolean {
    if (unpricedMs.size >= MOST_UNPRICED) unpricedMs.clear();
    const sinceMs = unpricedMs.get(txHash) ?? monotonicMs();
    unpricedMs.set(txHash, sinceMs);
    if (blockNumber > finalBlock || monotonicMs() - sinceMs < GIVE_UP_MS) return false;
    logger.warn({ txHash, token }, 'nothing prices the fee of a fill; it counts as worth nothing');
    return true;
  }

  async function collectAll(): Promise<void> {
    await collectOf(outbox.signer);
    for (const { signer, lastNonce } of await readUncostedOrders(db.knex)) {
      if (signer !== outbox.signer) await collectOf(signer, lastNonce);
    }
  }

  /** Returns whether anything was deleted. A failing repair waits for the next round and does not delay new costs. */
  async function repairCosts(finalBlock: number): Promise<boolean> {
    try {
      return await repair.repair(finalBlock);
    } catch (error) {
      if (monotonicMs() - repairWarnedMs < WARN_INTERVAL_MS) return false;
      repairWarnedMs = monotonicMs();
      logger.warn({ err: error }, 'costs of orders that are noted already can not be looked at again now');
      return false;
    }
  }

  function report(collected: readonly TransactionCost[]): void {
    for (const { txKey, hash, gasUsed, succeeded } of collected) {
      if (!succeeded && gasUsed > 0) logger.warn({ txKey, hash, gasUsed }, 'an order reverted');
    }
  }

  return {
    async collect(finalBlock) {
      await collectAll();
      // Reads the deleted ones again.
      if (await repairCosts(finalBlock)) await collectAll();
    },
    async noteFills(finalBlock) {
      const fills = await readUnvaluedFills(db.knex, looked, FILLS_PER_ROUND);
      looked = fills.length < FILLS_PER_ROUND ? '' : fills.at(-1)!.txHash;
      if (fills.length === 0) return;
      const head = await marketData.head();
      for (const fill of fills) {
        const feeWei = await worthOf(fill, head);
        if (feeWei === null && !isUnpriceable(fill, finalBlock)) continue;
        const { txHash, orderId, token } = fill;
        await writer.tx((tx) => insertFee(tx, { txHash, orderId, token, feeWei: feeWei ?? 0n, timeMs: nowMs() }));
        unpricedMs.delete(txHash);
      }
    },
  };
}
