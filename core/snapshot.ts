/** The exact book behind a curve: made from the open orders at a cut, written in one canonical text, hashed and compared. */
import type { Book } from './book.js';
import { crossingOf, type Crossing } from './book/crossing.js';
import { remainingLots } from './book/order-life.js';
import { keccakText } from './hash.js';
import type { Address, Hex, Market, MarketSnapshot, Side, SnapshotOrder, Trim } from './types.js';

/** The last fill removed from the book, and the base units taken per side since genesis after that fill. */
interface SnapshotProgress {
  fillSeq: number;
  askVolumeUnits: bigint;
  bidVolumeUnits: bigint;
}

/**
 * The snapshot of one market. `book` must include exactly the fills up to `progress`. Remaining sizes are floored to whole lots, then
 * lowered by the trims, never below zero; orders without a lot left, orders of excluded makers, and orders that a crossing leaves out are
 * not in it. It never crosses.
 */
export function snapshotOf(
  book: Book,
  market: Market,
  progress: SnapshotProgress,
  trims: readonly Trim[] = [],
  exclude: ReadonlySet<Address> = new Set(),
): MarketSnapshot {
  return uncrossSnapshot(trimSnapshot(candidateOf(book, market, progress, exclude), trims)).snapshot;
}

/** The same before trims, and without leaving out orders that cross. */
export function candidateOf(
  book: Book,
  market: Market,
  progress: SnapshotProgress,
  exclude: ReadonlySet<Address> = new Set(),
): MarketSnapshot {
  const side = (name: Side): SnapshotOrder[] =>
    book
      .sideOrders(market.index, name)
      .filter((order) => !exclude.has(order.maker))
      .map((order) => {
        const { oid, maker, priceTicks, cloid } = order;
        const sizeLots = remainingLots(order, market.lotUnits);
        return cloid === null ? { oid, maker, priceTicks, sizeLots } : { oid, maker, priceTicks, sizeLots, cloid };
      })
      .filter((order) => order.sizeLots > 0n);
  const { fillSeq, askVolumeUnits, bidVolumeUnits } = progress;
  return { market: market.index, fillSeq, askVolumeUnits, bidVolumeUnits, asks: side('ask'), bids: side('bid') };
}

/** A candidate with trims taken off, by the same rule as `snapshotOf`. */
export function trimSnapshot(candidate: MarketSnapshot, trims: readonly Trim[]): MarketSnapshot {
  if (trims.length === 0) return candidate;
  const trimmedLots = new Map(trims.map((trim) => [trim.oid, trim.lots]));
  const trimmed = (orders: readonly SnapshotOrder[]): SnapshotOrder[] =>
    orders
      .map((order) => ({ ...order, sizeLots: order.sizeLots - (trimmedLots.get(order.oid) ?? 0n) }))
      .filter((order) => order.sizeLots > 0n);
  return { ...candidate, asks: trimmed(candidate.asks), bids: trimmed(candidate.bids) };
}

/**
 * The snapshot of a trimmed candidate, and what a crossing leaves out of it. Crossings are resolved after the trims, so that lots that are
 * not offered displace no order. No further trim is needed: leaving orders out only lowers what their makers can be made to pay.
 */
export function uncrossSnapshot(candidate: MarketSnapshot): { snapshot: MarketSnapshot; crossing: Crossing } {
  const crossing = crossingOf(candidate.asks, candidate.bids);
  const { asks, bids } = crossing;
  if (asks === 0 && bids === 0) return { snapshot: candidate, crossing };
  return { snapshot: { ...candidate, asks: candidate.asks.slice(asks), bids: candidate.bids.slice(bids) }, crossing };
}

/** The orders of one side. */
export function snapshotSide(snapshot: MarketSnapshot, side: Side): SnapshotOrder[] {
  return side === 'ask' ? snapshot.asks : snapshot.bids;
}

/** Client order ids of a snapshot, by order. */
export function snapshotCloids({ asks, bids }: Pick<MarketSnapshot, 'asks' | 'bids'>): Map<number, string> {
  return new Map([...asks, ...bids].flatMap(({ oid, cloid }) => (cloid === undefined ? [] : [[oid, cloid] as const])));
}

/**
 * The canonical text of a snapshot: a line `snapshot 1 <market> <fillSeq> <askVolume> <bidVolume>`, then a line `ask|bid <oid> <maker>
 * <ticks> <lots>` per order in snapshot order, asks first; each line ends with a newline.
 */
export function canonicalSnapshot(snapshot: MarketSnapshot): string {
  const { market, fillSeq, askVolumeUnits, bidVolumeUnits, asks, bids } = snapshot;
  const line = (side: Side) => (order: SnapshotOrder) =>
    `${side} ${order.oid} ${order.maker} ${order.priceTicks} ${order.sizeLots}\n`;
  const head = `snapshot 1 ${market} ${fillSeq} ${askVolumeUnits} ${bidVolumeUnits}\n`;
  return head + asks.map(line('ask')).join('') + bids.map(line('bid')).join('');
}

/** keccak256 of the canonical text in UTF-8. */
export function snapshotHash(snapshot: MarketSnapshot): Hex {
  return keccakText(canonicalSnapshot(snapshot));
}

/**
 * True when any order, its size, its price, or a reflected volume differs, so that a new sequence number is due even if the curve
 * would have the same words: fills of the old one are booked to the orders of its own snapshot.
 */
export function snapshotChanged(live: MarketSnapshot, next: MarketSnapshot): boolean {
  return (
    live.market !== next.market ||
    live.fillSeq !== next.fillSeq ||
    live.askVolumeUnits !== next.askVolumeUnits ||
    live.bidVolumeUnits !== next.bidVolumeUnits ||
    ordersDiffer(live.asks, next.asks) ||
    ordersDiffer(live.bids, next.bids)
  );
}

function ordersDiffer(a: readonly SnapshotOrder[], b: readonly SnapshotOrder[]): boolean {
  if (a.length !== b.length) return true;
  return a.some((order, index) => {
    const other = b[index]!;
    return (
      order.oid !== other.oid ||
      order.sizeLots !== other.sizeLots ||
      order.priceTicks !== other.priceTicks ||
      order.maker !== other.maker
    );
  });
}
