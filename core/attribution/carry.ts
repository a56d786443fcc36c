import { snapshotSide } from '../snapshot.js';
import type { Address, Market, MarketSnapshot, OrderFill, Side } from '../types.js';

/** What an order has left inside one snapshot, in base units of the market. */
export interface RestingOrder {
  oid: number;
  maker: Address;
  priceTicks: bigint;
  units: bigint;
}

/** The part of a fill that the carry rule looks at. */
export type CarriedFill = Pick<OrderFill, 'oid' | 'maker' | 'baseUnits'>;

/** The orders of one side of a snapshot, with nothing filled. */
export function restingOrders(market: Market, snapshot: MarketSnapshot, side: Side): RestingOrder[] {
  return snapshotSide(snapshot, side).map(({ oid, maker, priceTicks, sizeLots }) => ({
    oid,
    maker,
    priceTicks,
    units: sizeLots * market.lotUnits,
  }));
}

/**
 * Subtracts fills that happened after a snapshot's cut from its orders, in two passes: first each fill from the order that it filled, then
 * what that order could not cover from the same maker's other orders, best price first, older order first. What the maker's orders can't
 * cover is dropped: no other maker's orders shrink for it. `orders` are in snapshot order, and so is the result, which leaves out orders
 * with nothing left.
 *
 * Carrying all fills at once or in several steps, in any order, gives the same result: per maker it is fixed by the sum per order and by
 * the sum of what the first pass could not cover.
 */
export function carryFills(orders: readonly RestingOrder[], fills: readonly CarriedFill[]): RestingOrder[] {
  if (fills.length === 0) return [...orders];
  const filledUnits = new Map<number, { maker: Address; units: bigint }>();
  for (const { oid, maker, baseUnits } of fills) {
    filledUnits.set(oid, { maker, units: (filledUnits.get(oid)?.units ?? 0n) + baseUnits });
  }
  const reduced = orders.map((order) => takeDirect(order, filledUnits));

  const leftover = new Map<Address, bigint>();
  for (const { maker, units } of filledUnits.values()) {
    if (units > 0n) leftover.set(maker, (leftover.get(maker) ?? 0n) + units);
  }
  return reduced.map((order) => takeLeftover(order, leftover)).filter((order) => order.units > 0n);
}

/** First pass. Lowers the entry of `filledUnits` by what the order covers. */
function takeDirect(order: RestingOrder, filledUnits: Map<number, { maker: Address; units: bigint }>): RestingOrder {
  const filled = filledUnits.get(order.oid);
  if (filled === undefined) return order;
  const units = filled.units < order.units ? filled.units : order.units;
  filled.units -= units;
  return { ...order, units: order.units - units };
}

/**
 * Second pass, called in snapshot order, which is best price first and, inside one maker's orders at a price, older first. Lowers
 * the maker's leftover by what the order covers.
 */
function takeLeftover(order: RestingOrder, leftover: Map<Address, bigint>): RestingOrder {
  const owed = leftover.get(order.maker) ?? 0n;
  if (owed === 0n) return order;
  const units = owed < order.units ? owed : order.units;
  leftover.set(order.maker, owed - units);
  return { ...order, units: order.units - units };
}
