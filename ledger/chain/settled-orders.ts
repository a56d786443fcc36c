/** Signed orders that the settler filled, a part of the ledger log. */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import type { Queryable, SettledOrder } from '../types.js';

/** A settled order as it is stored. */
export interface SettledOrderColumns {
  owner: string;
  nonce: string;
  recipient: string;
  token_in: string;
  token_out: string;
  amount_in_units: string;
  amount_out_units: string;
  fee_units: string;
  fee_in_swap: number;
  block_number: number;
  tx_hash: string;
  log_index: number;
  generation: number;
}

/** A settled order with the generation that made it durable. */
export type SettledOrderRow = SettledOrder & { generation: number };

/** Stores the settled orders of a generation. */
export async function insertSettledOrders(
  tx: Knex.Transaction,
  generation: number,
  orders: readonly SettledOrder[],
): Promise<void> {
  const rows = orders.map((order): SettledOrderColumns => ({
    owner: order.owner,
    nonce: toColumn(order.nonce),
    recipient: order.recipient,
    token_in: order.tokenIn,
    token_out: order.tokenOut,
    amount_in_units: toColumn(order.amountInUnits),
    amount_out_units: toColumn(order.amountOutUnits),
    fee_units: toColumn(order.feeUnits),
    fee_in_swap: order.feeInSwap ? 1 : 0,
    block_number: order.blockNumber,
    tx_hash: order.txHash,
    log_index: order.logIndex,
    generation,
  }));
  await insertAll(tx, 'settled_orders', rows);
}

/** The fill of one signed order, null while no durable generation holds it. */
export async function readSettledOrder(
  q: Queryable,
  order: { owner: Address; nonce: bigint },
): Promise<SettledOrderRow | null> {
  const row = (await q('settled_orders')
    .where({ owner: order.owner, nonce: toColumn(order.nonce) })
    .first()) as SettledOrderColumns | undefined;
  return row === undefined ? null : { ...toSettledOrder(row), generation: row.generation };
}

/** Reads a stored row. Throws SyntaxError when an amount is not one. */
export function toSettledOrder(row: SettledOrderColumns): SettledOrder {
  return {
    owner: row.owner as Address,
    nonce: fromColumn(row.nonce),
    recipient: row.recipient as Address,
    tokenIn: row.token_in as Address,
    tokenOut: row.token_out as Address,
    amountInUnits: fromColumn(row.amount_in_units),
    amountOutUnits: fromColumn(row.amount_out_units),
    feeUnits: fromColumn(row.fee_units),
    feeInSwap: row.fee_in_swap !== 0,
    blockNumber: row.block_number,
    txHash: row.tx_hash as Hex,
    logIndex: row.log_index,
  };
}
