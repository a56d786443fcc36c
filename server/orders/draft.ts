import { openedOrder } from '../../core/book.js';
import type { Book } from '../../core/book.js';
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

/** What a draft holds. Its functions are not closures: making a dozen of them for every action takes longer than most drafts. */
interface Held {
  readonly view: Pick<AdmissionView, 'book' | 'markets'>;
  readonly maker: Address;
  readonly effects: OrderEffect[];
  readonly opened: Map<number, OpenOrder>;
  readonly openedCloids: Map<string, number>;
  readonly closed: Set<number>;
  /** By market and side. */
  readonly sides: Map<number, SideChange>;
  /** Difference to the book, by token. */
  readonly exposure: Map<Address, bigint>;
  count: number;
  lastOid: number;
}

/** An empty draft of an action of `maker`. */
export function createDraft(view: Pick<AdmissionView, 'book' | 'markets'>, maker: Address): Draft {
  const { book } = view;
  const held: Held = {
    view,
    maker,
    effects: [],
    opened: new Map(),
    openedCloids: new Map(),
    closed: new Set(),
    sides: new Map(),
    exposure: new Map(),
    count: book.openCount(maker),
    lastOid: book.lastOid(),
  };
  // Methods, which have their names by themselves: the loader names every function that is a property's value when it is made.
  return {
    effects: held.effects,
    open(order) {
      return open(held, order);
    },
    close(oid, reason = 'canceled') {
      return close(held, oid, reason);
    },
    order(oid) {
      return find(held, oid);
    },
    orderByCloid(cloid) {
      const oid = held.openedCloids.get(cloid);
      return oid === undefined ? own(held, book.orderByCloid(maker, cloid)) : held.opened.get(oid);
    },
    openCount() {
      return held.count;
    },
    bestTicks(market, side) {
      return bestTicks(held, market, side);
    },
    exposureUnits(token) {
      return book.exposureOf(maker, token) + (held.exposure.get(token) ?? 0n);
    },
  };
}

const sideKey = (market: number, side: Side): number => 2 * market + (side === 'ask' ? 0 : 1);

function bump(counts: Map<bigint, number>, priceTicks: bigint, change: 1 | -1): void {
  const count = (counts.get(priceTicks) ?? 0) + change;
  if (count === 0) counts.delete(priceTicks);
  else counts.set(priceTicks, count);
}

function sideOf({ sides }: Held, market: number, side: Side): SideChange {
  const key = sideKey(market, side);
  let change = sides.get(key);
  if (change === undefined) {
    change = { closedAt: new Map(), closedCount: 0, openedAt: new Map() };
    sides.set(key, change);
  }
  return change;
}

/** Books an order in or out of what the draft holds. */
function weigh(held: Held, order: OpenOrder, sign: 1 | -1): void {
  const { token, units } = orderPayment(marketIn(held.view.markets, order.market), order);
  const before = held.exposure.get(token) ?? 0n;
  held.exposure.set(token, sign === 1 ? before + units : before - units);
  held.count += sign;
}

function setOpened(held: Held, order: OpenOrder, isOpen: boolean): void {
  bump(sideOf(held, order.market, order.side).openedAt, order.priceTicks, isOpen ? 1 : -1);
  if (isOpen) held.opened.set(order.oid, order);
  else held.opened.delete(order.oid);
  if (order.cloid !== null && isOpen) held.openedCloids.set(order.cloid, order.oid);
  else if (order.cloid !== null) held.openedCloids.delete(order.cloid);
}

function setClosed(held: Held, order: OpenOrder, isClosed: boolean): void {
  const change = sideOf(held, order.market, order.side);
  bump(change.closedAt, order.priceTicks, isClosed ? 1 : -1);
  change.closedCount += isClosed ? 1 : -1;
  if (isClosed) held.closed.add(order.oid);
  else held.closed.delete(order.oid);
}

function own({ maker, closed }: Held, order: OpenOrder | undefined): OpenOrder | undefined {
  return order !== undefined && order.maker === maker && !closed.has(order.oid) ? order : undefined;
}

const find = (held: Held, oid: number): OpenOrder | undefined =>
  held.opened.get(oid) ?? own(held, held.view.book.order(oid));

function open(held: Held, { market, side, priceTicks, sizeLots, tif, cloid }: NewOrder): number {
  const oid = held.lastOid + 1;
  held.lastOid = oid;
  const effect = { type: 'open' as const, oid, market, side, priceTicks, sizeLots, tif, cloid };
  const order = openedOrder({ maker: held.maker, timeMs: 0 }, effect);
  setOpened(held, order, true);
  held.effects.push(effect);
  weigh(held, order, 1);
  return oid;
}

function close(held: Held, oid: number, reason: CloseReason): () => void {
  const order = find(held, oid);
  if (order === undefined) throw new RangeError(`order ${oid} is not open`);
  const ofDraft = held.opened.has(oid);
  setOpen(held, order, ofDraft, false);
  held.effects.push({ type: 'close', oid, reason });
  return () => {
    held.effects.pop();
    setOpen(held, order, ofDraft, true);
  };
}

function setOpen(held: Held, order: OpenOrder, ofDraft: boolean, isOpen: boolean): void {
  if (ofDraft) setOpened(held, order, isOpen);
  else setClosed(held, order, !isOpen);
  weigh(held, order, isOpen ? 1 : -1);
}

function bestTicks(held: Held, market: number, side: Side): bigint | null {
  const change = held.sides.get(sideKey(market, side));
  const { book } = held.view;
  if (change === undefined) return book.bestTicks(market, side);
  let best = bookBest(book, change, market, side);
  for (const priceTicks of change.openedAt.keys()) {
    if (best === null || (side === 'ask' ? priceTicks < best : priceTicks > best)) best = priceTicks;
  }
  return best;
}

/** Best price of the book without what the draft closed: a level goes only when all its orders do. */
function bookBest(book: Book, change: SideChange, market: number, side: Side): bigint | null {
  const best = book.bestTicks(market, side);
  if (best === null || !change.closedAt.has(best)) return best;
  // Among one level more than there are closed orders, one has an order left, if any has.
  const levels = book.levels(market, side, change.closedCount + 1);
  return levels.find((level) => level.orders > (change.closedAt.get(level.priceTicks) ?? 0))?.priceTicks ?? null;
}

/** The listed market of an order. Throws RangeError, because an order's market is always listed. */
export function marketIn(markets: readonly Market[], index: number): Market {
  const market = markets[index];
  if (market === undefined) throw new RangeError(`no market ${index}`);
  return market;
}
