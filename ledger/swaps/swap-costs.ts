/** What mined transactions of signed orders cost the service, and what it earned by them. */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, toColumn } from '../db/columns.js';
import type { Queryable } from '../types.js';

/** A mined transaction of an order. */
interface SwapCost {
  txHash: Hex;
  orderId: string;
  /** In which the fee is taken. */
  token: Address;
  /** False for one that reverted. */
  isFilled: boolean;
  /** What the fee was worth when this was noted, in wei rounded down; 0 for a revert, and where nothing priced it. */
  feeWei: bigint;
  /** Gas at its price, and what the rollup took for data. */
  costWei: bigint;
  timeMs: number;
}

/** Appends a cost; one that is known stays as it is. Inside a transaction of the swap log's writer. */
export async function insertCost(tx: Knex.Transaction, cost: SwapCost): Promise<void> {
  await tx('swap_costs')
    .insert({
      tx_hash: cost.txHash,
      order_id: cost.orderId,
      token: cost.token,
      filled: cost.isFilled ? 1 : 0,
      fee_wei: toColumn(cost.feeWei),
      cost_wei: toColumn(cost.costWei),
      time_ms: cost.timeMs,
    })
    .onConflict('tx_hash')
    .ignore();
}

/** A fill by the ledger of which no cost is known yet. */
interface UncostedFill {
  orderId: string;
  txHash: Hex;
  token: Address;
  feeUnits: bigint;
}

/** Fills of the last blocks whose costs are not noted, at most `limit`. A fill that no reorganisation can take back is not among them any more. */
export async function readUncostedFills(q: Queryable, limit: number): Promise<UncostedFill[]> {
  const rows = await q('swap_pending as pending')
    .join('swap_orders as placed', 'placed.id', 'pending.order_id')
    .join('swap_quotes as quote', 'quote.id', 'placed.quote_id')
    .join('settled_orders as fill', { 'fill.owner': 'quote.owner', 'fill.nonce': 'quote.nonce' })
    .leftJoin('swap_costs as cost', 'cost.tx_hash', 'fill.tx_hash')
    .whereNull('cost.tx_hash')
    .limit(limit)
    .select<{ order_id: string; tx_hash: string; token_in: string; fee_units: string }[]>(
      'pending.order_id',
      'fill.tx_hash',
      'fill.token_in',
      'fill.fee_units',
    );
  return rows.map((row) => ({
    orderId: row.order_id,
    txHash: row.tx_hash as Hex,
    token: row.token_in as Address,
    feeUnits: fromColumn(row.fee_units),
  }));
}

/** What orders of one sell token brought and cost. */
interface SwapProfit {
  token: Address;
  filled: number;
  feesWei: bigint;
  /** Of fills, and of transactions that reverted. */
  filledCostWei: bigint;
  revertedCostWei: bigint;
  /** Least that one order brought: its fee less what its fill and its reverts cost. */
  worstWei: bigint;
}

/** By sell token, of transactions noted since `sinceMs`. A fill that the chain has dropped since does not count. */
export async function readSwapProfits(q: Queryable, sinceMs: number): Promise<SwapProfit[]> {
  const rows = await q('swap_costs as cost')
    .leftJoin('settled_orders as fill', 'fill.tx_hash', 'cost.tx_hash')
    .where('cost.time_ms', '>=', sinceMs)
    .where((either) => void either.where('cost.filled', 0).orWhereNotNull('fill.generation'))
    .select<{ order_id: string; token: string; filled: number; fee_wei: string; cost_wei: string }[]>('cost.*');
  const profits = new Map<string, SwapProfit>();
  const orders = new Map<string, bigint>();
  for (const row of rows) {
    const { token, filled } = row;
    const [feeWei, costWei] = [fromColumn(row.fee_wei), fromColumn(row.cost_wei)];
    const profit = profits.get(token) ?? {
      ...{ token: token as Address, filled: 0, feesWei: 0n, filledCostWei: 0n, revertedCostWei: 0n, worstWei: 0n },
    };
    profit.filled += filled;
    profit.feesWei += feeWei;
    profit[filled === 1 ? 'filledCostWei' : 'revertedCostWei'] += costWei;
    profits.set(token, profit);
    const key = `${token}:${row.order_id}`;
    orders.set(key, (orders.get(key) ?? 0n) + feeWei - costWei);
  }
  for (const profit of profits.values()) {
    const each = [...orders].filter(([key]) => key.startsWith(`${profit.token}:`)).map(([, wei]) => wei);
    profit.worstWei = each.reduce((least, wei) => (wei < least ? wei : least));
  }
  return [...profits.values()];
}
