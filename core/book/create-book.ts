import type { Book } from '../book.js';
import type { Address, Market, OpenOrder, OrderFill, OrderLogRow, Side } from '../types.js';
import { ceilDiv } from '../amounts.js';
import { payToken, quoteUnitsCeil } from '../market.js';
import { crossingOf, UNCROSSED, type Crossing, type RestingLots } from './crossing.js';
import { createMakerOrders, sideKey, type MakerOrders } from './maker-orders.js';
import { createNonceSet, type NonceSet } from './nonces.js';
import { createOffers, type Offers } from './offers.js';
import { createQuoting } from './quoting.js';
import { createSchedules, type Schedules, type TriggerDay } from './schedules.js';
import { filledOrder, isFilled, openedOrder, reducedOrder, remainingLots, type OpenEffect } from './order-life.js';
import { createSideBook, type SideBook } from './side-book.js';

/**
 * A log that can't be replayed: rows or oids that do not rise, or a market that is not listed. The log or its reader is at fault, not an
 * order.
 */
export class BookError extends Error {
  override readonly name = 'BookError';

  constructor(
    readonly code: 'row_out_of_order' | 'oid_out_of_order' | 'unknown_market',
    message: string,
  ) {
    super(message);
  }
}

/** What replaying an order log gives up to one of its rows, fills included up to some generation. Open orders rise by oid. */
export interface CompactedBook {
  orderSeq: number;
  /** Highest oid that was ever opened. */
  oid: number;
  orders: Iterable<OpenOrder>;
  nonces: ReadonlyMap<Address, readonly number[]>;
  armed: ReadonlyMap<Address, number>;
  /** Scheduled cancels that came due on each maker's newest UTC day. */
  triggers: ReadonlyMap<Address, TriggerDay>;
}

interface Seed {
  orders: Iterable<OpenOrder>;
  early: ReadonlyMap<number, bigint>;
  nonces: NonceSet;
  schedules: Schedules;
  offers: Offers;
  orderSeq: number;
  oid: number;
  unmatched: { fills: number; closes: number };
}

/**
 * Creates an empty book, or one in the state of `compacted`. `markets` is read at each use, so markets may be appended to it later. `apply`
 * throws BookError when rows or oids do not rise, or when an order names a market that is not listed; nothing of such a row is applied.
 * Rows and fills commute: a fill of an oid that is still to come is kept until its order opens, so the book depends only on which rows and
 * fills were applied, not on how they interleaved.
 */
export function createBook(markets: readonly Market[], compacted?: CompactedBook): Book {
  return createFrom(markets, {
    orders: compacted?.orders ?? [],
    early: new Map(),
    nonces: createNonceSet(compacted?.nonces),
    schedules: createSchedules(compacted?.armed, compacted?.triggers),
    offers: createOffers(),
    orderSeq: compacted?.orderSeq ?? 0,
    oid: compacted?.oid ?? 0,
    unmatched: { fills: 0, closes: 0 },
  });
}

function* filtered(orders: Iterable<OpenOrder>, accepts: (order: OpenOrder) => boolean): Iterable<OpenOrder> {
  for (const order of orders) if (accepts(order)) yield order;
}

function* restingLots(orders: Iterable<OpenOrder>, lotUnits: bigint): Iterable<RestingLots> {
  for (const order of orders) {
    yield { oid: order.oid, priceTicks: order.priceTicks, sizeLots: remainingLots(order, lotUnits) };
  }
}

