import type { Book } from '../../core/book.js';
import { applyEffect, applyFill, isFilled, openedOrder, type OrderLife } from '../../core/book/order-life.js';
import type { Address, CloseReason, Market, OpenOrder, OrderFill, OrderLogRow } from '../../core/types.js';
import type { CompactedOrder } from '../../ledger/orders/compacted-book.js';
import { MAX_CLOSED_ORDERS } from './limits.js';
import { createOrderIndex, type OrderPlaces } from './order-places.js';

/** Where an order stands, in the wire's words. */
type OrderStatus = 'open' | 'filled' | 'canceled' | 'scheduledCancel' | 'delistedCanceled';

export interface KnownOrder {
  order: OpenOrder;
  state: OrderStatus;
  /** When the order got this state; null for a fill, whose time is in the ledger. */
  stateMs: number | null;
}

/** Present state of orders: every open one, and the latest closed ones of each maker. */
export interface OrderHistory {
  /** `book` must have applied the row already; unchanged orders are shared with it. */
  apply: (row: OrderLogRow, book?: Pick<Book, 'order'>) => void;
  applyFills: (fills: readonly OrderFill[]) => void;
  order: (oid: number) => KnownOrder | undefined;
  /** Every order of the maker that is still known, in no fixed order. */
  ofMaker: (maker: Address) => KnownOrder[];
  /** The newest order that had this client order id. */
  orderByCloid: (maker: Address, cloid: string) => KnownOrder | undefined;
  /** Rows of the order log about an order that is no longer in memory. */
  places: (oid: number) => OrderPlaces;
}

interface Tracked extends OrderLife {
  /** It is among the closed orders of its maker. */
  done: boolean;
}

/** Beginning of a history that does not start with the first row of the order log. */
interface KnownFrom {
  /** Rising by oid. */
  orders: readonly CompactedOrder[];
  /** Highest oid that was ever opened. */
  oid: number;
}

const STATE_OF: Readonly<Record<CloseReason | 'open' | 'filled', OrderStatus>> = {
  open: 'open',
  filled: 'filled',
  canceled: 'canceled',
  scheduledCancel: 'scheduledCancel',
  inventory: 'canceled',
  suspended: 'canceled',
  delisted: 'delistedCanceled',
  replaced: 'canceled',
};

/** An order as it was read, in the words of the wire. */
export function pastOrder({ order, state, closedMs }: CompactedOrder): KnownOrder {
  if (state === 'open' || state === 'filled') return { order, state, stateMs: closedMs };
  return { order, state: STATE_OF[state], stateMs: closedMs };
}

/**
 * Creates an empty history, or one that continues from `from`. `markets` is read at each use; `maxClosed` limits the closed orders kept per
 * maker.
 */
export function createHistory(
  markets: readonly Market[],
  maxClosed: number = MAX_CLOSED_ORDERS,
  from: KnownFrom = { orders: [], oid: 0 },
): OrderHistory {
  const tracked = new Map<number, Tracked>();
  const byCloid = new Map<string, number>();
  const openOf = new Map<Address, Set<number>>();
  const closedOf = new Map<Address, number[]>();
  /** Fills seen before their order: both logs are replayed, in no fixed order between them. */
  const early = new Map<number, bigint>();
  const index = createOrderIndex();
  let lastOid = from.oid;
  const keyOf = (maker: Address, cloid: string): string => `${maker}:${cloid}`;

  function open(order: OpenOrder): void {
    const filledUnits = early.get(order.oid);
    lastOid = Math.max(lastOid, order.oid);
    if (filledUnits !== undefined) early.delete(order.oid);
    const opened = filledUnits === undefined ? order : { ...order, filledUnits };
    track({
      order: opened,
      state: isFilled(opened, lotUnitsOf(opened)) ? 'filled' : 'open',
      closedMs: null,
      done: false,
    });
  }

  function track(entry: Tracked): void {
    const { order } = entry;
    tracked.set(order.oid, entry);
    const own = openOf.get(order.maker);
    if (own === undefined) openOf.set(order.maker, new Set([order.oid]));
    else own.add(order.oid);
    if (order.cloid !== null) byCloid.set(keyOf(order.maker, order.cloid), order.oid);
    if (entry.state !== 'open') finish(entry);
  }

  const lotUnitsOf = ({ market }: OpenOrder): bigint => markets[market]?.lotUnits ?? 1n;

  function finish(entry: Tracked): void {
    if (entry.done) return;
    entry.done = true;
    openOf.get(entry.order.maker)?.delete(entry.order.oid);
    const closed = closedOf.get(entry.order.maker) ?? [];
    closedOf.set(entry.order.maker, closed);
    closed.push(entry.order.oid);
    // Removes the oldest only when there are half as many again, so that the list is not copied for each removal.
    if (closed.length > maxClosed * 1.5) closed.splice(0, closed.length - maxClosed).forEach(forget);
  }

  function forget(oid: number): void {
    const order = tracked.get(oid)?.order;
    tracked.delete(oid);
    if (order === undefined || order.cloid === null) return;
    const key = keyOf(order.maker, order.cloid);
    if (byCloid.get(key) === oid) byCloid.delete(key);
  }

  function known(oid: number | undefined): KnownOrder | undefined {
    const entry = oid === undefined ? undefined : tracked.get(oid);
    if (entry === undefined) return undefined;
    const { order, state, closedMs } = entry;
    // Also when it was closed before: after a restart fills are applied before rows, and the answer must be the same.
    if (state === 'filled') return { order, state, stateMs: null };
    return { order, state: STATE_OF[state], stateMs: state === 'open' ? order.placedMs : closedMs };
  }

  // Sorted by their close, so that the oldest are removed first.
  const byClosing = [...from.orders].sort((a, b) => (a.closedMs ?? 0) - (b.closedMs ?? 0) || a.order.oid - b.order.oid);
  for (const { order, state, closedMs } of byClosing) track({ order, state, closedMs, done: false });
  // A client order id names the newest order that had it.
  for (const { order } of from.orders)
    if (order.cloid !== null) byCloid.set(keyOf(order.maker, order.cloid), order.oid);

  return {
    apply(row, book) {
      for (const effect of row.effects) {
        if (effect.type === 'open') {
          index.opened(effect.oid, row.orderSeq);
          open(openedOrder(row, effect, book));
          continue;
        }
        if (effect.type !== 'close' && effect.type !== 'reduce') continue;
        if (effect.type === 'close') index.closed(effect.oid, row.orderSeq);
        else index.reduced(effect.oid, row.orderSeq);
        const entry = tracked.get(effect.oid);
        if (entry === undefined) continue;
        applyEffect(entry, effect, row.timeMs, lotUnitsOf(entry.order));
        if (entry.state !== 'open') finish(entry);
      }
    },
    applyFills(fills) {
      for (const { oid, baseUnits } of fills) {
        const entry = tracked.get(oid);
        if (entry === undefined) {
          if (oid > lastOid) early.set(oid, (early.get(oid) ?? 0n) + baseUnits);
          continue;
        }
        applyFill(entry, baseUnits, null, lotUnitsOf(entry.order));
        if (entry.state !== 'open') finish(entry);
      }
    },
    order: (oid) => known(oid),
    ofMaker: (maker) =>
      [...(openOf.get(maker) ?? []), ...(closedOf.get(maker) ?? [])].flatMap((oid) => known(oid) ?? []),
    orderByCloid: (maker, cloid) => known(byCloid.get(keyOf(maker, cloid))),
    places: index.places,
  };
}
