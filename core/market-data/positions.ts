/**
 * A maker's position in one market from its fills: what it bought and sold, and its profit from closing what it had opened. Counted from
 * the first fill on: deposits and withdrawals move no position, so that selling what was deposited opens a short one. All sums are exact
 * but one: when a part of a position is closed, its share of the cost is rounded towards zero, and the open rest keeps the remainder, so
 * that no unit is lost.
 */
import { absBig } from '../amounts.js';
import type { Side } from '../types.js';

/** Amounts are units of the market's base and quote token, and never negative but for `realisedUnits`. */
export interface Position {
  boughtBaseUnits: bigint;
  boughtQuoteUnits: bigint;
  soldBaseUnits: bigint;
  soldQuoteUnits: bigint;
  /** Profit of what was closed, in quote units. */
  realisedUnits: bigint;
}

export const NO_POSITION: Position = {
  boughtBaseUnits: 0n,
  boughtQuoteUnits: 0n,
  soldBaseUnits: 0n,
  soldQuoteUnits: 0n,
  realisedUnits: 0n,
};

/** A maker's part of a fill: on the bid side it buys. */
export interface PositionPart {
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
}

/** Base units held open: more than zero when more was bought than sold. */
export const openUnits = ({ boughtBaseUnits, soldBaseUnits }: Position): bigint => boughtBaseUnits - soldBaseUnits;

/** Quote units that the open position cost, less than zero for a short one: what it was sold for. */
export const costUnits = ({ realisedUnits, soldQuoteUnits, boughtQuoteUnits }: Position): bigint =>
  realisedUnits - (soldQuoteUnits - boughtQuoteUnits);

/**
 * The profit that a part realises, in quote units: zero where it opens a position. A part that reverses a position closes the old one and
 * opens a new one.
 */
export function closedUnits(position: Position, { side, baseUnits, quoteUnits }: PositionPart): bigint {
  const open = openUnits(position);
  const closes = side === 'ask' ? open > 0n : open < 0n;
  if (!closes || baseUnits === 0n) return 0n;
  const size = absBig(open);
  const closing = baseUnits < size ? baseUnits : size;
  const paid = (quoteUnits * closing) / baseUnits;
  const cost = (costUnits(position) * closing) / size;
  return side === 'ask' ? paid - cost : -paid - cost;
}

/** A position after a part that realised so much. */
export function afterPart(position: Position, part: PositionPart, closed: bigint): Position {
  const realisedUnits = position.realisedUnits + closed;
  if (part.side === 'bid') {
    return {
      ...position,
      boughtBaseUnits: position.boughtBaseUnits + part.baseUnits,
      boughtQuoteUnits: position.boughtQuoteUnits + part.quoteUnits,
      realisedUnits,
    };
  }
  return {
    ...position,
    soldBaseUnits: position.soldBaseUnits + part.baseUnits,
    soldQuoteUnits: position.soldQuoteUnits + part.quoteUnits,
    realisedUnits,
  };
}

/** A position less its newest parts, whose sums are `taken`: every number in it is a sum over parts. */
export function withoutParts(position: Position, taken: Position): Position {
  return {
    boughtBaseUnits: position.boughtBaseUnits - taken.boughtBaseUnits,
    boughtQuoteUnits: position.boughtQuoteUnits - taken.boughtQuoteUnits,
    soldBaseUnits: position.soldBaseUnits - taken.soldBaseUnits,
    soldQuoteUnits: position.soldQuoteUnits - taken.soldQuoteUnits,
    realisedUnits: position.realisedUnits - taken.realisedUnits,
  };
}

/**
 * A leg's quote units split among its orders, in their order and to the unit: each gets the quote amount of the leg up to and including it,
 * less the amounts of the orders before it.
 */
export function quoteUnitsOfOrders(leg: {
  baseUnits: bigint;
  quoteUnits: bigint;
  orders: readonly { baseUnits: bigint }[];
}): bigint[] {
  let base = 0n;
  let given = 0n;
  return leg.orders.map((order) => {
    base += order.baseUnits;
    const upTo = leg.baseUnits === 0n ? 0n : (leg.quoteUnits * base) / leg.baseUnits;
    const own = upTo - given;
    given = upTo;
    return own;
  });
}
