import type { Address, Leg, Side } from '../types.js';
import { splitProRata } from './pro-rata.js';

/** The operator's gain on all fills of one side of one curve, in quote units, and the number of their legs. */
export interface SideGains {
  gainUnits: bigint;
  legs: number;
}

export const NO_GAINS: SideGains = { gainUnits: 0n, legs: 0 };

/**
 * A lower bound of the operator's gain, in quote units, on fills with so many legs of one side of a curve that started by the carry rule.
 * Over all its fills together the curve is never better for takers than the makers' orders, so only rounding can cost the operator
 * anything. On asks it can't: buyers pay rounded up, and makers get rounded down. On bids, sellers get rounded down, and each maker pays
 * for its leg up to a unit less than the exact amount, so the loss is below one unit per leg.
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

/** What a maker and a taker traded with each other, and the operator's gain on it, in one quote token. */
export interface PairTotals {
  fills: number;
  legs: number;
  quoteUnits: bigint;
  gainUnits: bigint;
}

/** With fewer fills than this a loss may be chance. */
const LOSING_FILLS = 10;
/** Quote units that a loss must exceed, beside one per leg for rounding. */
const LOSING_UNITS = 1_000n;
/** A loss must exceed this part of what was traded: one bps. */
const LOSING_PART = 10_000n;

/**
 * Whether a pair loses the operator money systematically: over at least LOSING_FILLS fills, more than LOSING_UNITS beside the rounding of
 * their legs, and more than a bps of what they traded. A single taker who follows others on the same curve may pay less than the book,
 * because the others paid more before; over many fills that evens out.
 */
export function isLosing({ fills, legs, quoteUnits, gainUnits }: PairTotals): boolean {
  const lossUnits = -gainUnits;
  return fills >= LOSING_FILLS && lossUnits - BigInt(legs) > LOSING_UNITS && lossUnits * LOSING_PART > quoteUnits;
}
