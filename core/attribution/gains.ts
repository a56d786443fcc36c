import type { Address, Leg, Side } from '../types.js';
import { splitProRata } from './pro-rata.js';

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

/** What one maker's legs of a fill brought the operator. */
interface MakerGain {
  maker: Address;
  legs: number;
  /** Quote units of the maker's legs. */
  quoteUnits: bigint;
  /** The maker's share of the operator's gain, in quote units; may be negative. */
  gainUnits: bigint;
}

/**
 * Shares the operator's gain on a fill out among its makers, lower address first: in proportion to the quote units of their legs, or of
 * their base units where no leg comes to a quote unit. Whole units, the rest to the largest remainders, so that shares add up to the gain.
 */
export function gainByMaker({
  legs,
  operatorGainUnits,
}: {
  legs: readonly Pick<Leg, 'maker' | 'baseUnits' | 'quoteUnits'>[];
  operatorGainUnits: bigint;
}): MakerGain[] {
  const makers = new Map<Address, { legs: number; quoteUnits: bigint; baseUnits: bigint }>();
  for (const { maker, quoteUnits, baseUnits } of legs) {
    const sum = makers.get(maker) ?? { legs: 0, quoteUnits: 0n, baseUnits: 0n };
    makers.set(maker, {
      legs: sum.legs + 1,
      quoteUnits: sum.quoteUnits + quoteUnits,
      baseUnits: sum.baseUnits + baseUnits,
    });
  }
  const sums = [...makers].sort(([a], [b]) => (a < b ? -1 : 1));
  const hasQuote = sums.some(([, { quoteUnits }]) => quoteUnits > 0n);
  const weights = sums.map(([maker, sum]) => ({ maker, units: hasQuote ? sum.quoteUnits : sum.baseUnits }));
  const total = weights.reduce((sum, { units }) => sum + units, 0n);
  if (total === 0n) return [];
  const sign = operatorGainUnits < 0n ? -1n : 1n;
  const shares = splitProRata(sign * operatorGainUnits, weights, total);
  return sums.map(([maker, sum], i) => ({
    maker,
    legs: sum.legs,
    quoteUnits: sum.quoteUnits,
    gainUnits: sign * shares[i]!,
  }));
}

/** What a maker and a taker traded with each other, and what that brought the operator, in one quote token. */
export interface PairTotals {
  fills: number;
  legs: number;
  quoteUnits: bigint;
  gainUnits: bigint;
}

/** Fewest fills from which a loss is no accident. */
const LOSING_FILLS = 10;
/** Quote units that a loss must exceed, beside one per leg for rounding. */
const LOSING_UNITS = 1_000n;
/** A loss must exceed this part of what was traded: one bps. */
const LOSING_PART = 10_000n;

/**
 * Whether a pair loses the operator money systematically: over at least LOSING_FILLS fills, more than LOSING_UNITS beside the rounding of
 * their legs, and more than a bps of what they traded. A taker who comes after others on the same curve may well pay less than the
 * book now and then, which others have paid before; not on balance, though.
 */
export function isLosing({ fills, legs, quoteUnits, gainUnits }: PairTotals): boolean {
  const lossUnits = -gainUnits;
  return fills >= LOSING_FILLS && lossUnits - BigInt(legs) > LOSING_UNITS && lossUnits * LOSING_PART > quoteUnits;
}
