/** The amounts that a quote promises, computed from what its sources trade. Amounts are in base units; each function says how it rounds. */
import { BPS, ceilDiv } from '../amounts.js';
import { candidatesOf } from './candidates.js';
import { hasTerms, type PartnerTerms } from './partner.js';
import { callsIn, isOwnOnly, ownCallsIn, venuesIn } from './paths.js';
import { OWN, type Source } from './source.js';
import { split, type Part, type SplitKind } from './split.js';

/** The least output of a sell order. Rounded up, so that the owner gives up no more than the slippage. */
export function minBuyUnits(buyUnits: bigint, slippageBps: number): bigint {
  return ceilDiv(buyUnits * (BPS - BigInt(slippageBps)), BPS);
}

/** The most input of a buy order. Rounded down, so that no more than the slippage is added. */
export function maxSellUnits(expectedUnits: bigint, slippageBps: number): bigint {
  return (expectedUnits * (BPS + BigInt(slippageBps))) / BPS;
}

/** What a route's execution costs in gas: on our curve alone, or as a route through the settler. */
export interface GasModel {
  /** An order on our own curve alone. */
  own: bigint;
  /** A route, without its parts. */
  route: bigint;
  /** The curve's part of a route. */
  routeOwn: bigint;
  /** Each call of an external contract. */
  routeCall: bigint;
  /** Each leg of a path over our own curve. */
  routeOwnCall: bigint;
  /** An approval by signature that an order brings along. */
  permit: bigint;
  /** A partner's part: what it takes beyond the same order without a partner, by our own curve alone or as a route. */
  partner: bigint;
  /** Looking first whether the owner can still pay, and for each place whether it still trades at the price. */
  checks: bigint;
  checksPlace: bigint;
}

/**
 * Measured: `npm run bench:swap` prints it, from orders as the executor sends them, against the published Permit2 and Uniswap v3; the
 * figures are in snapshots/gas.json (`order.*`), and a test fails when the two differ. The model covers the costliest order measured of
 * each route, also when it is the first of its Permit2 nonce word.
 */
export const DEFAULT_GAS: GasModel = {
  own: 160_000n,
  route: 170_000n,
  routeOwn: 30_000n,
  routeCall: 87_000n,
  routeOwnCall: 144_000n,
  permit: 55_000n,
  partner: 66_000n,
  checks: 10_000n,
  checksPlace: 6_000n,
};

/** The model with something added to every order. */
export const withExtraGas = (model: GasModel, extraGas: bigint): GasModel => ({
  ...model,
  own: model.own + extraGas,
  route: model.route + extraGas,
});

/** Gas of an order that trades with these sources. */
export function gasOf(model: GasModel, ids: readonly string[]): bigint {
  const [calls, ownCalls] = [BigInt(callsIn(ids)), BigInt(ownCallsIn(ids))];
  const hasOwn = ids.includes(OWN);
  if (calls === 0n) return model.own;
  const external = (calls - ownCalls) * model.routeCall;
  return model.route + (hasOwn ? model.routeOwn : 0n) + external + ownCalls * model.routeOwnCall;
}

/** Gas of an order's terms beside its route: of those with a hash alone, too, which take less. */
export const termsGas = (model: Pick<GasModel, 'partner'>, terms: PartnerTerms): bigint =>
  hasTerms(terms) ? model.partner : 0n;

/** The data of these terms, in calls of an external contract, rounded up. */
export const termsCalls = (terms: PartnerTerms): number => (hasTerms(terms) ? 1 : 0);

/** Conditions that what a place counts with covers; a pool whose ticks a trade crosses has more. */
export const PLACE_CHECKS = 2;

/** How many conditions an order over these sources has beyond those that are counted with its places. */
export const moreChecks = (ids: readonly string[], checks: number): number =>
  Math.max(checks - PLACE_CHECKS * venuesIn(ids), 0);

/**
 * What it takes beside that to look first at all that an order over these sources relies on: at so many conditions, by default as many as
 * places usually have.
 */
export const checksGasOf = (model: GasModel, ids: readonly string[], checks = 0): bigint =>
  model.checks + BigInt(venuesIn(ids) + moreChecks(ids, checks)) * model.checksPlace;

/** What a rollup charges for an order's data, in wei, and for that of each call of an external contract. */
export interface DataFee {
  orderWei: bigint;
  callWei: bigint;
}

/** Price of gas in the sell token: `units` of it are worth `wei`. Without a data fee, data costs nothing. */
export interface GasPrice {
  weiPerGas: bigint;
  units: bigint;
  wei: bigint;
  data?: DataFee;
}

