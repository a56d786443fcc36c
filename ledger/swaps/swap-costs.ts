/** What the fees of signed orders earned, compared with the cost of all transactions of executors. */
import type { Knex } from 'knex';
import { minBig } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, toColumn } from '../db/columns.js';
import type { Queryable } from '../types.js';

/** What the fee of a fill was worth. */
interface SwapFee {
  txHash: Hex;
  orderId: string;
  /** Token in which it is taken. */
  token: Address;
  /** The fee's value in wei at the time of storing, rounded down; 0 when no price was known. */
  feeWei: bigint;
  timeMs: number;
}

/** Appends a fee; one that is stored already stays unchanged. Inside a transaction of the swap log's writer. */
export async function insertFee(tx: Knex.Transaction, fee: SwapFee): Promise<void> {
  const { txHash, orderId, token, feeWei, timeMs } = fee;
  const row = { tx_hash: txHash, order_id: orderId, token, fee_wei: toColumn(feeWei), time_ms: timeMs };
  await tx('swap_fees').insert(row).onConflict('tx_hash').ignore();
}

/** A fill in the ledger whose fee's value is not stored. */
export interface UnvaluedFill {
  orderId: string;
  txHash: Hex;
  token: Address;
  blockNumber: number;
  feeUnits: bigint;
}

/** Fills of pending orders whose fees are not stored, by transaction hash: those after `after`, at most `limit`. */
export async function readUnvaluedFills(q: Queryable, after: string, limit: number): Promise<UnvaluedFill[]> {
  const rows = await q('swap_pending as pending')
    .join('swap_orders as placed', 'placed.id', 'pending.order_id')
    .join('swap_quotes as quote', 'quote.id', 'placed.quote_id')
    .join('settled_orders as fill', { 'fill.owner': 'quote.owner', 'fill.nonce': 'quote.nonce' })
    .leftJoin('swap_fees as fee', 'fee.tx_hash', 'fill.tx_hash')
    .whereNull('fee.tx_hash')
    .where('fill.tx_hash', '>', after)
    .orderBy('fill.tx_hash')
    .limit(limit)
    .select<{ order_id: string; tx_hash: Hex; token_in: Address; fee_units: string; block_number: number }[]>(
      'pending.order_id',
      'fill.block_number',
      'fill.tx_hash',
      'fill.token_in',
      'fill.fee_units',
    );
  return rows.map((row) => ({
    orderId: row.order_id,
    txHash: row.tx_hash,
    token: row.token_in,
    blockNumber: row.block_number,
    feeUnits: fromColumn(row.fee_units),
  }));
}

/** Fees and costs of the orders of one sell token. */
interface SwapProfit {
  /** Null for transactions of no order, such as a transfer that fills a gap between nonces. */
  token: Address | null;
  filled: number;
  feesWei: bigint;
  /** Of fills; of transactions that reverted; and of transfers that took the place of a transaction. */
  filledCostWei: bigint;
  revertedCostWei: bigint;
  gaveWayCostWei: bigint;
  /** The lowest result of one order: its fee less the cost of its transactions. */
  worstWei: bigint;
}

/** A transaction of an executor as it was mined. */
interface MinedRow {
  signer: string;
  nonce: number;
  succeeded: number;
  cost_wei: string;
  mined_key: string;
  /** Outbox key of the order for which something was signed at that nonce; null for none. */
  tx_key: string | null;
  order_id: string | null;
  sell_token: Address | null;
  fee_wei: string | null;
}

/**
 * Fees and costs by sell token, of the executors' transactions whose costs were stored since `sinceMs`. The fee of a fill that a
 * reorganisation removed does not count. The costs add up to the executors' costs in `readCosts`.
 */
export async function readSwapProfits(q: Queryable, sinceMs: number): Promise<SwapProfit[]> {
  const profits = new Map<Address | null, SwapProfit>();
  const brought = new Map<string, { token: Address | null; wei: bigint }>();
  for (const row of await readMined(q, sinceMs)) {
    const [costWei, feeWei] = [fromColumn(row.cost_wei), row.fee_wei === null ? 0n : fromColumn(row.fee_wei)];
    if (costWei === 0n) continue;
    const profit = profits.get(row.sell_token) ?? {
      ...{ token: row.sell_token, filled: 0, feesWei: 0n, worstWei: 0n },
      ...{ filledCostWei: 0n, revertedCostWei: 0n, gaveWayCostWei: 0n },
    };
    profits.set(row.sell_token, profit);
    const isOrder = row.mined_key === row.tx_key;
    const isFilled = isOrder && row.succeeded === 1;
    profit[isFilled ? 'filledCostWei' : isOrder ? 'revertedCostWei' : 'gaveWayCostWei'] += costWei;
    profit.filled += isFilled ? 1 : 0;
    profit.feesWei += feeWei;
    const name = row.order_id ?? '';
    const order = brought.get(name) ?? { token: row.sell_token, wei: 0n };
    brought.set(name, { ...order, wei: order.wei + feeWei - costWei });
  }
  for (const profit of profits.values()) {
    const each = [...brought.values()].filter(({ token }) => token === profit.token).map(({ wei }) => wei);
    profit.worstWei = each.reduce((least, wei) => minBig(least, wei));
  }
  return [...profits.values()];
}

/** One row per nonce, however many transactions were signed for it. */
async function readMined(q: Queryable, sinceMs: number): Promise<MinedRow[]> {
  const rows = await q('order_costs as cost')
    .leftJoin('outbox as sent', { 'sent.signer': 'cost.signer', 'sent.nonce': 'cost.nonce' })
    .leftJoin('swap_attempts as attempt', 'attempt.tx_key', 'sent.tx_key')
    .leftJoin('swap_orders as placed', 'placed.id', 'attempt.order_id')
    .leftJoin('swap_quotes as quote', 'quote.id', 'placed.quote_id')
    .leftJoin('settled_orders as fill', 'fill.tx_hash', 'cost.hash')
    .leftJoin('swap_fees as fee', 'fee.tx_hash', 'fill.tx_hash')
    .where('cost.seen_ms', '>=', sinceMs)
    .select<MinedRow[]>('cost.signer', 'cost.nonce', 'cost.succeeded', 'fee.fee_wei', {
      cost_wei: 'cost.fee_wei',
      mined_key: 'cost.tx_key',
      tx_key: 'attempt.tx_key',
      order_id: 'placed.id',
      sell_token: 'quote.sell_token',
    });
  const mined = new Map<string, MinedRow>();
  for (const row of rows) {
    const name = `${row.signer}:${row.nonce}`;
    if (row.tx_key !== null || !mined.has(name)) mined.set(name, row);
  }
  return [...mined.values()];
}
