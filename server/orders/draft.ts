import { orderPayment } from '../../core/book/maker-orders.js';
import type { Address, CloseReason, Market, OpenOrder, OrderEffect, Side } from '../../core/types.js';
import type { AdmissionView } from './types.js';

/** A new order, its id still to be given. */
export type NewOrder = Pick<OpenOrder, 'market' | 'side' | 'priceTicks' | 'sizeLots' | 'tif' | 'cloid'>;

/**
 * The book as one maker's action sees it while its entries are judged in order: earlier entries of the same action count, nothing
 * of it is in the book yet.
 */
export interface Draft {
  /** Effects so far, in order. */
  effects: OrderEffect[];
  /** Gives the order the next id. */
  open: (order: NewOrder) => number;
  /** Closes an open order; the result takes the close back, as long as nothing else happened since. */
  close: (oid: number, reason?: CloseReason) => () => void;
  /** An open order of this maker. */
  order: (oid: number) => OpenOrder | undefined;
  orderByCloid: (cloid: string) => OpenOrder | undefined;
  openCount: () => number;
  /** Best price over the orders of all makers, null on an empty side. */
  bestTicks: (market: number, side: Side) => bigint | null;
  /** What all open orders of the maker could pay in this token, in its units. */
  exposureUnits: (token: Address) => bigint;
}

/** What the draft did to one side of one market. */
interface SideChange {
  /** Orders of the book that the draft closed, by price. */
  closedAt: Map<bigint, number>;
  closedCount: number;
  /** Orders that the draft opened and that are still open, by price. */
  openedAt: Map<bigint, number>;
}

function bump(counts: Map<bigint, number>, priceTicks: bigint, change: 1 | -1): void {
  const count = (counts.get(priceTicks) ?? 0) + change;
  if (count === 0) counts.delete(priceTicks);
  else counts.set(priceTicks, count);
}

/** An empty draft of an action of `maker`. */
export function createDraft(view: Pick<AdmissionView, 'book' | 'markets'>, maker: Address): Draft {
  const { book, markets } = view;
  const effects: OrderEffect[] = [];
  const opened = new Map<number, OpenOrder>();
  const openedCloids = new Map<string, number>();
  const closed = new Set<number>();
  const sides = new Map<string, SideChange>();
  const exposure = new Map(book.exposureUnits(maker));
  let count = book.openOrders(maker).length;
  let lastOid = book.lastOid();

  function sideOf(market: number, side: Side): SideChange {
    const key = `${market}:${side}`;
    const change = sides.get(key) ?? { closedAt: new Map(), closedCount: 0, openedAt: new Map() };
    sides.set(key, change);
    return change;
  }

  /** Books an order in or out of what the draft holds. */
  function weigh(order: OpenOrder, sign: 1 | -1): void {
    const { token, units } = orderPayment(marketIn(markets, order.market), order);
    exposure.set(token, (exposure.get(token) ?? 0n) + BigInt(sign) * units);
    count += sign;
  }

  function setOpened(order: OpenOrder, isOpen: boolean): void {
    bump(sideOf(order.market, order.side).openedAt, order.priceTicks, isOpen ? 1 : -1);
    if (isOpen) opened.set(order.oid, order);
    else opened.delete(order.oid);
    if (order.cloid !== null && isOpen) openedCloids.set(order.cloid, order.oid);
    else if (order.cloid !== null) openedCloids.delete(order.cloid);
  }

  function setClosed(order: OpenOrder, isClosed: boolean): void {
    const change = sideOf(order.market, order.side);
    bump(change.closedAt, order.priceTicks, isClosed ? 1 : -1);
    change.closedCount += isClosed ? 1 : -1;
    if (isClosed) closed.add(order.oid);
    else closed.delete(order.oid);
  }

  function own(order: OpenOrder | undefined): OpenOrder | undefined {
    return order !== undefined && order.maker === maker && !closed.has(order.oid) ? order : undefined;
  }

  function open(order: NewOrder): number {
    lastOid += 1;
    const full: OpenOrder = { ...order, oid: lastOid, maker, filledUnits: 0n, placedMs: 0 };
    setOpened(full, true);
    effects.push({ type: 'open', oid: lastOid, ...order });
    weigh(full, 1);
    return lastOid;
  }

  const find = (oid: number): OpenOrder | undefined => opened.get(oid) ?? own(book.order(oid));

  function close(oid: number, reason: CloseReason = 'canceled'): () => void {
    const order = find(oid);
    if (order === undefined) throw new RangeError(`order ${oid} is not open`);
    const ofDraft = opened.has(oid);
    const set = (isOpen: boolean): void => {
      if (ofDraft) setOpened(order, isOpen);
      else setClosed(order, !isOpen);
      weigh(order, isOpen ? 1 : -1);
    };
    set(false);
    effects.push({ type: 'close', oid, reason });
    return () => {
      effects.pop();
      set(true);
    };
  }

  /** Best price of the book without what this draft closed: a level goes only when all its orders do. */
  function bookBest(market: number, side: Side): bigint | null {
    const change = sideOf(market, side);
    const best = book.bestTicks(market, side);
    if (best === null || !change.closedAt.has(best)) return best;
    // Among one level more than there are closed orders, one has an order left, if any has.
    const levels = book.levels(market, side, change.closedCount + 1);
    return levels.find((level) => level.orders > (change.closedAt.get(level.priceTicks) ?? 0))?.priceTicks ?? null;
  }

  function bestTicks(market: number, side: Side): bigint | null {
    let best = bookBest(market, side);
    for (const priceTicks of sideOf(market, side).openedAt.keys()) {
      if (best === null || (side === 'ask' ? priceTicks < best : priceTicks > best)) best = priceTicks;
    }
    return best;
  }

  function orderByCloid(cloid: string): OpenOrder | undefined {
    const oid = openedCloids.get(cloid);
    return oid === undefined ? own(book.orderByCloid(maker, cloid)) : opened.get(oid);
  }

  return {
    effects,
    open,
    close,
    order: find,
    orderByCloid,
    openCount: () => count,
    bestTicks,
    exposureUnits: (token) => exposure.get(token) ?? 0n,
  };
}

/** The listed market of an order. Throws RangeError, because an order's market is always listed. */
export function marketIn(markets: readonly Market[], index: number): Market {
  const market = markets[index];
  if (market === undefined) throw new RangeError(`no market ${index}`);
  return market;
}
