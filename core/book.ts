import type { Address, OpenOrder, OrderFill, OrderLogRow, Side } from './types.js';

/** All open orders at one price. `lots` floors each order's remaining size; `orders` counts them. */
export interface BookLevel {
  priceTicks: bigint;
  lots: bigint;
  orders: number;
}

/** The projection of the order log and of attributed fills. Applying is total: an accepted row is never judged again. */
export interface Book {
  /** `twin` may hold equal values of the orders that the row opens: those are then shared instead of made again. */
  apply(row: OrderLogRow, twin?: Pick<Book, 'order'>): void;
  /** Reduces the named orders; an order left with less than one lot closes as filled. Unknown or closed oids only count. */
  applyFills(fills: readonly OrderFill[]): void;
  lastOrderSeq(): number;
  lastOid(): number;
  order(oid: number): OpenOrder | undefined;
  orderByCloid(maker: Address, cloid: string): OpenOrder | undefined;
  /** Oldest first. */
  openOrders(maker: Address): OpenOrder[];
  /** All open orders of one side, those that cross included: best price first, then lower maker address, then lower oid. */
  sideOrders(market: number, side: Side): OpenOrder[];
  /** The orders that a crossing does not leave out: best price first, at most `limit` levels. The two sides never cross. */
  levels(market: number, side: Side, limit?: number): BookLevel[];
  /** The same without a limit, each made when it is asked for; the book must not change meanwhile. */
  eachLevel(market: number, side: Side): Iterable<BookLevel>;
  /** Best price of the same. */
  bestTicks(market: number, side: Side): bigint | null;
  /**
   * Best price at which an open order rests whose whole lots are worth at least `quoteUnits` at it, and that `counts`, if given. Whether it
   * crosses does not matter.
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
   * The same with what curves of a moment ago may still offer: of each side of a market what its open orders could pay, or the most that they
   * could pay within the last 10 s, as far as this book has seen it. Where it is above what the maker has, the exposure limit may trim what
   * it opened since.
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
  /** Whether cuts leave the maker out at `nowMs`, or did a moment ago, because its armed time is or was near. */
  wasLeftOut(maker: Address, nowMs: number): boolean;
  /** How many of the maker's scheduled cancels came due on the UTC day that holds `timeMs`. */
  triggers(maker: Address, timeMs: number): number;
  /** Used nonces of a signer, at most the 100 highest, ascending; it changes as rows are applied. */
  nonces(signer: Address): readonly number[];
  /** How many fills and closes named an order that was closed, or never opened. */
  unmatched(): { fills: number; closes: number };
  /** An independent copy: what is applied to one does not show in the other. */
  clone(): Book;
}
