/**
 * Places where a sell token can be traded for a buy token, seen alike: our own curve, or a pool elsewhere. "In" is the sell token, "out"
 * the buy token. All of them get worse with size, never better, which is what splitting rests on.
 */

/** A price: `out` units of the buy token per `in` units of the sell token. */
export interface Rate {
  out: bigint;
  in: bigint;
}

export interface Traded {
  inUnits: bigint;
  outUnits: bigint;
}

export interface Source {
  /** `own`, or a name that its venue knows. */
  readonly id: string;
  /** What exactly `inUnits` brings, or null when that can't be traded here: zero, beyond depth, or rounding to nothing. */
  outputFor(inUnits: bigint): bigint | null;
  /** What exactly `outUnits` costs, or null likewise. */
  inputFor(outUnits: bigint): bigint | null;
  /** The most that can be traded while the last unit still brings at least `rate`. Falls as the rate rises. */
  tradedAt(rate: Rate): Traded;
}

/** Id of our own curve among the sources. */
export const OWN = 'own';
