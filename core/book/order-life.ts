/**
 * What effects and fills do to one order. The books of the gateway, poster and watcher, the order history and compaction all use it.
 * Verification adds up the stored fills itself and compares, so that a mistake here is found; it shares only the rule when an order counts
 * as filled.
 */
import type { Book } from '../book.js';
import type { CloseReason, OpenOrder, OrderEffect, OrderLogRow } from '../types.js';

export type OpenEffect = Extract<OrderEffect, { type: 'open' }>;

/**
 * The order that an effect of a row opens, with nothing filled; or the twin's object if its values are equal. Orders are never changed in
 * place, so sharing them is safe. The fields are listed one by one because an object spread takes far longer.
 */
export function openedOrder(
  { maker, timeMs }: Pick<OrderLogRow, 'maker' | 'timeMs'>,
  { oid, market, side, priceTicks, sizeLots, tif, cloid }: Omit<OpenEffect, 'type'>,
  twin?: Pick<Book, 'order'>,
): OpenOrder {
  const known = twin?.order(oid);
  if (known !== undefined && known.filledUnits === 0n && known.sizeLots === sizeLots) return known;
  return { oid, maker, market, side, priceTicks, sizeLots, filledUnits: 0n, tif, cloid, placedMs: timeMs };
}

/** Lots are subtracted from the size, not from the remainder, so that reductions and fills give the same result in any order. */
export const reducedOrder = (order: OpenOrder, lots: bigint): OpenOrder => ({
  ...order,
  sizeLots: order.sizeLots - lots,
});

export const filledOrder = (order: OpenOrder, baseUnits: bigint): OpenOrder => ({
  ...order,
  filledUnits: order.filledUnits + baseUnits,
});

/** Lots of the remaining size, floored. */
export const remainingLots = (order: OpenOrder, lotUnits: bigint): bigint =>
  order.filledUnits === 0n ? order.sizeLots : order.sizeLots - (order.filledUnits + lotUnits - 1n) / lotUnits;

/** True when less than a lot remains: the order is then no longer in the book. */
export const isFilled = (order: OpenOrder, lotUnits: bigint): boolean => remainingLots(order, lotUnits) < 1n;

/** An order and how it ended. */
export interface OrderLife {
  order: OpenOrder;
  state: 'open' | 'filled' | CloseReason;
  /** When it ended; null while it is open, and when a fill of unknown time ended it. */
  closedMs: number | null;
}

/**
 * Applies a row's effect to an order that was opened before. An order that has ended stays unchanged. Changes `life`; returns whether it
 * did.
 */
export function applyEffect(
  life: OrderLife,
  effect: Extract<OrderEffect, { type: 'close' | 'reduce' }>,
  timeMs: number,
  lotUnits: bigint,
): boolean {
  if (life.state !== 'open') return false;
  if (effect.type === 'close') {
    life.state = effect.reason;
    life.closedMs = timeMs;
    return true;
  }
  life.order = reducedOrder(life.order, effect.lots);
  endIfFilled(life, timeMs, lotUnits);
  return true;
}

/**
 * Applies a fill to an order. An order that fills complete counts as filled even if it was cancelled before, so that rows and fills give
 * the same result in any order. Changes `life`; `timeMs` is null when the time of the fill is not known.
 */
export function applyFill(life: OrderLife, baseUnits: bigint, timeMs: number | null, lotUnits: bigint): void {
  life.order = filledOrder(life.order, baseUnits);
  endIfFilled(life, timeMs, lotUnits);
}

function endIfFilled(life: OrderLife, timeMs: number | null, lotUnits: bigint): void {
  if (life.state === 'filled' || !isFilled(life.order, lotUnits)) return;
  life.state = 'filled';
  life.closedMs ??= timeMs;
}
