/**
 * The exposure limit: whatever takers do with the curves that can still be executed, no maker pays more of a token than it has. It is
 * computed per maker and token over all markets, when a new publication is prepared.
 */
import { carryFills, restingOrders, type RestingOrder } from './attribution/carry.js';
import { MAX_TRIM_STEPS } from './exposure/search.js';
import { trimMaker, type TrimSide } from './exposure/trim.js';
import { envelopePayment, worstPayment } from './exposure/worst.js';
import { payToken } from './market.js';
import { snapshotSide, trimSnapshot } from './snapshot.js';
import type { Address, Market, MarketSnapshot, OrderFill, Side, Trim } from './types.js';

export { envelopePayment, worstPayment };

/**
 * A publication that can still be executed: the live one, or one with a higher sequence number that may still land, and whose
 * deadline has not passed on-chain. Each side is what is left of it, in snapshot order.
 */
export interface ExecutablePublication {
  seq: number;
  asks: readonly RestingOrder[];
  bids: readonly RestingOrder[];
}

/** One market as the exposure limit sees it. `candidate` is null when nothing new is being prepared there. */
export interface ExposureMarket {
  market: Market;
  /** In any order; a curve and its touches count once. */
  older: readonly ExecutablePublication[];
  candidate: MarketSnapshot | null;
}

/** A market's candidate after the limit. `trims` rise by oid. */
interface TrimmedMarket {
  market: Market;
  trims: Trim[];
  snapshot: MarketSnapshot | null;
}

const SIDES: readonly Side[] = ['ask', 'bid'];

/**
 * What is left of a publication. `fillsSince` are the parts per order of all fills of the market after the snapshot's fillSeq, including
 * those taken on this curve; fills of other markets are ignored.
 */
export function executablePublication(
  market: Market,
  seq: number,
  snapshot: MarketSnapshot,
  fillsSince: readonly OrderFill[],
): ExecutablePublication {
  const left = (side: Side): RestingOrder[] =>
    carryFills(
      restingOrders(market, snapshot, side),
      fillsSince.filter((fill) => fill.market === market.index && fill.side === side),
    );
  return { seq, asks: left('ask'), bids: left('bid') };
}

/**
 * Trims the candidates, so that for every maker and token the sum of `worstPayment` over all markets and sides that pay the token
 * is at most `availableUnits(maker, token)`, a negative value counting as zero. Where the older publications alone exceed it, the
 * maker's orders that pay the token are trimmed to nothing. What a maker whose orders are trimmed may cost in time is bounded per maker,
 * after which more may be trimmed than needed, of that maker alone.
 */
export function trimToInventory(
  markets: readonly ExposureMarket[],
  availableUnits: (maker: Address, token: Address) => bigint,
): TrimmedMarket[] {
  const trims = new Map<number, Trim[]>();
  for (const [maker, byToken] of sidesByMaker(markets)) {
    const budget = { stepsLeft: MAX_TRIM_STEPS };
    for (const [token, sides] of byToken) {
      if (sides.every((side) => side.next.length === 0)) continue;
      const available = availableUnits(maker, token);
      for (const { market, oid, lots } of trimMaker(sides, available < 0n ? 0n : available, budget)) {
        const ofMarket = trims.get(market) ?? [];
        ofMarket.push({ oid, lots });
        trims.set(market, ofMarket);
      }
    }
  }
  return markets.map(({ market, candidate }) => {
    const sorted = (trims.get(market.index) ?? []).sort((a, b) => a.oid - b.oid);
    return { market, trims: sorted, snapshot: candidate === null ? null : trimSnapshot(candidate, sorted) };
  });
}

/** The sum of `worstPayment` per maker and token, over all markets and sides, candidates included. */
export function worstPayments(markets: readonly ExposureMarket[]): Map<Address, Map<Address, bigint>> {
  const result = new Map<Address, Map<Address, bigint>>();
  for (const [maker, byToken] of sidesByMaker(markets)) {
    const units = [...byToken].map(([token, sides]): [Address, bigint] => [
      token,
      sides.reduce((sum, side) => sum + worstPayment(side), 0n),
    ]);
    result.set(maker, new Map(units));
  }
  return result;
}

type SidesByMaker = Map<Address, Map<Address, TrimSide[]>>;

/** Every maker with an order in a candidate or in an older publication, and its sides by the token they pay. */
function sidesByMaker(markets: readonly ExposureMarket[]): SidesByMaker {
  const result: SidesByMaker = new Map();
  for (const { market, older, candidate } of markets) {
    const inSequence = [...older].sort((a, b) => a.seq - b.seq);
    for (const side of SIDES) {
      const next = candidate === null ? [] : restingOrders(market, candidate, side);
      const bestTicks = candidate === null ? 0n : (snapshotSide(candidate, side)[0]?.priceTicks ?? 0n);
      const nextOf = groupByMaker(next);
      const olderOf = inSequence.map((publication) =>
        groupByMaker(side === 'ask' ? publication.asks : publication.bids),
      );
      for (const maker of new Set([nextOf, ...olderOf].flatMap((orders) => [...orders.keys()]))) {
        const exposed = {
          market,
          side,
          bestTicks,
          older: olderOf.map((orders) => orders.get(maker) ?? []),
          next: nextOf.get(maker) ?? [],
        };
        append(result, maker, payToken(market, side), exposed);
      }
    }
  }
  return result;
}

function append(sides: SidesByMaker, maker: Address, token: Address, exposed: TrimSide): void {
  const byToken = sides.get(maker) ?? new Map<Address, TrimSide[]>();
  const ofToken = byToken.get(token) ?? [];
  ofToken.push(exposed);
  byToken.set(token, ofToken);
  sides.set(maker, byToken);
}

/** Keeps the order of the list inside each group. */
function groupByMaker(orders: readonly RestingOrder[]): Map<Address, RestingOrder[]> {
  const groups = new Map<Address, RestingOrder[]>();
  for (const order of orders) {
    const group = groups.get(order.maker);
    if (group === undefined) groups.set(order.maker, [order]);
    else group.push(order);
  }
  return groups;
}
