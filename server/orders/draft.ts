import { openedOrder } from '../../core/book/order-life.js';
import { orderPayment, sideKey } from '../../core/book/maker-orders.js';
import { isArmedWithin } from '../../core/cut.js';
import { payToken } from '../../core/market.js';
import type { Address, CloseReason, Market, OpenOrder, OrderEffect, Side } from '../../core/types.js';
import type { AdmissionView } from './types.js';

/** A new order without an id. */
export type NewOrder = Pick<OpenOrder, 'market' | 'side' | 'priceTicks' | 'sizeLots' | 'tif' | 'cloid'>;

/**
 * The book as one maker's action sees it while its entries are judged in order: effects of earlier entries of the action are included, but
 * not yet in the book.
 */
export interface Draft {
  /** Effects so far, in order. */
  effects: OrderEffect[];
  /** Gives the order the next id. */
  open: (order: NewOrder) => number;
  /** Closes an open order; the returned function undoes the close, if nothing else has changed since. */
  close: (oid: number, reason?: CloseReason) => () => void;
  /** An open order of this maker. */
  order: (oid: number) => OpenOrder | undefined;
  orderByCloid: (cloid: string) => OpenOrder | undefined;
  openCount: () => number;
  /**
   * Best price that orders of the other side may not reach, over the orders of all makers; null when there is none. These orders do not
   * count, because they would keep others away without risk to their maker: an order with less than the market's minimum left; orders of a
   * maker that cuts leave out because its scheduled cancel is near; orders that a larger one keeps out of cuts, which it crosses; and orders that pay a token of which their maker offers more than it
   * has, where cancelled orders count as long as curves may still offer them.
   */
  defendedTicks: (market: number, side: Side) => bigint | null;
  /** What all open orders of the maker could pay in this token, in its units. */
  exposureUnits: (token: Address) => bigint;
}

type DraftView = Pick<AdmissionView, 'book' | 'markets' | 'available' | 'minOrderUnits' | 'rowMs'>;

/**
 * State of a draft. The draft's functions are not closures, because creating a dozen of them for every action takes longer than most
 * drafts.
 */
interface Held {
  readonly view: DraftView;
  readonly maker: Address;
  readonly effects: OrderEffect[];
  readonly opened: Map<number, OpenOrder>;
  readonly openedCloids: Map<string, number>;
  readonly closed: Set<number>;
  /** Number of open orders that the draft opened, by price, by market and side. */
  readonly openedAt: Map<number, Map<bigint, number>>;
  /** Difference to the book, by token. */
  readonly exposure: Map<Address, bigint>;
  /**
   * Whether a maker's orders defend their price, by the token that they pay; computed once per draft. It depends on the book, on balances
   * and on the time only. None of them changes while an action is judged, and the draft's own effects are in none of them.
   */
  readonly defending: Map<Address, Map<Address, boolean>>;
  /**
   * Orders that crossing ones keep out of cuts, by market, without those that the draft closed. They defend nothing: nobody could take them up
   * on it. A maker that cuts leave out keeps nobody out either.
   */
  readonly crossed: Map<number, ReadonlySet<number>>;
  /** Best price that the book's orders defend, by market and side, without those that the draft closed. */
  readonly bookBest: Map<number, bigint | null>;
  count: number;
  lastOid: number;
}

/** An empty draft of an action of `maker`. */
export function createDraft(view: DraftView, maker: Address): Draft {
  const { book } = view;
  const held: Held = {
    view,
    maker,
    effects: [],
    opened: new Map(),
    openedCloids: new Map(),
    closed: new Set(),
    openedAt: new Map(),
    exposure: new Map(),
    defending: new Map(),
    crossed: new Map(),
    bookBest: new Map(),
    count: book.openCount(maker),
    lastOid: book.lastOid(),
  };
  // Method syntax: for function values of properties the TypeScript loader would set a name on each at every call.
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
    defendedTicks(market, side) {
      return defendedTicks(held, market, side);
    },
    exposureUnits(token) {
      return book.exposureOf(maker, token) + (held.exposure.get(token) ?? 0n);
    },
  };
}

function bump(counts: Map<bigint, number>, priceTicks: bigint, change: 1 | -1): void {
  const count = (counts.get(priceTicks) ?? 0) + change;
  if (count === 0) counts.delete(priceTicks);
  else counts.set(priceTicks, count);
}

function openedAtOf({ openedAt }: Held, market: number, side: Side): Map<bigint, number> {
  const key = sideKey(market, side);
  let counts = openedAt.get(key);
  if (counts === undefined) {
    counts = new Map();
    openedAt.set(key, counts);
  }
  return counts;
}

