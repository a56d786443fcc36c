import type { Address, OpenOrder, OrderFill, OrderLogRow, Side } from './types.js';

/** All open orders at one price. `lots` floors each order's remaining size; `orders` counts them. */
export interface BookLevel {
  priceTicks: bigint;
  lots: bigint;
  orders: number;
}

/**
 * The projection of the order log and of attributed fills. Rows are applied without judging them again: they were accepted before they were
 * written.
 */
export interface Book {
  /** `twin` is another book that may already have applied the row: orders that it holds with equal values are shared instead of copied. */
  apply(row: OrderLogRow, twin?: Pick<Book, 'order'>): void;
  /** Reduces the named orders; an order left with less than one lot closes as filled. Fills of unknown or closed oids are only counted. */
  applyFills(fills: readonly OrderFill[]): void;
  lastOrderSeq(): number;
  lastOid(): number;
  order(oid: number): OpenOrder | undefined;
  orderByCloid(maker: Address, cloid: string): OpenOrder | undefined;
  /** Oldest first. */
  openOrders(maker: Address): OpenOrder[];
  /** All open orders of one side, including those that cross: best price first, then lower maker address, then lower oid. */
  sideOrders(market: number, side: Side): OpenOrder[];
  /** Price levels of the orders that a crossing does not leave out: best price first, at most `limit`. The two sides never cross. */
  levels(market: number, side: Side, limit?: number): BookLevel[];
  /** The same levels without a limit, computed one by one while the caller iterates; the book must not change meanwhile. */
  eachLevel(market: number, side: Side): Iterable<BookLevel>;
  /** Best price of these levels, null when there are none. */
  bestTicks(market: number, side: Side): bigint | null;
  /**
   * The open orders that a crossing leaves out among those that `counts` accepts: no cut of exactly these offers them. Empty while the best
   * orders of the two sides don't cross.
   */
  crossedOids(market: number, counts: (order: OpenOrder) => boolean): ReadonlySet<number>;
  /**
   * Best price of an open order whose whole lots are worth at least `quoteUnits` at its price and that `counts` accepts, if given. Orders
   * that cross are looked at, too.
   */
  bestTicksWorth(
    market: number,
    side: Side,
    quoteUnits: bigint,
    counts?: ((order: OpenOrder) => boolean) | null,
  ): bigint | null;
  /**
   * What the maker's open orders could pay, per token address, over all markets: base units of its asks' remaining sizes and
   * quote units of its bids' remaining sizes at their prices, floored per order.
   */
  exposureUnits(maker: Address): Map<Address, bigint>;
  /** The part of `exposureUnits` in one token. */
  exposureOf(maker: Address, token: Address): bigint;
  /**
   * What the maker could pay in one token, including what curves of the last seconds may still offer: for each side of a market the most
   * that its open orders could pay at any time within the last 10 s that this book has seen. Where that is above what the maker has, the
   * exposure limit may trim orders that it opened since.
   */
  committedUnits(maker: Address, token: Address, nowMs: number): bigint;
  openCount(maker: Address): number;
  makersWithOrders(): Address[];
  /** Makers with open orders in a market, in no fixed order. */
  makersIn(market: number): Iterable<Address>;
  /** A number that differs after every change of the market's open orders; only compared within one book. */
  version(market: number): number;
  /** Makers with an armed scheduled cancel and its time, due ones included until their trigger is applied. */
  armed(): ReadonlyMap<Address, number>;
  /** Whether cuts leave the maker out at `nowMs`, or did within the last 10 s, because its scheduled cancel is or was near. */
  wasLeftOut(maker: Address, nowMs: number): boolean;
  /** How many of the maker's scheduled cancels came due on the UTC day that holds `timeMs`. */
  triggers(maker: Address, timeMs: number): number;
  /** Used nonces of a signer, at most the 100 highest, ascending. The returned array changes as rows are applied. */
  nonces(signer: Address): readonly number[];
  /** How many fills and closes named an order that was closed, or never opened. */
  unmatched(): { fills: number; closes: number };
  /** An independent copy: a change of one does not change the other. */
  clone(): Book;
}
