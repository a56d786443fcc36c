/**
 * What must hold on the chain for a route to bring what an order was signed for. A transaction that looks at that first burns little where it
 * does not hold any more.
 */
import { ceilDiv, minBig } from '../core/amounts.js';
import { hopsOf } from '../core/swap/paths.js';
import { PLACE_CHECKS } from '../core/swap/pricing.js';
import { MAX_CROSSED } from '../core/swap/pool-source.js';
import { OWN, type Source } from '../core/swap/source.js';
import type { Part, SplitKind } from '../core/swap/split.js';
import type { Address } from '../core/types.js';
import type { Head } from './eth.js';
import type { MarketData } from './market-data.js';
import type { StateCheck, VenueTrade } from './venue.js';

interface CheckedRoute {
  kind: SplitKind;
  sellToken: Address;
  buyToken: Address;
  parts: readonly Part[];
  /** Without the fee: the least that a sale must bring, the most that a purchase may take. */
  boundUnits: bigint;
}

/** A trade with the most that it may cost, or the least that it must bring. */
interface Bounded {
  trade: VenueTrade;
  boundUnits: bigint;
}

/**
 * Conditions under which the parts together keep the bound, each venue's own; null where they don't keep it at that block, or where a venue
 * can't say so in few conditions. What may be lost is shared by the parts in proportion, and on a path by its legs alike.
 */
export async function routeChecks(
  data: Pick<MarketData, 'quote' | 'sources' | 'venueOf'>,
  route: CheckedRoute,
  head: Head,
  atSec: number,
): Promise<StateCheck[] | null> {
  const bounded = await boundedTrades(data, route, head, atSec);
  if (bounded === null) return null;
  // What a maker can take away for nothing is asked first.
  const inTurn = [...bounded.filter(isOwn), ...bounded.filter((one) => !isOwn(one))];
  const checks = await Promise.all(
    inTurn.map(({ trade, boundUnits }) => data.venueOf(trade.id).checks(trade, boundUnits, head)),
  );
  const all = checks.filter((one) => one !== null);
  return all.length < checks.length ? null : all.flat();
}

/** As `countOn`, at the places as that block has them, so that nothing is asked for the count. */
export async function countChecks(
  { sources }: Pick<MarketData, 'sources'>,
  route: CheckedRoute,
  head: Head,
  atSec: number,
): Promise<number | null> {
  const places = await Promise.all(
    route.parts.map(({ id }) =>
      Promise.all(
        hopsOf(id, route.sellToken, route.buyToken).map(async (hop) =>
          (await sources(hop.sellToken, hop.buyToken, head, atSec)).find((one) => one.id === hop.id),
        ),
      ),
    ),
  );
  const known = places.map((legs) => legs.filter((one) => one !== undefined));
  return known.some((legs, i) => legs.length < places[i]!.length) ? null : countOn(route, known);
}

/**
 * How many conditions `routeChecks` would give, by the places of each part's legs; null where there would be none. With null for the bound, how
 * many there are at least, which costs no search.
 */
export function countOn(
  route: Omit<CheckedRoute, 'boundUnits'> & { boundUnits: bigint | null },
  places: readonly (readonly Source[])[],
): number | null {
  const amounts = route.parts.map((part, i) => passedOn(route.kind, part, places[i]!));
  const known = amounts.filter((one) => one !== null);
  if (known.length < amounts.length) return null;
  const { boundUnits } = route;
  const trades =
    boundUnits === null
      ? route.parts.flatMap(({ id }, i) => tradesOf(route, id, known[i]!).map((trade) => ({ trade, boundUnits })))
      : boundedBy({ ...route, boundUnits }, known);
  if (trades === null) return null;
  const legs = places.flat();
  let count = 0;
  for (const [i, { trade, boundUnits: bound }] of trades.entries()) {
    const { kind, inUnits, outUnits } = trade;
    const { crossed: ends = () => 0 } = legs[i]!;
    const crossed = ends(kind, kind === 'sell' ? inUnits : outUnits, bound);
    if (crossed === null || crossed > MAX_CROSSED) return null;
    count += trade.id === OWN ? 1 : PLACE_CHECKS + crossed;
  }
  return count;
}

/** What a part takes, passes from leg to leg and gives by what its places say themselves; null for one that does not trade. */
function passedOn(kind: SplitKind, { inUnits, outUnits, via }: Part, legs: readonly Source[]): bigint[] | null {
  const amounts = kind === 'sell' ? [inUnits] : [...(via ?? []), outUnits].reverse();
  for (const leg of kind === 'sell' ? legs : [...legs].reverse().slice(amounts.length - 1)) {
    const units = amounts.at(-1)!;
    const next = kind === 'sell' ? leg.outputFor(units) : leg.inputFor(units);
    if (next === null) return null;
    amounts.push(next);
  }
  return kind === 'sell' ? amounts : amounts.reverse();
}