/** Adds an order to the draft's counts, or removes it. */
function weigh(held: Held, order: OpenOrder, sign: 1 | -1): void {
  const { token, units } = orderPayment(marketIn(held.view.markets, order.market), order);
  const before = held.exposure.get(token) ?? 0n;
  held.exposure.set(token, sign === 1 ? before + units : before - units);
  held.count += sign;
}

function setOpened(held: Held, order: OpenOrder, isOpen: boolean): void {
  bump(openedAtOf(held, order.market, order.side), order.priceTicks, isOpen ? 1 : -1);
  if (isOpen) held.opened.set(order.oid, order);
  else held.opened.delete(order.oid);
  if (order.cloid !== null && isOpen) held.openedCloids.set(order.cloid, order.oid);
  else if (order.cloid !== null) held.openedCloids.delete(order.cloid);
}

function setClosed(held: Held, order: OpenOrder, isClosed: boolean): void {
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
  const key = sideKey(order.market, order.side);
  const best = held.bookBest.get(key);
  setOpen(held, order, ofDraft, false);
  // Only a close at the best defended price can change it: an order at a better price does not defend.
  if (!ofDraft && best === order.priceTicks) held.bookBest.delete(key);
  const isCrossed = !ofDraft && held.crossed.get(order.market)?.size !== 0;
  if (isCrossed) forgetCrossed(held, order.market);
  held.effects.push({ type: 'close', oid, reason });
  return () => {
    held.effects.pop();
    setOpen(held, order, ofDraft, true);
    // A best price computed while the order was closed is no longer valid; one computed before is valid again.
    if (best === undefined) held.bookBest.delete(key);
    else held.bookBest.set(key, best);
    if (isCrossed) forgetCrossed(held, order.market);
  };
}

function setOpen(held: Held, order: OpenOrder, ofDraft: boolean, isOpen: boolean): void {
  if (ofDraft) setOpened(held, order, isOpen);
  else setClosed(held, order, !isOpen);
  weigh(held, order, isOpen ? 1 : -1);
}

function defendedTicks(held: Held, market: number, side: Side): bigint | null {
  let best = bookBestTicks(held, market, side);
  for (const priceTicks of held.openedAt.get(sideKey(market, side))?.keys() ?? []) {
    if (best === null || (side === 'ask' ? priceTicks < best : priceTicks > best)) best = priceTicks;
  }
  return best;
}

function bookBestTicks(held: Held, index: number, side: Side): bigint | null {
  const key = sideKey(index, side);
  const known = held.bookBest.get(key);
  if (known !== undefined) return known;
  const { book, markets, minOrderUnits } = held.view;
  const market = marketIn(markets, index);
  const crossed = crossedIn(held, index);
  const isCounted = counts(held, payToken(market, side));
  const defends = crossed.size === 0 ? isCounted : (order: OpenOrder) => !crossed.has(order.oid) && isCounted(order);
  const best = book.bestTicksWorth(index, side, minOrderUnits(market), defends);
  held.bookBest.set(key, best);
  return best;
}

function crossedIn({ crossed, closed, view }: Held, index: number): ReadonlySet<number> {
  const { book, rowMs } = view;
  let found = crossed.get(index);
  if (found === undefined) {
    const isInCut = ({ maker }: OpenOrder): boolean => !isArmedWithin(book.armed().get(maker) ?? null, rowMs);
    found = book.crossedOids(index, (order) => !closed.has(order.oid) && isInCut(order));
    crossed.set(index, found);
  }
  return found;
}

/** What is closed, or open again, may let others into cuts of a market that crosses, or keep them out. */
function forgetCrossed({ crossed, bookBest }: Held, market: number): void {
  crossed.delete(market);
  for (const side of ['ask', 'bid'] as const) bookBest.delete(sideKey(market, side));
}

/**
 * Tells which orders of the book that pay in `token` defend their price, if they are large enough: open orders whose makers are not left
 * out of cuts and can pay.
 */
function counts({ closed, defending, view }: Held, token: Address): (order: OpenOrder) => boolean {
  const { book, rowMs } = view;
  const makers = defending.get(token) ?? new Map<Address, boolean>();
  defending.set(token, makers);
  const isBacked = (maker: Address): boolean =>
    book.committedUnits(maker, token, rowMs) <= view.available(maker, token);
  const defends = (maker: Address): boolean => {
    const known = makers.get(maker);
    if (known !== undefined) return known;
    const found = !book.wasLeftOut(maker, rowMs) && isBacked(maker);
    makers.set(maker, found);
    return found;
  };
  return ({ oid, maker }) => !closed.has(oid) && defends(maker);
}

/** The listed market of an order. Throws RangeError, because an order's market is always listed. */
export function marketIn(markets: readonly Market[], index: number): Market {
  const market = markets[index];
  if (market === undefined) throw new RangeError(`no market ${index}`);
  return market;
}
