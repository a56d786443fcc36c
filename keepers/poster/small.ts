/** Changes of a book that are too small to be posted at once. */
import { OFFER_MEMORY_MS } from '../../core/book/offers.js';
import { ARMED_MARGIN_MS, isArmedWithin } from '../../core/cut.js';
import type { Address, Market, MarketSnapshot, SnapshotOrder } from '../../core/types.js';
import type { MarketView, PosterView } from './view.js';

/** Which changes may wait, and for how long. */
export interface SmallChanges {
  /** What a market's orders that went, and those that came, must each be worth to be posted at once, in quote units; 0n: nothing waits. */
  quoteUnits(market: Market): bigint;
  /** How long after the cut of the newest curve a small change waits at most. */
  intervalMs: number;
}

/**
 * How long after a cut an order may stay on its curve that its maker removed, while the maker's orders elsewhere are trimmed for it. Until
 * OFFER_MEMORY_MS after the removal these keep nobody's price away; by then a cut that is made now has landed.
 */
const TRIMMED_WAIT_MS = OFFER_MEMORY_MS - ARMED_MARGIN_MS;

/** Changes of orders between two snapshots: value removed and value added, in ticks times lots, and the makers of removed orders. */
interface OrderChanges {
  goneTickLots: bigint;
  newTickLots: bigint;
  makersGone: ReadonlySet<Address>;
}

/** Compares order by order; for a reduced order the difference counts as removed. */
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
 * True when the newest curve may stay for a while although the book has changed. All of these must hold: no fill is to be reflected; the
 * values added and removed are small; the curve was cut recently; and no order of it belongs to a suspended maker, to one whose scheduled
 * cancel came due since or will come due before the curve expires or before another cut is sure to land, or, TRIMMED_WAIT_MS after the cut,
 * to one of `trimmed`. Of a trimmed maker, this curve would still quote orders that it removed, so the cut would leave out its orders
 * elsewhere, which would come to keep other makers' prices away without being for sale. It is safe that long: what this curve quotes counts
 * against the maker's inventory as long as it can be executed. At once would be too soon: makers who move an order between two markets
 * are trimmed each time, and several of them who take turns would cause a post in every block.
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
  // A clock that was set back must not prolong the wait.
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
      (ageMs >= TRIMMED_WAIT_MS && trimmed.has(maker)) ||
      (armedMs !== null && armedMs < deadlineSec * 1_000 && isArmedWithin(armedMs, view.cut.timeMs)) ||
      view.triggeredSeq(maker) > cut.orderSeq
    );
  };
  return ![...makersGone].some(mustGo);
}