function createFrom(markets: readonly Market[], seed: Seed): Book {
  const orders = new Map<number, OpenOrder>();
  const makers = new Map<Address, MakerOrders>();
  const sides = new Map<number, SideBook>();
  const quoting = createQuoting();
  const crossings = new Map<number, { version: number; crossing: Crossing }>();
  const early = new Map(seed.early);
  const { nonces, schedules, offers } = seed;
  const unmatched = { ...seed.unmatched };
  let lastOrderSeq = seed.orderSeq;
  let lastOid = seed.oid;

  const marketOf = (index: number): Market => {
    const market = markets[index]?.index === index ? markets[index] : markets.find((listed) => listed.index === index);
    if (market === undefined) throw new BookError('unknown_market', `market ${index} is not listed`);
    return market;
  };
  const sideOf = (market: number, side: Side): SideBook | undefined => sides.get(sideKey(market, side));

  /** Cached per market until its orders change. */
  const crossingIn = (index: number): Crossing => {
    const [asks, bids] = [sideOf(index, 'ask'), sideOf(index, 'bid')];
    const [ask, bid] = [asks?.bestTicks(0) ?? null, bids?.bestTicks(0) ?? null];
    if (ask === null || bid === null || ask > bid) return UNCROSSED;
    const version = quoting.version(index);
    const known = crossings.get(index);
    if (known?.version === version) return known.crossing;
    const { lotUnits } = marketOf(index);
    const crossing = crossingOf(restingLots(asks!.inOrder(), lotUnits), restingLots(bids!.inOrder(), lotUnits));
    crossings.set(index, { version, crossing });
    return crossing;
  };
  const crossedOids = (index: number, counts: (order: OpenOrder) => boolean): ReadonlySet<number> => {
    const oids = new Set<number>();
    if (crossingIn(index) === UNCROSSED) return oids;
    const { lotUnits } = marketOf(index);
    const accepted = (side: Side): Iterable<OpenOrder> => filtered(sideOf(index, side)!.inOrder(), counts);
    const crossing = crossingOf(restingLots(accepted('ask'), lotUnits), restingLots(accepted('bid'), lotUnits));
    for (const side of ['ask', 'bid'] as const) {
      let left = side === 'ask' ? crossing.asks : crossing.bids;
      for (const { oid } of accepted(side)) {
        if (left-- === 0) break;
        oids.add(oid);
      }
    }
    return oids;
  };
  const leftOut = (market: number, side: Side): number => crossingIn(market)[side === 'ask' ? 'asks' : 'bids'];

  const insert = (order: OpenOrder): void => {
    const market = marketOf(order.market);
    let side = sideOf(order.market, order.side);
    if (side === undefined) {
      side = createSideBook(order.side, market.lotUnits);
      sides.set(sideKey(order.market, order.side), side);
    }
    let maker = makers.get(order.maker);
    if (maker === undefined) {
      maker = createMakerOrders();
      makers.set(order.maker, maker);
    }
    orders.set(order.oid, order);
    side.add(order);
    maker.add(order, market);
    quoting.added(order);
  };

  const remove = (order: OpenOrder): void => {
    const maker = makers.get(order.maker)!;
    orders.delete(order.oid);
    sideOf(order.market, order.side)!.remove(order);
    maker.remove(order, marketOf(order.market));
    quoting.removed(order);
    if (maker.isEmpty()) makers.delete(order.maker);
  };

  const change = (order: OpenOrder, next: OpenOrder): void => {
    const market = marketOf(order.market);
    if (isFilled(next, market.lotUnits)) {
      remove(order);
      return;
    }
    orders.set(order.oid, next);
    sideOf(order.market, order.side)!.replace(order, next);
    makers.get(order.maker)!.replace(order, next, market);
    quoting.changed(order);
  };

  const fill = (order: OpenOrder, baseUnits: bigint): void => change(order, filledOrder(order, baseUnits));

  /** Called before a row reduces or closes an order: curves that were cut until then may still offer what it had. */
  const takeBack = ({ maker, market, side }: OpenOrder, nowMs: number): void => {
    const key = sideKey(market, side);
    offers.takenBack(maker, key, makers.get(maker)!.exposureOn(key), nowMs);
  };

  const reduce = (oid: number, lots: bigint, nowMs: number): void => {
    const order = orders.get(oid);
    if (order === undefined) {
      unmatched.closes += 1;
      return;
    }
    takeBack(order, nowMs);
    change(order, reducedOrder(order, lots));
  };

  const open = (row: OrderLogRow, effect: OpenEffect, twin?: Pick<Book, 'order'>): void => {
    lastOid = effect.oid;
    const order = openedOrder(row, effect, twin);
    insert(order);
    if (early.size === 0) return;
    const filledUnits = early.get(order.oid);
    for (const oid of early.keys()) if (oid <= lastOid) early.delete(oid);
    if (filledUnits !== undefined) fill(order, filledUnits);
  };

  const close = (oid: number, nowMs: number): void => {
    const order = orders.get(oid);
    if (order === undefined) {
      unmatched.closes += 1;
      return;
    }
    takeBack(order, nowMs);
    remove(order);
  };

  const committedUnits = (maker: Address, token: Address, nowMs: number): bigint => {
    const own = makers.get(maker);
    let units = own?.exposureOf(token) ?? 0n;
    offers.eachPeak(maker, nowMs, (key, peakUnits) => {
      if (payToken(marketOf(key >> 1), key % 2 === 0 ? 'ask' : 'bid') !== token) return;
      const openUnits = own?.exposureOn(key) ?? 0n;
      if (peakUnits > openUnits) units += peakUnits - openUnits;
    });
    return units;
  };

  /** Runs before any effect of the row is applied, so that a refused row leaves the book unchanged. */
  const check = (row: OrderLogRow): void => {
    if (row.orderSeq <= lastOrderSeq) {
      throw new BookError('row_out_of_order', `order row ${row.orderSeq} applied after ${lastOrderSeq}`);
    }
    let last = lastOid;
    for (const effect of row.effects) {
      if (effect.type !== 'open') continue;
      if (effect.oid <= last) throw new BookError('oid_out_of_order', `oid ${effect.oid} opened after ${last}`);
      marketOf(effect.market);
      last = effect.oid;
    }
  };

  const apply = (row: OrderLogRow, twin?: Pick<Book, 'order'>): void => {
    check(row);
    lastOrderSeq = row.orderSeq;
    if (row.signer !== null && row.nonce !== null) nonces.add(row.signer, row.nonce);
    for (const effect of row.effects) {
      if (effect.type === 'open') open(row, effect, twin);
      else if (effect.type === 'close') close(effect.oid, row.timeMs);
      else if (effect.type === 'reduce') reduce(effect.oid, effect.lots, row.timeMs);
      else if (effect.type === 'schedule') schedules.set(row.maker, effect.timeMs, row.timeMs);
      else if (effect.type === 'trigger') schedules.trigger(row.maker, effect.timeMs);
    }
  };

  const applyFill = ({ oid, maker, market, side, priceTicks, baseUnits }: OrderFill): void => {
    // Rounded up: rounding down would leave a remainder of a unit above an amount that the inventory backs exactly.
    const paidUnits = side === 'ask' ? baseUnits : quoteUnitsCeil(marketOf(market), priceTicks, baseUnits);
    offers.paid(maker, sideKey(market, side), paidUnits);
    const order = orders.get(oid);
    if (order !== undefined) fill(order, baseUnits);
    else if (oid > lastOid) early.set(oid, (early.get(oid) ?? 0n) + baseUnits);
    else unmatched.fills += 1;
  };

  for (const order of seed.orders) insert(order);

  return {
    apply,
    applyFills: (fills) => fills.forEach(applyFill),
    lastOrderSeq: () => lastOrderSeq,
    lastOid: () => lastOid,
    order: (oid) => orders.get(oid),
    orderByCloid: (maker, cloid) => makers.get(maker)?.byCloid(cloid),
    openOrders: (maker) => makers.get(maker)?.orders() ?? [],
    sideOrders: (market, side) => sideOf(market, side)?.orders() ?? [],
    levels: (market, side, limit = Number.MAX_SAFE_INTEGER) =>
      sideOf(market, side)?.levels(limit, leftOut(market, side)) ?? [],
    eachLevel: (market, side) => sideOf(market, side)?.eachLevel(leftOut(market, side)) ?? [],
    bestTicks: (market, side) => sideOf(market, side)?.bestTicks(leftOut(market, side)) ?? null,
    crossedOids,
    bestTicksWorth: (market, side, quoteUnits, counts = null) =>
      sideOf(market, side)?.bestTicksWorth(ceilDiv(quoteUnits, marketOf(market).tickLotUnits), counts) ?? null,
    exposureUnits: (maker) => makers.get(maker)?.exposureUnits() ?? new Map<Address, bigint>(),
    exposureOf: (maker, token) => makers.get(maker)?.exposureOf(token) ?? 0n,
    committedUnits,
    openCount: (maker) => makers.get(maker)?.count() ?? 0,
    makersWithOrders: () => [...makers.keys()],
    makersIn: quoting.makers,
    version: quoting.version,
    armed: schedules.armed,
    wasLeftOut: schedules.wasLeftOut,
    triggers: schedules.triggers,
    nonces: (signer) => nonces.of(signer),
    unmatched: () => ({ ...unmatched }),
    clone: () =>
      createFrom(markets, {
        orders: orders.values(),
        early,
        nonces: nonces.clone(),
        schedules: schedules.clone(),
        offers: offers.clone(),
        orderSeq: lastOrderSeq,
        oid: lastOid,
        unmatched,
      }),
  };
}
