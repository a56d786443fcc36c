import { quoteUnitsFloor } from '../market.js';
import type { Address, Market, OpenOrder, Side } from '../types.js';

/** The open orders of one maker, their cloids, and what they could pay. */
export interface MakerOrders {
  add(order: OpenOrder, market: Market): void;
  /** Puts `next` in the place of an order that differs from it only in `filledUnits`. */
  replace(order: OpenOrder, next: OpenOrder, market: Market): void;
  remove(order: OpenOrder, market: Market): void;
  /** Oldest first. */
  orders(): OpenOrder[];
  byCloid(cloid: string): OpenOrder | undefined;
  count(): number;
  exposureUnits(): Map<Address, bigint>;
  exposureOf(token: Address): bigint;
  /** The part of the exposure on one side of a market. */
  exposureOn(sideKey: number): bigint;
  isEmpty(): boolean;
}

/** Names a side of a market. */
export const sideKey = (market: number, side: Side): number => 2 * market + (side === 'ask' ? 0 : 1);

type Terms = Pick<OpenOrder, 'side' | 'priceTicks' | 'sizeLots'> & Partial<Pick<OpenOrder, 'filledUnits'>>;

/**
 * What an order could pay: base units of an ask's remaining size, or quote units of a bid's remaining size at its price, floored. Without
 * `filledUnits` nothing of it is filled.
 */
export function orderPayment(market: Market, order: Terms): { token: Address; units: bigint } {
  const { filledUnits = 0n } = order;
  const { lotUnits, tickLotUnits } = market;
  if (filledUnits === 0n && order.side === 'bid') {
    // Whole lots at whole ticks: nothing to round.
    return { token: market.quote.address, units: order.priceTicks * tickLotUnits * order.sizeLots };
  }
  const remainingUnits = order.sizeLots * lotUnits - filledUnits;
  return order.side === 'ask'
    ? { token: market.base.address, units: remainingUnits }
    : { token: market.quote.address, units: quoteUnitsFloor(market, order.priceTicks, remainingUnits) };
}

/** Creates an empty set. Orders are added in oid order, so that insertion order is age. */
export function createMakerOrders(): MakerOrders {
  const orders = new Map<number, OpenOrder>();
  const oidByCloid = new Map<string, number>();
  const exposure = new Map<Address, bigint>();
  const bySide = new Map<number, bigint>();

  const expose = (order: OpenOrder, market: Market, sign: bigint): void => {
    const { token, units } = orderPayment(market, order);
    const next = (exposure.get(token) ?? 0n) + sign * units;
    if (next === 0n) exposure.delete(token);
    else exposure.set(token, next);
    const key = sideKey(order.market, order.side);
    const onSide = (bySide.get(key) ?? 0n) + sign * units;
    if (onSide === 0n) bySide.delete(key);
    else bySide.set(key, onSide);
  };

  const add = (order: OpenOrder, market: Market): void => {
    orders.set(order.oid, order);
    if (order.cloid !== null) oidByCloid.set(order.cloid, order.oid);
    expose(order, market, 1n);
  };

  const replace = (order: OpenOrder, next: OpenOrder, market: Market): void => {
    orders.set(order.oid, next);
    expose(order, market, -1n);
    expose(next, market, 1n);
  };

  const remove = (order: OpenOrder, market: Market): void => {
    orders.delete(order.oid);
    if (order.cloid !== null && oidByCloid.get(order.cloid) === order.oid) oidByCloid.delete(order.cloid);
    expose(order, market, -1n);
  };

  const byCloid = (cloid: string): OpenOrder | undefined => {
    const oid = oidByCloid.get(cloid);
    return oid === undefined ? undefined : orders.get(oid);
  };

  return {
    add,
    replace,
    remove,
    byCloid,
    orders: () => [...orders.values()],
    count: () => orders.size,
    exposureUnits: () => new Map(exposure),
    exposureOf: (token) => exposure.get(token) ?? 0n,
    exposureOn: (key) => bySide.get(key) ?? 0n,
    isEmpty: () => orders.size === 0,
  };
}
