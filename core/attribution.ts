/**
 * Which makers' orders a fill is booked to, best price first. The state of a side of a curve starts with the orders of the snapshot. It
 * loses what was taken on older curves after the snapshot's cut (the carry), then what each fill takes. Where the contract raised
 * consumption beyond the carry, the curve sells fewer units than the state holds: fills take the best units that are left, and as many
 * units as were raised remain unsold at the end. All functions are pure; a state is a value.
 */
import { carryFills, restingOrders, type CarriedFill, type RestingOrder } from './attribution/carry.js';
import { leastGainUnits, NO_GAINS, type SideGains } from './attribution/gains.js';
import { splitProRata, type MakerUnits } from './attribution/pro-rata.js';
import { quoteUnitsFloor } from './market.js';
import type { Address, Decomposition, Leg, Market, MarketSnapshot, OrderFill, Side } from './types.js';

export { carryFills, leastGainUnits, NO_GAINS, restingOrders, type CarriedFill, type RestingOrder, type SideGains };

/** One side of one curve. */
export interface SideState {
  side: Side;
  /** What is left of each order, in snapshot order; orders with nothing left are not in it. */
  orders: readonly RestingOrder[];
  /** Base units taken of this side, including the carry and the raise: what the next fill must report as consumed before it. */
  consumedUnits: bigint;
}

/** The part of a chain fill that attribution needs. `quoteUnits` is the full curve amount. */
interface FillAmounts {
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
}

/**
 * The state of a side before its curve's first fill. `lateFills` are the parts, per order, of the fills with a higher fillSeq than the
 * snapshot's that were taken on curves of lower (base) sequence numbers; fills of other markets and of the other side are ignored.
 * `raisedUnits` is by how much the contract raised consumption beyond them when the curve landed.
 */
export function openSide(
  market: Market,
  snapshot: MarketSnapshot,
  side: Side,
  lateFills: readonly OrderFill[] = [],
  raisedUnits = 0n,
): SideState {
  const late = lateFills.filter((fill) => fill.market === snapshot.market && fill.side === side);
  return {
    side,
    orders: carryFills(restingOrders(market, snapshot, side), late),
    consumedUnits: late.reduce((sum, fill) => sum + fill.baseUnits, raisedUnits),
  };
}

/**
 * Chain minus ledger: by how much the consumption that a fill reports before itself differs from the state's. Anything but zero means that
 * a fill is missing, doubled or out of order; the ledger then halts.
 */
export function consumptionMismatchUnits(state: SideState, consumedBeforeUnits: bigint): bigint {
  return consumedBeforeUnits - state.consumedUnits;
}

/**
 * Attributes one fill: best price first; at equal price pro-rata by what each maker has left, largest remainder, ties to the lower
 * address; among one maker's orders at a price, lowest oid first. Returns the decomposition and the state after the fill. A fill
 * beyond what is left takes all of it and reports the rest as `missingBaseUnits`. Throws RangeError for a fill of the other side.
 */
export function attributeFill(
  market: Market,
  state: SideState,
  fill: FillAmounts,
): { decomposition: Decomposition; state: SideState } {
  if (fill.side !== state.side) throw new RangeError(`a fill of the ${fill.side} side on the ${state.side} side`);
  const legs: Leg[] = [];
  const touched: RestingOrder[] = [];
  let needUnits = fill.baseUnits;
  let exact = 0n;
  let next = 0;
  while (needUnits > 0n && next < state.orders.length) {
    const level = levelAt(state.orders, next);
    next += level.length;
    const levelUnits = level.reduce((sum, order) => sum + order.units, 0n);
    const takeUnits = needUnits < levelUnits ? needUnits : levelUnits;
    takeLevel(market, level, { takeUnits, levelUnits }, legs, touched);
    exact += level[0]!.priceTicks * takeUnits;
    needUnits -= takeUnits;
  }
  return {
    decomposition: decompose(fill, legs, needUnits, quoteUnitsFloor(market, 1n, exact)),
    state: {
      side: state.side,
      orders: [...touched, ...state.orders.slice(next)],
      consumedUnits: state.consumedUnits + fill.baseUnits,
    },
  };
}

/** The parts of a decomposition per order, in leg order. */
export function orderFillsOf(market: Market, side: Side, decomposition: Decomposition): OrderFill[] {
  return decomposition.legs.flatMap(({ maker, priceTicks, orders }) =>
    orders.map(({ oid, baseUnits }) => ({ oid, maker, market: market.index, side, priceTicks, baseUnits })),
  );
}

