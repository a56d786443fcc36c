/**
 * What effects and fills do to one order. The book of the gateway, of the poster and of the watcher, the history that queries are answered
 * from, and compaction all go by it. Verification does not share how much is filled: it adds up the stored fills by itself and compares, so
 * that a mistake here is found; of this it takes only when an order counts as filled.
 */
import type { Book } from '../book.js';
import type { CloseReason, OpenOrder, OrderEffect, OrderLogRow } from '../types.js';

export type OpenEffect = Extract<OrderEffect, { type: 'open' }>;

/**
 * The order that an effect of a row opens, nothing of it filled; the twin's value of it as long as that is still the same. Orders are
 * never changed in place, so sharing them is safe. Written out: copying what is left of an object takes far longer.
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

/** Lots are taken off the size, not off what remains, so that this and fills give the same in any order. */
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

/** Less than a lot remains: the order is in no book any more. */
export const isFilled = (order: OpenOrder, lotUnits: bigint): boolean => remainingLots(order, lotUnits) < 1n;

/** An order from its row to its end. */
export interface OrderLife {
  order: OpenOrder;
  state: 'open' | 'filled' | CloseReason;
  /** When it ended; null while it is open, and where only the fill that ended it knows. */
  closedMs: number | null;
}

/** What a row's effect does to an order that was opened before. One that has ended stays as it is. Changes `life`; says whether it did. */
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
 * What a fill does to an order. One that is filled is filled, even when it was cancelled meanwhile: that is also what applying all rows and
 * fills in any other order gives. Changes `life`; `timeMs` is null where the time of the fill is not known.
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
