/** Chooses paths through other tokens for a swap. */
import { disjoint, pathSource } from '../core/swap/paths.js';
import type { Leg, Source } from '../core/swap/source.js';
import type { SplitKind } from '../core/swap/split.js';
import type { Address } from '../core/types.js';

/** Most tokens that paths may go through; those with the fewest markets are left out. */
const MOST_VIA = 3;
/** Places per leg: the best ones for the amount that reaches it. */
const PLACES_PER_LEG = 2;
/** Paths that routes are made of, the best ones. */
const MOST_PATHS = 4;
/** A path that can't trade the whole amount is judged by this part of it. */
const PROBE_PART = 8n;

/** What is to be traded: the input (sell) or the output (buy). */
export interface PathQuestion {
  kind: SplitKind;
  sellToken: Address;
  buyToken: Address;
  amountUnits: bigint;
  /** Whether no path may go through a token. Default: none is avoided. */
  avoids?(token: Address): boolean;
}

/**
 * The best paths of two and three legs, of the places that `sourcesOf` finds, by way of `tokens`, the most usual first. Those come first that share no
 * place with a better one.
 */
export async function pathsFor(
  { kind, sellToken, buyToken, amountUnits, avoids = () => false }: PathQuestion,
  tokens: readonly Address[],
  sourcesOf: (sellToken: Address, buyToken: Address) => Promise<Source[]>,
): Promise<Source[]> {
  const via = tokens.filter((token) => token !== sellToken && token !== buyToken && !avoids(token)).slice(0, MOST_VIA);
  const ways = [
    ...via.map((one) => [sellToken, one, buyToken]),
    ...via.flatMap((one) => via.filter((two) => two !== one).map((two) => [sellToken, one, two, buyToken])),
  ];
  const found = await Promise.all(ways.map((way) => legsOver(way, sourcesOf)));
  const paths = found
    .filter((legs) => legs.every((places) => places.length > 0))
    .flatMap((legs) => combined(best(kind, legs, amountUnits)).map(pathSource));
  const ranked = paths
    .map((path) => ({ path, value: valueOf(kind, path, amountUnits) }))
    .filter(({ value }) => value !== null)
    .sort((a, b) => compare(kind, a.value!, b.value!))
    .map(({ path }) => path);
  const apart = disjoint(ranked);
  return [...apart, ...ranked.filter((path) => !apart.includes(path))].slice(0, MOST_PATHS);
}

/** What can be traded at each leg of a way. */
function legsOver(
  way: readonly Address[],
  sourcesOf: (sellToken: Address, buyToken: Address) => Promise<Source[]>,
): Promise<Leg[][]> {
  return Promise.all(
    way.slice(1).map(async (buyToken, i) => {
      const sellToken = way[i]!;
      const sources = await sourcesOf(sellToken, buyToken);
      return sources
        .filter(({ stretches }) => stretches !== undefined)
        .map((source) => ({ source, sellToken, buyToken }));
    }),
  );
}

/** The best places of each leg for the amount that reaches it over the best ones before (sell) or behind it (buy). */
function best(kind: SplitKind, legs: readonly Leg[][], amountUnits: bigint): Leg[][] {
  let amount = amountUnits;
  const chosen = (kind === 'sell' ? legs : [...legs].reverse()).map((places) => {
    const ranked = places
      .map((leg) => ({ leg, value: valueOf(kind, leg.source, amount) }))
      .filter(({ value }) => value !== null)
      .sort((a, b) => compare(kind, a.value!, b.value!))
      .slice(0, PLACES_PER_LEG);
    amount = ranked[0]?.value ?? amount;
    return ranked.map(({ leg }) => leg);
  });
  return kind === 'sell' ? chosen : chosen.reverse();
}

/** What the amount brings or costs, at the price of a part of it where all of it is too much; null where even that is. */
function valueOf(kind: SplitKind, source: Source, units: bigint): bigint | null {
  const at = (amount: bigint): bigint | null => (kind === 'sell' ? source.outputFor(amount) : source.inputFor(amount));
  const whole = at(units);
  if (whole !== null) return whole;
  const part = at(units / PROBE_PART);
  return part === null ? null : part * PROBE_PART;
}

function compare(kind: SplitKind, a: bigint, b: bigint): number {
  if (a === b) return 0;
  return (kind === 'sell') === a > b ? -1 : 1;
}

const combined = (legs: readonly Leg[][]): Leg[][] =>
  legs.reduce<Leg[][]>((heads, places) => heads.flatMap((head) => places.map((leg) => [...head, leg])), [[]]);