async function boundedTrades(
  data: Pick<MarketData, 'quote' | 'sources'>,
  route: CheckedRoute,
  head: Head,
  atSec: number,
): Promise<Bounded[] | null> {
  const amounts = await Promise.all(route.parts.map((part) => amountsNow(data, route, part, head, atSec)));
  const known = amounts.filter((one) => one !== null);
  return known.length < amounts.length ? null : boundedBy(route, known);
}

const boundedBy = (route: CheckedRoute, amounts: readonly bigint[][]): Bounded[] | null =>
  route.kind === 'sell' ? boundedSales(route, amounts) : boundedPurchases(route, amounts);

const isOwn = ({ trade }: Bounded): boolean => trade.id === OWN;

/** What a part takes, passes from leg to leg and gives at that block; null for one that does not trade. */
async function amountsNow(
  data: Pick<MarketData, 'quote' | 'sources'>,
  { kind, sellToken, buyToken }: CheckedRoute,
  { id, inUnits, outUnits, via = [] }: Part,
  head: Head,
  atSec: number,
): Promise<bigint[] | null> {
  const hops = hopsOf(id, sellToken, buyToken);
  const quoted = async (i: number, units: bigint): Promise<bigint | null> => {
    const hop = hops[i]!;
    if (hop.id === OWN) {
      const own = (await data.sources(hop.sellToken, hop.buyToken, head, atSec)).find((one) => one.id === OWN);
      return (kind === 'sell' ? own?.outputFor(units) : own?.inputFor(units)) ?? null;
    }
    return data.quote({ ...hop, kind, inUnits: units, outUnits: units }, head);
  };
  // Of a purchase each leg buys what it was to buy, and the first alone may cost more.
  if (kind === 'buy') {
    const [first, ...rest] = [...via, outUnits];
    const cost = await quoted(0, first);
    return cost === null ? null : [cost, first, ...rest];
  }
  const amounts = [inUnits];
  for (let i = 0; i < hops.length; i++) {
    const next = await quoted(i, amounts[i]!);
    if (next === null) return null;
    amounts.push(next);
  }
  return amounts;
}

const tradesOf = (
  { kind, sellToken, buyToken }: Omit<CheckedRoute, 'boundUnits'>,
  id: string,
  amounts: readonly bigint[],
): VenueTrade[] =>
  hopsOf(id, sellToken, buyToken).map((hop, i) => ({
    ...hop,
    kind,
    inUnits: amounts[i]!,
    outUnits: amounts[i + 1]!,
  }));

/**
 * A leg of k may lose a k-th of what the order may: together they lose no more, and since what is sold for less is sold at no worse a price,
 * a leg behind one that brought less keeps its part, too. One unit more makes up for the rounding of each leg but the last.
 */
function boundedSales(route: CheckedRoute, amounts: readonly bigint[][]): Bounded[] | null {
  const total = amounts.reduce((sum, one) => sum + one.at(-1)!, 0n);
  if (total < route.boundUnits || total === 0n) return null;
  const spare = total - route.boundUnits;
  return route.parts.flatMap(({ id }, part) => {
    const trades = tradesOf(route, id, amounts[part]!);
    const legs = BigInt(trades.length);
    return trades.map((trade) => {
      const least = ceilDiv(trade.outUnits * (total * legs - spare), total * legs) + (legs > 1n ? 1n : 0n);
      return { trade, boundUnits: minBig(least, trade.outUnits) };
    });
  });
}

/** Of a purchase only a first leg may cost more: those behind it are called with what they cost when the route was made. */
function boundedPurchases(route: CheckedRoute, amounts: readonly bigint[][]): Bounded[] | null {
  const total = amounts.reduce((sum, [cost]) => sum + cost!, 0n);
  if (total > route.boundUnits || total === 0n) return null;
  const spare = route.boundUnits - total;
  const planned = route.parts.reduce((sum, { inUnits }) => sum + inUnits, 0n);
  return route.parts.flatMap(({ id, inUnits }, part) => {
    const trades = tradesOf(route, id, amounts[part]!);
    // What the part's call is allowed to take.
    const allowed = route.boundUnits - (planned - inUnits);
    return trades.map((trade, leg) => ({
      trade,
      boundUnits: leg === 0 ? minBig(trade.inUnits + (trade.inUnits * spare) / total, allowed) : trade.inUnits,
    }));
  });
}