/** What replaying a curve gives: for each fill its decomposition, and its `consumptionMismatchUnits`. */
interface CurveReplay {
  decompositions: Decomposition[];
  mismatchUnits: bigint[];
}

/** Base units by which the consumption of each side was raised beyond its carry. */
export type RaisedUnits = Readonly<Record<Side, bigint>>;

export const NOTHING_RAISED: RaisedUnits = { ask: 0n, bid: 0n };

/** Replays every fill of one curve, in fillSeq order. The snapshot, the late fills and the raise (see `openSide`) are its only inputs. */
export function replayCurve(
  market: Market,
  snapshot: MarketSnapshot,
  lateFills: readonly OrderFill[],
  fills: readonly (FillAmounts & { consumedBeforeUnits: bigint })[],
  raised: RaisedUnits = NOTHING_RAISED,
): CurveReplay {
  const states = {
    ask: openSide(market, snapshot, 'ask', lateFills, raised.ask),
    bid: openSide(market, snapshot, 'bid', lateFills, raised.bid),
  };
  const replay: CurveReplay = { decompositions: [], mismatchUnits: [] };
  for (const fill of fills) {
    replay.mismatchUnits.push(consumptionMismatchUnits(states[fill.side], fill.consumedBeforeUnits));
    const { decomposition, state } = attributeFill(market, states[fill.side], fill);
    states[fill.side] = state;
    replay.decompositions.push(decomposition);
  }
  return replay;
}

/** The orders from `start` on that share its price. */
function levelAt(orders: readonly RestingOrder[], start: number): RestingOrder[] {
  const { priceTicks } = orders[start]!;
  let end = start + 1;
  while (orders[end]?.priceTicks === priceTicks) end++;
  return orders.slice(start, end);
}

/**
 * Takes `takeUnits` out of one price level that has `levelUnits`, at least as many. Appends the legs to `legs`, and the level's orders that
 * still have something left to `left`.
 */
function takeLevel(
  market: Market,
  level: readonly RestingOrder[],
  { takeUnits, levelUnits }: { takeUnits: bigint; levelUnits: bigint },
  legs: Leg[],
  left: RestingOrder[],
): void {
  const makers = unitsByMaker(level);
  const shares = splitProRata(takeUnits, makers, levelUnits);
  const { priceTicks } = level[0]!;
  let next = 0;
  for (let index = 0; index < makers.length; index++) {
    const { maker } = makers[index]!;
    const baseUnits = shares[index]!;
    const orders: Leg['orders'] = [];
    let needUnits = baseUnits;
    for (; level[next]?.maker === maker; next++) {
      const order = level[next]!;
      const units = needUnits < order.units ? needUnits : order.units;
      if (units > 0n) orders.push({ oid: order.oid, baseUnits: units });
      if (units < order.units) left.push({ oid: order.oid, maker, priceTicks, units: order.units - units });
      needUnits = units === needUnits ? 0n : needUnits - units;
    }
    if (baseUnits === 0n) continue;
    legs.push({ maker, priceTicks, baseUnits, quoteUnits: quoteUnitsFloor(market, priceTicks, baseUnits), orders });
  }
}

/** Sums per maker of a level, whose orders are by maker address. */
function unitsByMaker(level: readonly RestingOrder[]): readonly MakerUnits[] {
  // Most makers have one order at a price; then the orders are the sums.
  if (level.every(({ maker }, i) => maker !== level[i - 1]?.maker)) return level;
  const makers: { maker: Address; units: bigint }[] = [];
  for (const { maker, units } of level) {
    const last = makers.at(-1);
    if (last?.maker === maker) last.units += units;
    else makers.push({ maker, units });
  }
  return makers;
}

/** `exactQuoteUnits` is the exact sum of the legs' quote amounts, floored once; each leg is floored by itself. */
function decompose(fill: FillAmounts, legs: Leg[], missingBaseUnits: bigint, exactQuoteUnits: bigint): Decomposition {
  const legsQuoteUnits = legs.reduce((sum, leg) => sum + leg.quoteUnits, 0n);
  const residualUnits = fill.quoteUnits - legsQuoteUnits;
  return {
    legs,
    residualUnits,
    roundingUnits: exactQuoteUnits - legsQuoteUnits,
    compressionResidualUnits: fill.quoteUnits - exactQuoteUnits,
    operatorGainUnits: fill.side === 'ask' ? residualUnits : -residualUnits,
    missingBaseUnits,
  };
}
