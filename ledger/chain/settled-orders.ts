/** Signed orders that the settler filled, a part of the ledger log. */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { groupBy } from '../db/lists.js';
import { readAttributedFillsAt } from './fills.js';
import type { AttributedFill, Queryable, SettledOrder } from '../types.js';
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

/** The fills of signed orders, of those that a durable generation holds. */
export async function readSettledOrders(
  q: Queryable,
  orders: readonly { owner: Address; nonce: bigint }[],
): Promise<SettledOrderRow[]> {
  const wanted = new Set(orders.map(({ owner, nonce }) => `${owner}:${nonce}`));
  const rows = await q('settled_orders')
    .whereIn('owner', [...new Set(orders.map(({ owner }) => owner))])
    .whereIn(
      'nonce',
      orders.map(({ nonce }) => toColumn(nonce)),
    )
    .select<Stored<'settled_orders'>[]>();
  return rows
    .filter(({ owner, nonce }) => wanted.has(`${owner}:${nonce}`))
    .map((row) => ({ ...toSettledOrder(row), generation: row.generation }));
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
export interface OrderFill {
  market: number;
  fillSeq: number;
  makers: { maker: Address; baseUnits: bigint; quoteUnits: bigint }[];
}

/**
 * Fills of our curves by settled orders, in the order of the chain: those of an order's transaction between the event of the settled order before it
 * and its own event.
 */
export async function readFillsOfOrders<T extends Pick<SettledOrder, 'txHash' | 'logIndex'>>(
  q: Queryable,
  orders: readonly T[],
): Promise<Map<T, OrderFill[]>> {
  const fillsOf = new Map<T, OrderFill[]>();
  if (orders.length === 0) return fillsOf;
  const hashes = [...new Set(orders.map(({ txHash }) => txHash))];
  const ends = await q('settled_orders')
    .whereIn('tx_hash', hashes)
    .select<{ tx_hash: Hex; log_index: number }[]>('tx_hash', 'log_index');
  const endsOf = groupBy(ends, ({ tx_hash }) => tx_hash);
  const rows = await q('fills').whereIn('tx_hash', hashes).orderBy('log_index').select<Stored<'fills'>[]>();
  const rowsOf = groupBy(rows, ({ tx_hash }) => tx_hash);
  const explained = new Map<Stored<'fills'>, AttributedFill>();
  for (const [market, some] of groupBy(rows, (row) => row.market)) {
    const fills = await readAttributedFillsAt(q, market, some);
    some.forEach((row, i) => explained.set(row, fills[i]!));
  }
  for (const order of orders) {
    const before = (endsOf.get(order.txHash) ?? []).map(({ log_index }) => log_index);
    const begin = Math.max(-1, ...before.filter((index) => index < order.logIndex));
    const own = (rowsOf.get(order.txHash) ?? []).filter(
      ({ log_index }) => log_index > begin && log_index < order.logIndex,
    );
    const fills = own.map((row) => byMaker(row, explained.get(row)!)).filter(({ makers }) => makers.length > 0);
    fillsOf.set(order, fills);
  }
  return fillsOf;
}

function byMaker(row: Stored<'fills'>, { decomposition }: AttributedFill): OrderFill {
  const fill: OrderFill = { market: row.market, fillSeq: row.fill_seq, makers: [] };
  for (const { maker, baseUnits, quoteUnits } of decomposition.legs) {
    let part = fill.makers.find((one) => one.maker === maker);
    if (part === undefined) fill.makers.push((part = { maker, baseUnits: 0n, quoteUnits: 0n }));
    part.baseUnits += baseUnits;
    part.quoteUnits += quoteUnits;
  }
  return fill;
}
