/**
 * Which maker a fill belongs to. A curve is walked exactly like the book it was cut from: state per curve and side starts at the
 * snapshot, loses what was taken on older curves after the snapshot's cut (the carry), then what each fill takes.
 * All functions are pure; a state is a value.
 */
import { carryFills, restingOrders, type CarriedFill, type RestingOrder } from './attribution/carry.js';
import { splitProRata, type MakerUnits } from './attribution/pro-rata.js';
import { quoteUnitsFloor } from './market.js';
import type { Address, Decomposition, Leg, Market, MarketSnapshot, OrderFill, Side } from './types.js';

export { carryFills, restingOrders, type CarriedFill, type RestingOrder };

/** One side of one curve. */
export interface SideState {
  side: Side;
  /** What is left, in snapshot order, without emptied orders. */
  orders: readonly RestingOrder[];
  /** Base units taken of this side, the carry included: what the next fill must report as consumed before it. */
  consumedUnits: bigint;
}

/** The part of a chain fill that attribution needs. `quoteUnits` is the full curve amount. */
export interface FillAmounts {
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
}

/**
 * The state of a side before its curve's first fill. `lateFills` are the parts, per order, of the fills with a higher fillSeq than the
 * snapshot's that were taken on curves of lower (base) sequence numbers; those of other markets and of the other side are passed over.
 */
export function openSide(
  market: Market,
  snapshot: MarketSnapshot,
  side: Side,
  lateFills: readonly OrderFill[] = [],
): SideState {
  const late = lateFills.filter((fill) => fill.market === snapshot.market && fill.side === side);
  return {
    side,
    orders: carryFills(restingOrders(market, snapshot, side), late),
    consumedUnits: late.reduce((sum, fill) => sum + fill.baseUnits, 0n),
  };
}

/**
 * Chain minus ledger: by how much the consumption that a fill reports before itself differs from what the state has seen. Anything
 * but zero means that a fill is missing, doubled or out of place, and halts.
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
  let next = 0;
  while (needUnits > 0n && next < state.orders.length) {
    const level = levelAt(state.orders, next);
    next += level.length;
    const levelUnits = level.reduce((sum, order) => sum + order.units, 0n);
    const takeUnits = needUnits < levelUnits ? needUnits : levelUnits;
    const taken = takeLevel(market, level, takeUnits);
    legs.push(...taken.legs);
    touched.push(...taken.left);
    needUnits -= takeUnits;
  }
  return {
    decomposition: decompose(market, fill, legs, needUnits),
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

/** What replaying a curve gives: one decomposition per fill, and per fill by how much its reported consumption was off. */
export interface CurveReplay {
  decompositions: Decomposition[];
  mismatchUnits: bigint[];
}

/**
 * Replays every fill of one curve, in fillSeq order, from nothing but the snapshot and the late fills of `openSide`.
 */
export function replayCurve(
  market: Market,
  snapshot: MarketSnapshot,
  lateFills: readonly OrderFill[],
  fills: readonly (FillAmounts & { consumedBeforeUnits: bigint })[],
): CurveReplay {
  const states = {
    ask: openSide(market, snapshot, 'ask', lateFills),
    bid: openSide(market, snapshot, 'bid', lateFills),
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

/** Takes `takeUnits`, at most what the level has, out of one price level. `left` are its orders after that, without emptied ones. */
function takeLevel(
  market: Market,
  level: readonly RestingOrder[],
  takeUnits: bigint,
): { legs: Leg[]; left: RestingOrder[] } {
  const makers = unitsByMaker(level);
  const shares = splitProRata(takeUnits, makers);
  const legs: Leg[] = [];
  const left: RestingOrder[] = [];
  let next = 0;
  makers.forEach(({ maker }, index) => {
    const baseUnits = shares[index]!;
    const orders: Leg['orders'] = [];
    let needUnits = baseUnits;
    for (; level[next]?.maker === maker; next++) {
      const order = level[next]!;
      const units = needUnits < order.units ? needUnits : order.units;
      needUnits -= units;
      if (units > 0n) orders.push({ oid: order.oid, baseUnits: units });
      if (units < order.units) left.push({ ...order, units: order.units - units });
    }
    if (baseUnits === 0n) return;
    const { priceTicks } = level[0]!;
    legs.push({ maker, priceTicks, baseUnits, quoteUnits: quoteUnitsFloor(market, priceTicks, baseUnits), orders });
  });
  return { legs, left };
}

/** Sums per maker of a level, whose orders are by maker address. */
function unitsByMaker(level: readonly RestingOrder[]): MakerUnits[] {
  const makers: { maker: Address; units: bigint }[] = [];
  for (const { maker, units } of level) {
    const last = makers.at(-1);
    if (last?.maker === maker) last.units += units;
    else makers.push({ maker, units });
  }
  return makers;
}

function decompose(market: Market, fill: FillAmounts, legs: Leg[], missingBaseUnits: bigint): Decomposition {
  const exact = legs.reduce((sum, leg) => sum + leg.priceTicks * leg.baseUnits, 0n);
  const exactQuoteUnits = quoteUnitsFloor(market, 1n, exact);
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
