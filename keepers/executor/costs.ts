/** Makes durable what mined transactions of orders cost and brought. */
import { toSafeInt } from '../../core/amounts.js';
import { worthWei } from '../../core/swap/pricing.js';
import type { Hex } from '../../core/types.js';
import { insertCost, readUncostedFills } from '../../ledger/swaps/swap-costs.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import { insertRevert } from '../../ledger/swaps/swap-wallets.js';
import { readReceipts, type TxReceipt } from '../chain/receipts.js';
import type { ExecutorDeps } from './deps.js';

interface Costs {
  /** Notes what fills cost that the ledger has and of which that is not known, some of them per call. */
  noteFills(): Promise<void>;
  /** Notes the reverts among an order's mined transactions, each once. */
  noteReverts(one: PendingOrder, mined: readonly Hex[]): Promise<void>;
}

/** Fills whose receipts are read at once. */
const FILLS_PER_ROUND = 64;

export function createCosts({ db, writer, rpc, marketData, nowMs, logger }: ExecutorDeps): Costs {
  /** Mined transactions of pending orders whose receipts were read. */
  const examined = new Set<Hex>();
  const costOf = ({ gasUsed, effectiveGasPrice, l1Fee }: TxReceipt): bigint =>
    BigInt(gasUsed) * BigInt(effectiveGasPrice) + BigInt(l1Fee ?? '0x0');

  return {
    async noteFills() {
      const fills = await readUncostedFills(db.knex, FILLS_PER_ROUND);
      if (fills.length === 0) return;
      const head = await marketData.head();
      const receipts = await readReceipts(
        rpc,
        fills.map(({ txHash }) => txHash),
      );
      for (const [i, { orderId, txHash, token, feeUnits }] of fills.entries()) {
        const receipt = receipts[i] ?? null;
        if (receipt === null) continue;
        const price = await marketData.gasPrice(token, head, Math.floor(nowMs() / 1_000));
        const feeWei = price === null ? 0n : worthWei(feeUnits, price);
        const cost = { txHash, orderId, token, isFilled: true, feeWei, costWei: costOf(receipt), timeMs: nowMs() };
        await writer.tx((tx) => insertCost(tx, cost));
      }
    },
    async noteReverts({ order: { id: orderId, owner }, quote }, mined) {
      const hashes = mined.filter((hash) => !examined.has(hash));
      if (hashes.length === 0) return;
      for (const receipt of await readReceipts(rpc, hashes)) {
        // Null for one that another took the place of, or that this node does not know yet.
        if (receipt === null) continue;
        examined.add(receipt.transactionHash);
        if (BigInt(receipt.status) !== 0n) continue;
        const noted = { txHash: receipt.transactionHash, orderId, timeMs: nowMs() };
        const gasUsed = BigInt(receipt.gasUsed);
        await writer.tx(async (tx) => {
          await insertRevert(tx, { ...noted, owner, blockNumber: toSafeInt(BigInt(receipt.blockNumber)), gasUsed });
          const cost = { token: quote.sellToken, isFilled: false, feeWei: 0n, costWei: costOf(receipt) };
          await insertCost(tx, { ...noted, ...cost });
        });
        logger.warn({ orderId, owner, hash: noted.txHash, gasUsed: gasUsed.toString() }, 'an order reverted');
      }
    },
  };
}
