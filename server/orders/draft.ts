import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, Market, OpenOrder, OrderEffect, Side } from '../../core/types.js';
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
  close: (oid: number) => void;
  /** An open order of this maker. */
  order: (oid: number) => OpenOrder | undefined;
  orderByCloid: (cloid: string) => OpenOrder | undefined;
  openCount: () => number;
  /** Best price over the orders of all makers, null on an empty side. */
  bestTicks: (market: number, side: Side) => bigint | null;
  /** What all open orders of the maker could pay in this token, in its units. */
  exposureUnits: (token: Address) => bigint;
}

/** What an order could still pay: base units of an ask, quote units of a bid, rounded down. */
export function obligationOf(market: Market, order: OpenOrder): { token: Address; units: bigint } {
  const remaining = order.sizeLots * market.lotUnits - order.filledUnits;
  if (order.side === 'ask') return { token: market.base.address, units: remaining };
  return { token: market.quote.address, units: quoteUnitsFloor(market, order.priceTicks, remaining) };
}

/** An empty draft of an action of `maker`. */
export function createDraft(view: Pick<AdmissionView, 'book' | 'markets'>, maker: Address): Draft {
  const { book, markets } = view;
  const effects: OrderEffect[] = [];
  const opened = new Map<number, OpenOrder>();
  const closed = new Map<number, OpenOrder>();
  const exposure = new Map(book.exposureUnits(maker));
  let count = book.openOrders(maker).length;
  let lastOid = book.lastOid();

  function weigh(order: OpenOrder, sign: 1n | -1n): void {
    const market = markets[order.market];
    if (market === undefined) throw new RangeError(`no market ${order.market}`);
    const { token, units } = obligationOf(market, order);
    exposure.set(token, (exposure.get(token) ?? 0n) + sign * units);
  }

  function own(order: OpenOrder | undefined): OpenOrder | undefined {
    return order !== undefined && order.maker === maker && !closed.has(order.oid) ? order : undefined;
  }

  function open(order: NewOrder): number {
    lastOid += 1;
    const full: OpenOrder = { ...order, oid: lastOid, maker, filledUnits: 0n, placedMs: 0 };
    opened.set(lastOid, full);
    effects.push({ type: 'open', oid: lastOid, ...order });
    weigh(full, 1n);
    count += 1;
    return lastOid;
  }

  function find(oid: number): OpenOrder | undefined {
    return opened.get(oid) ?? own(book.order(oid));
  }

  function close(oid: number): void {
    const order = find(oid);
    if (order === undefined) throw new RangeError(`order ${oid} is not open`);
    if (!opened.delete(oid)) closed.set(oid, order);
    effects.push({ type: 'close', oid, reason: 'canceled' });
    weigh(order, -1n);
    count -= 1;
  }

  /** Best price of the book without what this draft closes: a level goes only when all its orders do. */
  function bookBest(market: number, side: Side): bigint | null {
    const gone = [...closed.values()].filter((order) => order.market === market && order.side === side);
    if (gone.length === 0) return book.bestTicks(market, side);
    const left = book.levels(market, side, gone.length + 1).find((level) => {
      const closedHere = gone.filter((order) => order.priceTicks === level.priceTicks).length;
      return level.orders > closedHere;
    });
    return left?.priceTicks ?? null;
  }

  function bestTicks(market: number, side: Side): bigint | null {
    let best = bookBest(market, side);
    for (const order of opened.values()) {
      if (order.market !== market || order.side !== side) continue;
      const better = best === null || (side === 'ask' ? order.priceTicks < best : order.priceTicks > best);
      if (better) best = order.priceTicks;
    }
    return best;
  }

  return {
    effects,
    open,
    close,
    order: find,
    orderByCloid: (cloid) =>
      [...opened.values()].find((order) => order.cloid === cloid) ?? own(book.orderByCloid(maker, cloid)),
    openCount: () => count,
    bestTicks,
    exposureUnits: (token) => exposure.get(token) ?? 0n,
  };
}