/** The fee that recovers `gas`, and the data of an order of `calls` external calls, with a margin, in units of the sell token, rounded up. */
export function feeUnits(gas: bigint, price: GasPrice, marginBps: number, calls = 0): bigint {
  const { orderWei, callWei } = price.data ?? { orderWei: 0n, callWei: 0n };
  const costWei = gas * price.weiPerGas + orderWei + BigInt(calls) * callWei;
  return ceilDiv(costWei * price.units * (BPS + BigInt(marginBps)), price.wei * BPS);
}

/** The price plus what gas may rise until an order is executed. */
export const withVolatility = (price: GasPrice, volatilityBps: number): GasPrice => ({
  ...price,
  weiPerGas: ceilDiv(price.weiPerGas * (BPS + BigInt(volatilityBps)), BPS),
});

/** What units of the sell token are worth in wei, rounded down. */
export const worthWei = (units: bigint, price: Pick<GasPrice, 'units' | 'wei'>): bigint =>
  (units * price.wei) / price.units;

/**
 * The most that an order with a fee worth `feeWei` may cost, if the service may lose `maxLossBps` of the cost; null means any cost. Rounded
 * down.
 */
export function mostCostWei(feeWei: bigint, maxLossBps: number): bigint | null {
  const keptBps = BPS - BigInt(maxLossBps);
  return keptBps <= 0n ? null : (feeWei * BPS) / keptBps;
}

/** A way to execute an order: its parts, the fee, and what is taken and given in all. */
export interface RoutePlan {
  parts: Part[];
  feeUnits: bigint;
  /** Taken of the sell token, fee included. */
  inUnits: bigint;
  outUnits: bigint;
}

export interface RouteQuestion {
  kind: SplitKind;
  /** Sell: what is taken in all, fee included. Buy: what is received. */
  amountUnits: bigint;
  sources: readonly Source[];
  preference: 'auto' | 'preferService' | 'onlyService';
  /** By how much our own route may be worse than the best and still be chosen. */
  toleranceBps: number;
  feeOf(ids: readonly string[]): bigint;
  /** Whether a route of these sources may be taken at all; asked again once others were judged. Default: any. */
  mayTake?(ids: readonly string[]): boolean;
  /**
   * Whether this very route over these sources may be taken, each of which trades its part; asked of routes that are better than those that may.
   * `again`: it may at the fee that `feeOf` now says, with which it is planned again. Default: any may.
   */
  judge?(plan: RoutePlan, set: readonly Source[]): 'take' | 'leave' | 'again';
  /**
   * What a route costs beyond its fee, in the sell token. It only counts when routes are compared; it is charged to nobody. Default:
   * nothing.
   */
  burdenOf?(ids: readonly string[]): bigint;
}

/** How often a route is planned again at another fee. */
const MOST_TRIES = 4;

/** No route: nothing trades the pair or enough of it, or the fee would take the whole input. */
export type NoRoute = { problem: 'liquidity' } | { problem: 'fee'; feeUnits: bigint };

export const isNoRoute = (plan: RoutePlan | NoRoute): plan is NoRoute => 'problem' in plan;

/**
 * The best route over any of the sources, after each route's fee; of equal ones one with the fewest sources. Sets whose bound is not better
 * than the best route so far are skipped.
 */
