import type { Side } from '../types.js';

/** What fills of one side of one curve have brought the operator together, in quote units, and how many legs they had. */
export interface SideGains {
  gainUnits: bigint;
  legs: number;
}

/** Before the first fill. */
export const NO_GAINS: SideGains = { gainUnits: 0n, legs: 0 };

/**
 * The least that the operator can have gained, in quote units, on fills with so many legs of one side of a curve that was entered by the
 * carry rule. Over all of them together the curve is never better for takers than what the makers' orders say, so that rounding alone is
 * left: buyers pay rounded up and makers get rounded down, which never costs the operator anything; sellers get rounded down, and each
 * leg costs its maker less by a fraction of a unit, so that the fractions come to less than the number of legs.
 */
export function leastGainUnits(side: Side, legs: number): bigint {
  return side === 'ask' || legs === 0 ? 0n : 1n - BigInt(legs);
}
