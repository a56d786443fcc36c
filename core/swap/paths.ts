/**
 * Paths: trades one after the other by way of other tokens, each leg of them in one place. The id of a path names its places and, between two of
 * them, the token that passes: `uniswap-v3:500>0x4200…0006>own`.
 */
import type { Address } from '../types.js';
import { OWN, type Leg, type Source } from './source.js';
import type { SplitKind } from './split.js';
import { inSequence, stretchesOf, type Stretches } from './stretches.js';

const HOP = '>';

/** The places at which a source or a path trades, in their order. */
const placesOf = (id: string): string[] => id.split(HOP).filter((_, i) => i % 2 === 0);

const isPath = (id: string): boolean => id.includes(HOP);

/** Number of places in these ids: each leg counts. */
export const venuesIn = (ids: readonly string[]): number => ids.reduce((sum, id) => sum + placesOf(id).length, 0);

/** Number of external calls that a route of these ids makes: one per leg, but none for a part that is our own curve alone. */
export const callsIn = (ids: readonly string[]): number =>
  ids.reduce((sum, id) => sum + (id === OWN ? 0 : placesOf(id).length), 0);

/** Number of those calls that are legs over our own curve. */
export const ownCallsIn = (ids: readonly string[]): number =>
  ids.reduce((sum, id) => sum + (isPath(id) ? placesOf(id).filter((place) => place === OWN).length : 0), 0);

/** Whether a source or path trades with our own curve. */
export const usesOwn = (id: string): boolean => placesOf(id).includes(OWN);

/** Whether it trades with our own curves only. */
export const isOwnOnly = (id: string): boolean => placesOf(id).every((place) => place === OWN);

/** The hops of a part of a route: its place, what it sells and what it buys. Throws RangeError for a malformed id. */
export function hopsOf(
  id: string,
  sellToken: Address,
  buyToken: Address,
): { id: string; sellToken: Address; buyToken: Address }[] {
  const pieces = id.split(HOP);
  if (pieces.length % 2 === 0) throw new RangeError(`${id} is no path`);
  return placesOf(id).map((place, i) => ({
    id: place,
    sellToken: i === 0 ? sellToken : (pieces[2 * i - 1] as Address),
    buyToken: 2 * i + 1 === pieces.length ? buyToken : (pieces[2 * i + 1] as Address),
  }));
}

/** The tokens that pass between the places of a source or path. */
export const tokensBetween = (id: string): Address[] => id.split(HOP).filter((_, i) => i % 2 === 1) as Address[];

/** A path as a source: outputs and inputs are exact, computed leg by leg. */
export function pathSource(legs: readonly Leg[]): Source {
  const id = legs.map(({ source, buyToken }, i) => (i + 1 < legs.length ? `${source.id}${HOP}${buyToken}` : source.id));
  let stretches: Stretches | null = null;
  return {
    id: id.join(HOP),
    legs,
    outputFor: (inUnits) => passed('sell', legs, inUnits),
    inputFor: (outUnits) => passed('buy', legs, outUnits),
    tradedAt(rate) {
      stretches ??= stretchesOf(
        legs.map(({ source }) => source.stretches ?? []).reduce((whole, list) => inSequence(whole, list)),
      );
      return stretches.tradedAt(rate);
    },
  };
}

function passed(kind: SplitKind, legs: readonly Leg[], units: bigint): bigint | null {
  let amount: bigint | null = units;
  for (const { source } of kind === 'sell' ? legs : [...legs].reverse()) {
    amount = kind === 'sell' ? source.outputFor(amount) : source.inputFor(amount);
    if (amount === null) return null;
  }
  return amount;
}

/**
 * Names of what a source changes when it trades: each place of a path, and for our own curves the vault's liquidity of the token that they
 * pay. Two sources that share a name can't be parts of one route, since each was priced as if the other did not trade. The last leg always
 * pays the one token that all sources of a request buy, so our own curve by itself is named `own`.
 */
function movedBy({ id, legs }: Source): string[] {
  if (legs === undefined) return [id];
  return legs.flatMap(({ source, sellToken, buyToken }, i) => {
    const pair = sellToken < buyToken ? `${sellToken}/${buyToken}` : `${buyToken}/${sellToken}`;
    return source.id === OWN
      ? [`${OWN}:${pair}`, i + 1 === legs.length ? OWN : `${OWN}:${buyToken}`]
      : [`${source.id}:${pair}`];
  });
}

/** For each source a bit mask of the other sources with which it shares a place. */
export function conflictsAmong(sources: readonly Source[]): number[] {
  const moved = sources.map((source) => new Set(movedBy(source)));
  return moved.map((names, i) =>
    moved.reduce(
      (bits, others, j) => (i !== j && [...names].some((name) => others.has(name)) ? bits | (1 << j) : bits),
      0,
    ),
  );
}

/** The sources in their order, without each that shares a place with an earlier one that is kept. */
export function disjoint(sources: readonly Source[]): Source[] {
  const kept: Source[] = [];
  for (const source of sources) {
    const taken = new Set(kept.flatMap(movedBy));
    if (!movedBy(source).some((name) => taken.has(name))) kept.push(source);
  }
  return kept;
}
