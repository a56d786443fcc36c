/**
 * One interface for places where a sell token can be traded for a buy token: our own curve, or a pool elsewhere. "In" is the sell token,
 * "out" the buy token. The rate of each gets worse with size, never better; splitting depends on that.
 */

import type { Address } from '../types.js';

/** A price: `out` units of the buy token per `in` units of the sell token. */
export interface Rate {
  out: bigint;
  in: bigint;
  /**
   * Its square root in parts of 2^128, where `in` is RATE_ONE. A search that goes by the root passes it on, so that sources need not
   * extract it.
   */
  root?: bigint;
}

/** Rates in a search have the denominator 2^256. */
export const RATE_BITS = 256n;
export const RATE_ONE = 1n << RATE_BITS;

export interface Traded {
  inUnits: bigint;
  outUnits: bigint;
}

/** Part of a source in which `x` in brings `gain x / (base + slope x)` out. */
export interface Stretch {
  gain: bigint;
  base: bigint;
  slope: bigint;
  /** What the whole of it takes and brings. */
  inUnits: bigint;
  outUnits: bigint;
}

export interface Source {
  /** `own`, or an id that its venue gives. */
  readonly id: string;
  /** What exactly `inUnits` brings, or null when that can't be traded here: zero, beyond depth, or rounding to nothing. */
  outputFor(inUnits: bigint): bigint | null;
  /** What exactly `outUnits` costs, or null likewise. */
  inputFor(outUnits: bigint): bigint | null;
  /** The most that can be traded while the last unit still brings at least `rate`. Falls as the rate rises. */
  tradedAt(rate: Rate): Traded;
  /** The same as a list of stretches, from which those of a path are computed; absent for a source that no path may use. */
  readonly stretches?: readonly Stretch[];
  /**
   * How many of the place's ranges may end within a trade of `units`, which are sold or bought, as long as it keeps `boundUnits`; with null for the
   * bound, how many end as the place is now, which are no more. More than are ever checked may be too few, and never as few as are. Null for a
   * trade that does not keep it now. Absent for a place without ranges.
   */
  readonly crossed?: (kind: 'sell' | 'buy', units: bigint, boundUnits: bigint | null) => number | null;
  /** The legs of a path, in their order. Absent for a single place. */
  readonly legs?: readonly Leg[];
}

/** A place on a path, and what it trades there. */
export interface Leg {
  source: Source;
  sellToken: Address;
  buyToken: Address;
}

/** Id of our own curve among the sources. */
export const OWN = 'own';
