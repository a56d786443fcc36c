/** Signed orders that the settler filled, a part of the ledger log. */
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';
import { highest } from '../db/aggregates.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { readAttributedFill } from './fills.js';
import type { Queryable, SettledOrder } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A settled order with the generation that made it durable. */
export type SettledOrderRow = SettledOrder & { generation: number };

/** Stores the settled orders of a generation. */
export async function insertSettledOrders(
  tx: Knex.Transaction,
  generation: number,
  orders: readonly SettledOrder[],
): Promise<void> {
  const rows = orders.map((order): Stored<'settled_orders'> => ({
    owner: order.owner,
    nonce: toColumn(order.nonce),
    recipient: order.recipient,
    token_in: order.tokenIn,
    token_out: order.tokenOut,
    amount_in_units: toColumn(order.amountInUnits),
    amount_out_units: toColumn(order.amountOutUnits),
    fee_units: toColumn(order.feeUnits),
    fee_in_swap: order.feeInSwap ? 1 : 0,
    partner: order.partner?.partner ?? null,
    partner_units: order.partner === null ? null : toColumn(order.partner.amountUnits),
    app_data: order.appData,
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
  const row = await q('settled_orders')
    .where({ owner: order.owner, nonce: toColumn(order.nonce) })
    .first();
  return row === undefined ? null : { ...toSettledOrder(row), generation: row.generation };
}

const NOBODY: Address = `0x${'0'.repeat(40)}`;

/** Reads a stored row. Throws SyntaxError when an amount is malformed. */
export function toSettledOrder(row: Stored<'settled_orders'>): SettledOrder {
  return {
    owner: row.owner,
    nonce: fromColumn(row.nonce),
    recipient: row.recipient,
    tokenIn: row.token_in,
    tokenOut: row.token_out,
    amountInUnits: fromColumn(row.amount_in_units),
    amountOutUnits: fromColumn(row.amount_out_units),
    feeUnits: fromColumn(row.fee_units),
    feeInSwap: row.fee_in_swap !== 0,
    partner:
      row.partner === null && row.partner_units === null
        ? null
        : // One without the other was never stored: as an order of some partner it is different from the chain's.
          { partner: row.partner ?? NOBODY, amountUnits: fromColumn(row.partner_units ?? '0') },
    appData: row.app_data,
    blockNumber: row.block_number,
    txHash: row.tx_hash,
    logIndex: row.log_index,
  };
}

/** What each maker's orders contributed to a signed order on our curve, summed over its legs; in base units. */
interface OrderFill {
  market: number;
  fillSeq: number;
  makers: { maker: Address; baseUnits: bigint; quoteUnits: bigint }[];
}

/** Fills of our curves for a settled order: those of its transaction between the event of the settled order before it and its own event. */
export async function readFillsOfOrder(
  q: Queryable,
  { txHash, logIndex }: Pick<SettledOrder, 'txHash' | 'logIndex'>,
): Promise<OrderFill[]> {
  const earlier = q('settled_orders').where({ tx_hash: txHash }).where('log_index', '<', logIndex);
  const rows = await q('fills')
    .where({ tx_hash: txHash })
    .where('log_index', '<', logIndex)
    .where('log_index', '>', (await highest(earlier, 'log_index')) ?? -1)
    .orderBy('log_index')
    .select();
  const fills: OrderFill[] = [];
  for (const row of rows) {
    const { decomposition } = await readAttributedFill(q, row);
    const fill: OrderFill = { market: row.market, fillSeq: row.fill_seq, makers: [] };
    for (const { maker, baseUnits, quoteUnits } of decomposition.legs) {
      let part = fill.makers.find((one) => one.maker === maker);
      if (part === undefined) fill.makers.push((part = { maker, baseUnits: 0n, quoteUnits: 0n }));
      part.baseUnits += baseUnits;
      part.quoteUnits += quoteUnits;
    }
    if (fill.makers.length > 0) fills.push(fill);
  }
  return fills;
}