export function bestRoute(question: RouteQuestion): RoutePlan | NoRoute {
  const { preference, toleranceBps, kind, amountUnits, feeOf } = question;
  const sources = question.sources.filter(({ id }) => preference !== 'onlyService' || isOwnOnly(id));
  let least: bigint | null = null;
  const tradedBy = (set: readonly Source[]): bigint | null => {
    if (kind === 'buy') return amountUnits;
    const fee = feeOf(idsOf(set));
    if (fee < amountUnits) return amountUnits - fee;
    if (least === null || fee < least) least = fee;
    return null;
  };
  const compare = (set: readonly Source[]): Compared | null => {
    const plan = planOf(question, set);
    return plan === null ? null : { plan, net: withBurden(kind, plan, burdenOn(question, set)) };
  };
  const { mayTake = () => true, judge = () => 'take' } = question;
  /** Null also for a route that is no better than the best so far, or that may not be taken. */
  const better = (set: readonly Source[], best: Compared | null): Compared | null => {
    for (let tries = 0; tries < MOST_TRIES && mayTake(idsOf(set)); tries++) {
      const one = compare(set);
      if (one === null) return null;
      const isEqual = best !== null && !isBetter(kind, best.net, one.net);
      if (best !== null && !isBetter(kind, one.net, best.net) && !(isEqual && isShorter(one, best))) return null;
      const verdict = judge(one.plan, set);
      if (verdict !== 'again') return verdict === 'take' ? one : null;
    }
    return null;
  };
  const candidates = candidatesOf(kind, sources, tradedBy)
    .filter(({ sources: set }) => mayTake(idsOf(set)))
    .map(({ sources: set, boundUnits }) => ({ set, bound: boundNet(question, set, boundUnits) }))
    .sort((a, b) => {
      if (isBetter(kind, a.bound, b.bound)) return -1;
      return isBetter(kind, b.bound, a.bound) ? 1 : a.set.length - b.set.length;
    });
  let best: Compared | null = null;
  for (const { set, bound } of candidates) {
    if (best !== null && !isBetter(kind, bound, best.net)) break;
    best = better(set, best) ?? best;
  }
  const mine = sources.filter(({ id }) => id === OWN);
  const own = preference === 'preferService' && mine.length > 0 && tradedBy(mine) !== null ? better(mine, null) : null;
  if (
    preference === 'preferService' &&
    own !== null &&
    best !== null &&
    isClose(kind, own.net, best.net, toleranceBps)
  ) {
    return own.plan;
  }
  if (best !== null) return best.plan;
  return least === null ? { problem: 'liquidity' } : { problem: 'fee', feeUnits: least };
}

const idsOf = (sources: readonly Source[]): string[] => sources.map(({ id }) => id);

const burdenOn = ({ burdenOf }: RouteQuestion, set: readonly Source[]): bigint => burdenOf?.(idsOf(set)) ?? 0n;

const isShorter = (one: Compared, other: Compared): boolean => one.plan.parts.length < other.plan.parts.length;

/** The bound of a set's routes, as totals that routes are compared by. */
function boundNet(question: RouteQuestion, set: readonly Source[], boundUnits: bigint): Totals {
  const { kind, amountUnits } = question;
  const fee = question.feeOf(idsOf(set));
  const totals =
    kind === 'sell'
      ? { inUnits: amountUnits, outUnits: boundUnits, feeUnits: fee }
      : { inUnits: boundUnits + fee, outUnits: amountUnits, feeUnits: fee };
  return withBurden(kind, totals, burdenOn(question, set));
}

/** The route over exactly these sources; null when a split would leave one of them out. Their fee must leave something to trade. */
function planOf({ kind, amountUnits, feeOf }: RouteQuestion, sources: readonly Source[]): RoutePlan | null {
  const fee = feeOf(idsOf(sources));
  const parts = split(kind, sources, kind === 'sell' ? amountUnits - fee : amountUnits);
  // A split that leaves a source out is another candidate, with a lower fee.
  if (parts?.length !== sources.length) return null;
  return {
    parts,
    feeUnits: fee,
    inUnits: parts.reduce((sum, part) => sum + part.inUnits, fee),
    outUnits: parts.reduce((sum, part) => sum + part.outUnits, 0n),
  };
}

/** What an order takes, fee included, and gives. */
type Totals = Pick<RoutePlan, 'inUnits' | 'outUnits' | 'feeUnits'>;

/** A plan, and its totals as they are compared. */
interface Compared {
  plan: RoutePlan;
  net: Totals;
}

/** A plan's totals as if its burden were paid from what is sold, at its own price, or on top of what a purchase costs; output rounded down. */
export function withBurden(kind: SplitKind, { inUnits, outUnits, feeUnits: fee }: Totals, burden: bigint): Totals {
  if (kind === 'buy') return { inUnits: inUnits + burden, outUnits, feeUnits: fee };
  const traded = inUnits - fee;
  return { inUnits, outUnits: burden >= traded ? 0n : (outUnits * (traded - burden)) / traded, feeUnits: fee };
}

/** True when `plan` brings more, or costs less, than `other`. */
export function isBetter(kind: SplitKind, plan: Totals, other: Totals): boolean {
  return kind === 'sell' ? plan.outUnits > other.outUnits : plan.inUnits < other.inUnits;
}

function isClose(kind: SplitKind, own: Totals, best: Totals, toleranceBps: number): boolean {
  const tolerance = BigInt(toleranceBps);
  return kind === 'sell'
    ? own.outUnits * BPS >= best.outUnits * (BPS - tolerance)
    : own.inUnits * BPS <= best.inUnits * (BPS + tolerance);
}
