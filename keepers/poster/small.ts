/** Changes of a book that are too small to be posted at once. */
import { isArmedWithin } from '../../core/cut.js';
import type { Address, Market, MarketSnapshot, SnapshotOrder } from '../../core/types.js';
import type { MarketView, PosterView } from './view.js';

/** Which changes may wait, and for how long. */
export interface SmallChanges {
  /** What a market's orders that went, and those that came, must each be worth to be posted at once, in quote units; 0n: nothing waits. */
  quoteUnits(market: Market): bigint;
  /** How long after the cut of the newest curve a small change waits at most. */
  intervalMs: number;
}

/** What became of orders between two snapshots: what is gone of the first and new in the second, in ticks times lots, and whose went. */
interface OrderChanges {
  goneTickLots: bigint;
  newTickLots: bigint;
  makersGone: ReadonlySet<Address>;
}

/** Compares order by order; an order that shrank is gone by the difference. */
function orderChanges(live: MarketSnapshot, next: MarketSnapshot): OrderChanges {
  const left = new Map([...next.asks, ...next.bids].map((order): [number, SnapshotOrder] => [order.oid, order]));
  const makersGone = new Set<Address>();
  let goneTickLots = 0n;
  let newTickLots = 0n;
  const compare = ({ maker, priceTicks }: SnapshotOrder, lots: bigint): void => {
    if (lots > 0n) newTickLots += priceTicks * lots;
    if (lots >= 0n) return;
    goneTickLots -= priceTicks * lots;
    makersGone.add(maker);
  };
  for (const order of [...live.asks, ...live.bids]) {
    compare(order, (left.get(order.oid)?.sizeLots ?? 0n) - order.sizeLots);
    left.delete(order.oid);
  }
  for (const order of left.values()) compare(order, order.sizeLots);
  return { goneTickLots, newTickLots, makersGone };
}

/**
 * True when the newest curve may stay a while although the book is another one: no fill is to be reflected, what came and what went is worth
 * little, the curve was cut lately, and no order of it belongs to a maker who was suspended, or whose scheduled cancel came due since or
 * does before the curve dies and before another cut can be sure to land, or to one of `trimmed`: while this curve quotes what such a maker took away, the cut leaves out orders that it
 * has elsewhere, and those keep other makers' prices away without being for sale.
 */
export function mayWait(
  view: PosterView,
  { market, last }: MarketView,
  next: MarketSnapshot,
  small: SmallChanges,
  trimmed: ReadonlySet<Address>,
): boolean {
  if (last === null || last.snapshot === null) return false;
  const live = last.snapshot;
  const { cut, deadlineSec } = last.publication;
  const ageMs = view.cut.timeMs - cut.timeMs;
  // A clock that was put back must not make a change wait for as long.
  if (ageMs < 0 || ageMs >= small.intervalMs) return false;
  const isSameProgress =
    live.fillSeq === next.fillSeq &&
    live.askVolumeUnits === next.askVolumeUnits &&
    live.bidVolumeUnits === next.bidVolumeUnits;
  if (!isSameProgress) return false;
  const { goneTickLots, newTickLots, makersGone } = orderChanges(live, next);
  const limit = small.quoteUnits(market);
  if (goneTickLots * market.tickLotUnits >= limit || newTickLots * market.tickLotUnits >= limit) return false;
  const mustGo = (maker: Address): boolean => {
    const armedMs = view.armed(maker);
    return (
      view.operator.suspended.has(maker) ||
      trimmed.has(maker) ||
      (armedMs !== null && armedMs < deadlineSec * 1_000 && isArmedWithin(armedMs, view.cut.timeMs)) ||
      view.triggeredSeq(maker) > cut.orderSeq
    );
  };
  return ![...makersGone].some(mustGo);
}
