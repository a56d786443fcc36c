/** Fills, events and signed orders that the chain has lost, so that makers and owners who were notified of them can be told. */
import type { Address, Hex, Side } from '../../core/types.js';
import { fromColumn } from '../db/columns.js';
import { groupBy } from '../db/lists.js';
import { readOrphanedRows, readReversals } from './reversals.js';
import type { CustodyKind, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A lost fill, and the notifications that makers got of it. */
export interface OrphanedFill {
  market: number;
  fillSeq: number;
  side: Side;
  taker: Address;
  baseUnits: bigint;
  quoteUnits: bigint;
  blockNumber: number;
  txHash: Hex;
  /** The notifications: one per order, by the trade id that makers deduplicate by. */
  notifications: { maker: Address; oid: number; tid: number; priceTicks: bigint; baseUnits: bigint }[];
}

/** A deposit, request, settlement or execution. */
interface OrphanedEvent {
  kind: CustodyKind;
  maker: Address;
  token: Address;
  amountUnits: bigint;
  blockNumber: number;
  txHash: Hex;
}

/** A signed order whose owner may have been notified of its fill. The executor sends it again while it is valid. */
interface OrphanedOrder {
  /** Null for an order that no swap API with this database accepted. */
  orderId: string | null;
  owner: Address;
  tokenIn: Address;
  amountInUnits: bigint;
  tokenOut: Address;
  amountOutUnits: bigint;
  blockNumber: number;
  txHash: Hex;
}

export interface Orphans {
  fills: OrphanedFill[];
  orders: OrphanedOrder[];
  custody: OrphanedEvent[];
}

/** What the ledger has from blocks after `block`: what is lost if the chain no longer has them. */
export async function listOrphans(q: Queryable, block: number): Promise<Orphans> {
  const fills = await q('fills').where('block_number', '>', block).select();
  const parts = await q('order_fills as part')
    .join('fills as fill', (on) => {
      on.on('fill.market', 'part.market').on('fill.fill_seq', 'part.fill_seq');
    })
    .where('fill.block_number', '>', block)
    .select<Stored<'order_fills'>[]>('part.*');
  const events = await q('custody_events').where('block_number', '>', block).select();
  const orders = await q('settled_orders').where('block_number', '>', block).select();
  return { ...toOrphans(fills, parts, events), orders: await toOrders(q, orders) };
}

/** The orphans of a reversal whose blocks were lost, without those of blocks that were only read again. */
export async function readOrphans(q: Queryable, reversal: number): Promise<Orphans> {
  const row = (await readReversals(q)).find(({ generation }) => generation === reversal);
  if (row === undefined) return { fills: [], orders: [], custody: [] };
  const span = { from: row.keptGeneration + 1, to: row.generation };
  const lost = (one: { block_number: number }): boolean => one.block_number > row.toBlock - row.depth;
  const orders = (await readOrphanedRows(q, 'settled_orders', span, reversal)).filter(lost);
  return {
    ...toOrphans(
      (await readOrphanedRows(q, 'fills', span, reversal)).filter(lost),
      await readOrphanedRows(q, 'order_fills', span, reversal),
      (await readOrphanedRows(q, 'custody_events', span, reversal)).filter(lost),
    ),
    orders: await toOrders(q, orders),
  };
}

/** Adds the order ids that the owners know. */
async function toOrders(q: Queryable, rows: readonly Stored<'settled_orders'>[]): Promise<OrphanedOrder[]> {
  const orders: OrphanedOrder[] = [];
  for (const row of [...rows].sort((a, b) => a.block_number - b.block_number || a.log_index - b.log_index)) {
    const placed = await q('swap_quotes as quote')
      .join('swap_orders as placed', 'placed.quote_id', 'quote.id')
      .where({ 'quote.owner': row.owner, 'quote.nonce': row.nonce })
      .first<{ id: string } | undefined>('placed.id');
    orders.push({
      orderId: placed?.id ?? null,
      owner: row.owner,
      tokenIn: row.token_in,
      amountInUnits: fromColumn(row.amount_in_units),
      tokenOut: row.token_out,
      amountOutUnits: fromColumn(row.amount_out_units),
      blockNumber: row.block_number,
      txHash: row.tx_hash,
    });
  }
  return orders;
}

function toOrphans(
  fills: readonly Stored<'fills'>[],
  parts: readonly Stored<'order_fills'>[],
  events: readonly Stored<'custody_events'>[],
): Omit<Orphans, 'orders'> {
  const key = ({ market, fill_seq: fillSeq }: { market: number; fill_seq: number }) => `${market}:${fillSeq}`;
  const partsOf = groupBy(
    [...parts].sort((a, b) => a.part_no - b.part_no),
    key,
  );
  return {
    fills: [...fills]
      .sort((a, b) => a.market - b.market || a.fill_seq - b.fill_seq)
      .map((fill) => ({
        market: fill.market,
        fillSeq: fill.fill_seq,
        side: fill.side,
        taker: fill.taker,
        baseUnits: fromColumn(fill.base_units),
        quoteUnits: fromColumn(fill.quote_units),
        blockNumber: fill.block_number,
        txHash: fill.tx_hash,
        notifications: (partsOf.get(key(fill)) ?? []).map((part) => ({
          maker: part.maker,
          oid: part.oid,
          tid: part.tid,
          priceTicks: fromColumn(part.price_ticks),
          baseUnits: fromColumn(part.base_units),
        })),
      })),
    custody: [...events]
      .sort((a, b) => a.block_number - b.block_number || a.log_index - b.log_index)
      .map((event) => ({
        kind: event.kind,
        maker: event.maker,
        token: event.token,
        amountUnits: fromColumn(event.amount_units),
        blockNumber: event.block_number,
        txHash: event.tx_hash,
      })),
  };
}
